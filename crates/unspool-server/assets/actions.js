// The actions of a page: modules register them, the palette and the help list them.

export const actions = [];

/** Registers an action: `{ name, keys, run, everywhere }`. */
export function addAction(action) { actions.push(action); }

const toast = document.createElement("div");
toast.className = "spoken";
toast.setAttribute("role", "status");
document.body.append(toast);
let hideTimer;

/** Shows a short message. */
export function notify(text) {
  toast.textContent = text;
  toast.classList.add("shown");
  clearTimeout(hideTimer);
  hideTimer = setTimeout(() => toast.classList.remove("shown"), 1800);
}
