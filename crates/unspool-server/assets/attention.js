// Tells when an agent waits or is done: in the tab's title and icon on every page, and as a
// notification of the browser if that is allowed. The server decides what is worth telling.

import { addAction, notify } from "./actions.js";

const title = document.title;
const icon = document.querySelector("link[rel=icon]");
const isList = document.querySelector("[data-list]") !== null;
// Other tabs need this long to say that somebody looks at the session there.
const OTHER_TABS_MS = 300;

const isLooking = (session) => document.visibilityState === "visible" && document.hasFocus()
  && (isList || location.pathname === `/s/${session}`);
const isAllowed = () => "Notification" in window && Notification.permission === "granted";
const isOn = () => isAllowed() && localStorage.getItem("notify") !== "off";

// What the session of this page waits for, where the eye is while one follows it.
const bar = document.createElement("div");
bar.className = "waiting-bar";
bar.hidden = true;
bar.setAttribute("role", "status");
document.body.append(bar);

function showBar(own) {
  bar.hidden = !own;
  if (!own) return;
  const what = Object.assign(document.createElement("code"), { textContent: own.what });
  const there = Object.assign(document.createElement("span"), { className: "answer-there", textContent: "Answer in the agent’s terminal." });
  const here = Object.assign(document.createElement("button"), { className: "answer-here", type: "button", textContent: "Show the question" });
  here.addEventListener("click", () => document.querySelector(".ask")?.scrollIntoView({ block: "center" }));
  bar.replaceChildren("Waiting for you: ", what, ". ", there, here);
}

function showWaiting(waiting) {
  const own = waiting.find(({ session }) => location.pathname === `/s/${session}`);
  showBar(own);
  if (own) document.title = `Waiting: ${own.what} · ${title}`;
  else document.title = waiting.length > 0 ? `(${waiting.length} waiting) ${title}` : title;
  const name = waiting.length > 0 ? "/assets/icon-waiting.svg" : "/assets/icon.svg";
  if (icon && icon.getAttribute("href") !== name) icon.setAttribute("href", name);
}

/** One notification for an alert, whatever the number of tabs; none for what somebody looks at. */
function raise({ session, since, headline, text }) {
  const key = `alert:${session}:${since ?? text}`;
  const done = () => localStorage.getItem(key) !== null;
  const settle = () => {
    localStorage.setItem(key, String(Date.now()));
    forgetOld();
  };
  if (isLooking(session)) { settle(); return; }
  if (!isOn()) return;
  setTimeout(() => {
    if (done()) return;
    settle();
    const shown = new Notification(headline, { body: text, tag: key, icon: "/assets/icon-waiting.svg" });
    shown.onclick = () => {
      window.focus();
      location.href = `/s/${session}`;
    };
  }, OTHER_TABS_MS);
}

function forgetOld() {
  const day = 24 * 60 * 60 * 1000;
  for (const key of Object.keys(localStorage)) {
    if (key.startsWith("alert:") && Date.now() - Number(localStorage.getItem(key)) > day) localStorage.removeItem(key);
  }
}

/** Handles a message of the list's socket. Returns false if it is about something else. */
export function takeAttention(message) {
  if (message.type === "attention") showWaiting(message.waiting);
  else if (message.type === "alert") raise(message);
  else return false;
  return true;
}

// ---- the switch ----

const button = document.querySelector(".notify");

function showSwitch() {
  if (!button) return;
  button.hidden = !("Notification" in window);
  button.setAttribute("aria-pressed", String(isOn()));
  button.title = isOn() ? "Notifications are on; click to turn them off" : "Notify me when an agent waits for me or is done";
}

async function toggle() {
  if (isOn()) {
    localStorage.setItem("notify", "off");
    notify("Notifications are off");
  } else {
    localStorage.removeItem("notify");
    const answer = await Notification.requestPermission();
    notify(answer === "granted" ? "You will be notified when an agent waits for you or is done"
      : "This browser does not allow notifications for this page; allow them in its site settings");
  }
  showSwitch();
}

button?.addEventListener("click", toggle);
showSwitch();
addAction({ name: "Turn notifications on or off", keys: "", run: toggle, everywhere: true });

// ---- pages without a list ----

let wait = 250;

function connect() {
  const address = new URL("/api/live", location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(address);
  socket.onopen = () => {
    wait = 250;
    socket.send(JSON.stringify({ subscribe: "sessions", attention_only: true }));
  };
  socket.onmessage = ({ data }) => takeAttention(JSON.parse(data));
  socket.onclose = () => {
    setTimeout(connect, wait);
    wait = Math.min(wait * 2, 10_000);
  };
}

if (!isList) connect();
