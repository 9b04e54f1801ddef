// The picture of runs: zoom and drag. Without this script it scrolls.

import { isTyping } from "./app.js";

const view = document.querySelector(".flow-view");
const picture = view?.querySelector("svg");

if (picture) {
  const { width, height } = picture.viewBox.baseVal;
  const [minScale, maxScale] = [0.1, 4];
  let scale = 1;

  /** Scales the picture; the point under (x, y) of the view stays in place. */
  const zoom = (wanted, x = view.clientWidth / 2, y = view.clientHeight / 2) => {
    const to = Math.min(maxScale, Math.max(minScale, wanted));
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
  const zoomActions = { in: () => zoom(scale * 1.25), out: () => zoom(scale / 1.25), fit };

  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.hidden = false;
    button.addEventListener("click", () => zoomActions[button.dataset.zoom]());
  }

  // The wheel scrolls; with Control it zooms. Pinching on a touchpad sends the same event.
  view.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const frame = view.getBoundingClientRect();
    zoom(scale * Math.exp(-event.deltaY * 0.002), event.clientX - frame.left, event.clientY - frame.top);
  }, { passive: false });

  // Dragging pans; a click without movement follows a step's link.
  let drag = null;
  view.classList.add("can-drag");
  view.addEventListener("dragstart", (event) => event.preventDefault());
  view.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.pointerType === "touch") return;
    drag = { x: event.clientX, y: event.clientY, left: view.scrollLeft, top: view.scrollTop, moved: false };
  });
  addEventListener("pointermove", (event) => {
    if (!drag) return;
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.moved && Math.hypot(dx, dy) < 5) return;
    drag.moved = true;
    view.classList.add("dragging");
    view.scrollLeft = drag.left - dx;
    view.scrollTop = drag.top - dy;
  });
  addEventListener("pointerup", () => {
    const moved = drag?.moved;
    drag = null;
    if (moved) setTimeout(() => view.classList.remove("dragging"));
  });
  view.addEventListener("click", (event) => {
    if (view.classList.contains("dragging")) event.preventDefault();
  }, true);

  const keys = { "+": zoomActions.in, "=": zoomActions.in, "-": zoomActions.out, "0": fit };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event) || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });

  fit();
}
