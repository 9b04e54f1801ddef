// The picture of runs: nearer, farther, and moved by hand. Without this it is a picture that scrolls.

import { isTyping } from "./app.js";

const view = document.querySelector(".flow-view");
const picture = view?.querySelector("svg");

if (picture) {
  const { width, height } = picture.viewBox.baseVal;
  const [least, most] = [0.1, 4];
  let scale = 1;

  /** Draws it in another size; the place under (x, y) of the view stays where it is. */
  const zoom = (wanted, x = view.clientWidth / 2, y = view.clientHeight / 2) => {
    const to = Math.min(most, Math.max(least, wanted));
    const box = picture.getBoundingClientRect();
    const frame = view.getBoundingClientRect();
    const [dx, dy] = [(frame.left + x - box.left) / scale, (frame.top + y - box.top) / scale];
    scale = to;
    picture.setAttribute("width", Math.round(width * scale));
    picture.setAttribute("height", Math.round(height * scale));
    const now = picture.getBoundingClientRect();
    view.scrollLeft += now.left + dx * scale - (frame.left + x);
    view.scrollTop += now.top + dy * scale - (frame.top + y);
  };
  const fit = () => zoom(Math.min(1, (view.clientWidth - 8) / width), 0, 0);
  const deeds = { in: () => zoom(scale * 1.25), out: () => zoom(scale / 1.25), fit };

  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.hidden = false;
    button.addEventListener("click", () => deeds[button.dataset.zoom]());
  }

  // A wheel alone scrolls, as everywhere; with Control it zooms, and two fingers that part do the same.
  view.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const frame = view.getBoundingClientRect();
    zoom(scale * Math.exp(-event.deltaY * 0.002), event.clientX - frame.left, event.clientY - frame.top);
  }, { passive: false });

  // Pulling moves it. Who only clicks follows a step.
  let held = null;
  view.classList.add("can-drag");
  view.addEventListener("dragstart", (event) => event.preventDefault());
  view.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.pointerType === "touch") return;
    held = { x: event.clientX, y: event.clientY, left: view.scrollLeft, top: view.scrollTop, moved: false };
  });
  addEventListener("pointermove", (event) => {
    if (!held) return;
    const [dx, dy] = [event.clientX - held.x, event.clientY - held.y];
    if (!held.moved && Math.hypot(dx, dy) < 5) return;
    held.moved = true;
    view.classList.add("dragging");
    view.scrollLeft = held.left - dx;
    view.scrollTop = held.top - dy;
  });
  addEventListener("pointerup", () => {
    const moved = held?.moved;
    held = null;
    if (moved) setTimeout(() => view.classList.remove("dragging"));
  });
  view.addEventListener("click", (event) => {
    if (view.classList.contains("dragging")) event.preventDefault();
  }, true);

  const keys = { "+": deeds.in, "=": deeds.in, "-": deeds.out, "0": fit };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event) || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });

  fit();
}
