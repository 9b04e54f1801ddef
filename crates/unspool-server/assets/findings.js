// The findings of an open session, loaded after the page: looking for them takes a moment.

const panel = document.getElementById("findings");

async function load() {
  const session = document.querySelector(".session[data-session]").dataset.session;
  const response = await fetch(`/s/${session}/findings?panel=1`).catch(() => null);
  if (!response?.ok) return;
  const template = document.createElement("template");
  template.innerHTML = await response.text();
  panel.replaceChildren(template.content);
  panel.hidden = panel.childElementCount === 0;
}

if (panel) load();
