// What a page can do: its modules offer it, and the palette and the help show it.

export const offers = [];

/** A deed with a name, and the keys that do it too. */
export function offer(deed) { offers.push(deed); }

const spoken = document.createElement("div");
spoken.className = "spoken";
spoken.setAttribute("role", "status");
document.body.append(spoken);
let silence;

/** Tells the reader something in passing. */
export function say(text) {
  spoken.textContent = text;
  spoken.classList.add("shown");
  clearTimeout(silence);
  silence = setTimeout(() => spoken.classList.remove("shown"), 1800);
}
