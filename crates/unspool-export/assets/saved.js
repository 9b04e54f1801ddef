// A session in one file: deferred parts are inserted when the user scrolls near them.

const open = (later) => {
  const kept = later.nextElementSibling;
  const made = document.createElement("template");
  made.innerHTML = kept.textContent.replaceAll("<\\/", "</");
  later.replaceWith(made.content);
  kept.remove();
};

const near = new IntersectionObserver((seen) => {
  for (const { isIntersecting, target } of seen) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    open(target);
  }
}, { rootMargin: "1500px" });

for (const later of document.querySelectorAll(".later")) {
  later.style.minHeight = `${Number(later.dataset.parts) * 2.5}rem`;
  near.observe(later);
}

// A link may point into a deferred part.
function arrive() {
  const id = decodeURIComponent(location.hash.slice(1));
  if (!id) return;
  const holds = (later) => later.nextElementSibling.textContent.includes(`id="${id}"`);
  const later = document.getElementById(id) ? null : [...document.querySelectorAll(".later")].find(holds);
  if (later) open(later);
  const target = document.getElementById(id);
  for (let fold = target?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  target?.scrollIntoView();
}
addEventListener("hashchange", arrive);
arrive();

addEventListener("beforeprint", () => { for (const later of document.querySelectorAll(".later")) open(later); });
