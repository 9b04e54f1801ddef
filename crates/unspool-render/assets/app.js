// What every page does: the theme, copying, and the keys that are the same everywhere.

const root = document.documentElement;
const wish = matchMedia("(prefers-color-scheme: light)");

const chosen = localStorage.getItem("theme");
if (chosen) root.dataset.theme = chosen;

document.querySelector(".theme").addEventListener("click", () => {
  const now = root.dataset.theme ?? (wish.matches ? "light" : "dark");
  root.dataset.theme = now === "light" ? "dark" : "light";
  localStorage.setItem("theme", root.dataset.theme);
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  const said = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = said; }, 1500);
});

/** Whether a key is meant for a field and not for the page. */
export function isTyping(event) {
  return event.target.closest("input, textarea, select, [contenteditable]") !== null
    || event.ctrlKey || event.metaKey || event.altKey;
}

let leader = 0;
document.addEventListener("keydown", (event) => {
  if (isTyping(event)) return;
  if (event.key === "/") {
    event.preventDefault();
    document.querySelector(".find input").focus();
  } else if (event.key === "g") {
    leader = event.timeStamp;
  } else if (event.key === "s" && event.timeStamp - leader < 1000) {
    location.href = "/";
  }
});
