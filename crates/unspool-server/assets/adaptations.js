// The pages of adaptations: saves what is edited for the version that was shown, loads what an agent
// gets and what it changed, and decides proposals.

const page = document.querySelector(".adaptation[data-id]");
const { id, project } = page?.dataset ?? {};
const query = (more = {}) => {
  const params = new URLSearchParams(more);
  if (project) params.set("project", project);
  const text = params.toString();
  return text ? `?${text}` : "";
};

async function preview() {
  const agent = page.querySelector(".preview-agent").value;
  const shown = page.querySelector(".preview");
  const response = await fetch(`/api/adaptations/preview${query({ agent })}`).catch(() => null);
  const answer = await response?.json().catch(() => null);
  if (!response?.ok) {
    shown.textContent = answer?.detail ?? "The server does not answer.";
    return;
  }
  const trial = answer.on_trial_ids.length ? `\n\nIn half of the sessions also: ${answer.on_trial_ids.join(", ")}` : "";
  shown.textContent = (answer.frame ?? "Nothing: no adaptation for it is enabled.") + trial;
}

/** Sends only what was changed, so that the rest stays as others leave it. */
function patch(form) {
  const changed = {};
  for (const name of ["title", "content"]) {
    if (form.elements[name].value !== form.elements[name].defaultValue) changed[name] = form.elements[name].value;
  }
  if (form.elements.enabled.checked !== form.elements.enabled.defaultChecked) changed.enabled = form.elements.enabled.checked;
  const before = [...form.elements.trial.options].find((option) => option.defaultSelected)?.value ?? "all";
  if (form.elements.trial.value !== before) changed.trial = form.elements.trial.value;
  return changed;
}

async function save(form) {
  const [saved, error] = [form.querySelector(".saved"), form.querySelector(".error")];
  saved.textContent = error.textContent = "";
  const changed = patch(form);
  if (Object.keys(changed).length === 0) {
    saved.textContent = "Nothing to save.";
    return;
  }
  const response = await fetch(`/api/adaptations/${encodeURIComponent(id)}${query()}`, {
    method: "PATCH",
    headers: { "Content-Type": "application/json", "If-Match": `"${page.dataset.version}"` },
    body: JSON.stringify(changed),
  }).catch(() => null);
  const answer = await response?.json().catch(() => null);
  if (!response?.ok) {
    const what = answer?.detail ?? "the server does not answer";
    error.textContent = `Not saved: ${what}. What you typed is still here.`;
    return;
  }
  page.dataset.version = answer.version;
  page.querySelector(".version").textContent = answer.version;
  const on = answer.trial ? "in half of the sessions" : "on";
  page.querySelector(".state").textContent = answer.enabled ? on : "off";
  form.elements.title.defaultValue = answer.title;
  form.elements.content.defaultValue = form.elements.content.value;
  form.elements.enabled.defaultChecked = answer.enabled;
  for (const option of form.elements.trial.options) option.defaultSelected = option.value === (answer.trial ?? "all");
  saved.textContent = "Saved. Sessions that start from now on get it.";
  preview();
}

/** Comparing sessions reads them: it takes a moment. */
async function effect() {
  const section = page.querySelector(".effect");
  const response = await fetch(`/adaptations/${encodeURIComponent(id)}/effect${query({ panel: 1 })}`).catch(() => null);
  if (!response?.ok) return;
  const template = document.createElement("template");
  template.innerHTML = await response.text();
  section.replaceChildren(section.firstElementChild, template.content);
}

async function decide(button) {
  const row = button.closest(".decide");
  const { decision, trial } = button.dataset;
  for (const other of row.querySelectorAll("button")) other.disabled = true;
  const response = await fetch("/api/proposals", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ number: Number(row.dataset.number), decision, ...(trial && { trial }) }),
  }).catch(() => null);
  if (response?.ok) return location.reload();
  const answer = await response?.json().catch(() => null);
  row.querySelector(".error").textContent = `Not done: ${answer?.detail ?? "the server does not answer"}.`;
  for (const other of row.querySelectorAll("button")) other.disabled = false;
}

document.querySelector(".proposals")?.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-decision]");
  if (button) decide(button);
});

if (page) {
  effect();
  page.querySelector(".preview-agent").addEventListener("change", preview);
  const form = page.querySelector(".adaptation-edit");
  form?.addEventListener("submit", (event) => { event.preventDefault(); save(form); });
  preview();
}
