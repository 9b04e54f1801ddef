// The findings of an open session, loaded after the page: looking for them takes a moment.

const panel = document.getElementById("findings");

async function load() {
  const session = document.querySelector(".session[data-session]").dataset.session;
  const response = await fetch(`/s/${session}/findings?panel=1`).catch(() => null);
  if (!response?.ok) return;
  const template = document.createElement("template");
  template.innerHTML = await response.text();
  panel.replaceChildren(template.content);
  // On a small screen the panel lies over the transcript.
  const fold = panel.querySelector("details");
  if (fold && matchMedia("(max-width: 60rem)").matches) fold.open = false;
  panel.hidden = panel.childElementCount === 0;
}

if (panel) load();
