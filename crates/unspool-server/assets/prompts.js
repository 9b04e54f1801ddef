// The pages of what model calls were sent.

import { offerPromptSearch } from "./prompt_search.js";

const page = document.querySelector(".prompts-page");
offerPromptSearch(page.dataset.session);

// A long text comes with its beginning. The rest takes its place when it is asked for.
page.addEventListener("click", async (event) => {
  const link = event.target.closest("a.whole-piece");
  if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const response = await fetch(link.href).catch(() => null);
  const text = response?.ok ? await response.text() : null;
  const whole = text && new DOMParser().parseFromString(text, "text/html").querySelector(".prompt-piece");
  if (whole) link.closest(".prompt-piece").replaceWith(document.importNode(whole, true));
  else location.assign(link.href);
});
