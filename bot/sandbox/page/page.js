// Makes the page live: forms are sent without leaving it, and what has changed is put in place of what was
// there, without losing what is being typed, the scroll position or the focus. Without it the page works too.
"use strict";

const one = (id) => document.getElementById(id);
let version = Number(document.body.dataset.version);
let stream = null;
let opener = null; // finds what had the focus before a window opened
let pressed = null; // finds the button that was pressed last
let isAway = false; // whether the workspace does not answer, and whether that is said
let isLost = false;
const LOST = "The workspace does not answer: is the demo still running?";
const RETRY_MS = 3000;
window.name ||= crypto.randomUUID(); // stays with the window when its page is loaded anew
const KEPT_IN_REACH = new Set(["windows", "notices"]); // beside an open drawer

function replaceInside(id, made) {
  if (!one(id)) return;
  if (id === "windows") keepOwn(made);
  morphChildren(one(id), made);
  if (id === "windows") showWindows();
}

// A person may have the page open more than once: a modal is open only where they asked for it.
function keepOwn(windows) {
  for (const dialog of windows.querySelectorAll("dialog[data-window]")) {
    if (dialog.dataset.window !== window.name) dialog.remove();
  }
}

// Windows: real modal dialogs, with the focus inside, and back where it was afterwards.
function showWindows() {
  const windows = [...document.querySelectorAll("dialog")];
  for (const dialog of windows) {
    if (!dialog.matches(":modal")) {
      opener = opener || pressed || (() => null);
      dialog.removeAttribute("open");
      dialog.showModal();
    }
    // a window may open empty and be filled a moment later
    const first = dialog.querySelector("[autofocus], .block input, .block textarea, .block select");
    if (first && !dialog.querySelector(".block :focus, .banner")) enter(dialog, first);
  }
  const wrong = document.querySelector("dialog [aria-invalid=true]");
  if (wrong && !wrong.dataset.told) {
    wrong.focus();
    wrong.dataset.told = "yes";
  }
  if (!windows.length && opener) {
    const back = opener();
    opener = null;
    if (back && !back.matches("li")) back.focus();
    else (back || one("stream")).focus({ preventScroll: true });
  }
}

// A window is read from its top: where its first field is further down, all of it has the focus.
function enter(dialog, first) {
  const all = dialog.querySelector(".blocks");
  const isBelow = first.getBoundingClientRect().bottom > all.getBoundingClientRect().bottom;
  (isBelow ? all : first).focus({ preventScroll: isBelow });
}

function nameOf(element) {
  const message = element.closest("li.message");
  const value = element.getAttribute("value");
  if (!message || !value) return () => (element.isConnected ? element : message && one(message.id));
  return () => {
    const there = one(message.id);
    return there && (there.querySelector(`[value=${CSS.escape(value)}]`) || there);
  };
}

// Sending forms.
document.addEventListener("submit", (event) => {
  const form = event.target;
  const button = event.submitter;
  if (form.method !== "post") return;
  event.preventDefault();
  if (button && !button.closest("dialog")) pressed = nameOf(button);
  const address = button && button.hasAttribute("formaction") ? button.formAction : form.action;
  const body = new URLSearchParams(new FormData(form, button));
  body.set("window", window.name);
  const field = form.classList.contains("composer") ? form.querySelector("textarea") : null;
  const typed = field ? field.value : "";
  if (field) {
    field.defaultValue = "";
    field.value = "";
  }
  send(address, body, button, form.closest("#window-question")).then((done) => {
    if (done && field) toEnd(form.parentElement.querySelector(".scrolls"));
    if (!done && field && !field.value) field.value = typed;
  });
});

// `answered` is the question that the form stands in, if it does.
async function send(address, body, button, answered) {
  if (button) button.setAttribute("aria-busy", "true");
  say("");
  document.querySelector("dialog .banner")?.remove(); // if it comes again, it is read out again
  try {
    const answer = await fetch(address, { method: "POST", body });
    const made = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!answer.ok) {
      say(refusal(made, answer));
      return false;
    }
    arrive(answer.url, made, answered);
    return true;
  } catch {
    lose();
    return false;
  } finally {
    if (button) button.removeAttribute("aria-busy");
  }
}

function refusal(made, answer) {
  return made.querySelector("[role=alert]")?.textContent || `The workspace answered ${answer.status}.`;
}

function arrive(url, made, answered) {
  const there = new URL(url);
  const failed = made.getElementById("notices").textContent;
  for (const name of ["failed", "ask", "where"]) there.searchParams.delete(name);
  const moved = there.search !== location.search;
  if (moved) {
    history.pushState(null, "", there);
    closeDrawers(); // the menu that led away has done its work
  }
  if (answered || moved) one("window-question")?.remove();
  if (moved || Number(made.body.dataset.version) >= version) {
    version = Number(made.body.dataset.version);
    document.title = made.title;
    document.body.className = made.body.className;
    const parts = ["bar", "rail", "main", "thread", "windows", "surroundings"];
    keepQuestion(made.getElementById("windows"));
    steadily(() => parts.forEach((id) => morphWhole(id, made)));
  } else ask(made.getElementById("window-question"));
  say(failed);
  if (moved) listen();
}

function closeDrawers() {
  for (const drawer of document.querySelectorAll(":popover-open")) drawer.hidePopover();
}

// A question is the browser's own: nothing that happens takes it away but its answer, or leaving.
function keepQuestion(windows) {
  const question = one("window-question");
  if (question && !windows.querySelector("#window-question")) windows.append(question.cloneNode(true));
}

// The page may be ahead of the answer that asks, and of the windows in it.
function ask(question) {
  const open = one("window-question");
  if (question && open) morph(open, question);
  else if (question) one("windows").append(question);
  showWindows();
}

function morphWhole(id, made) {
  const whole = made.getElementById(id);
  if (!whole) return;
  if (id === "main" || id === "thread") morph(one(id), whole);
  else replaceInside(id, whole);
}

function say(sentence) {
  const notices = one("notices");
  notices.replaceChildren();
  for (const old of document.querySelectorAll("[data-said]")) old.remove();
  isLost = false;
  if (!sentence) return;
  const said = document.createElement("p");
  said.textContent = sentence;
  said.dataset.said = "yes";
  // inside an open window or drawer, because everything behind it is out of reach
  const buttons = document.querySelector("dialog:modal .row.end");
  const drawer = document.querySelector(":popover-open");
  if (buttons || drawer) {
    said.className = "banner";
    said.setAttribute("role", "alert");
  }
  if (buttons) buttons.before(said);
  else (drawer || notices).prepend(said);
}

// Keys and small comforts.
document.addEventListener("keydown", (event) => {
  const field = event.target;
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || !field.closest(".composer textarea")) return;
  event.preventDefault();
  if (field.value.trim()) field.form.requestSubmit(field.form.querySelector(".primary"));
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-insert]");
  if (!button) return;
  const field = one(button.dataset.into);
  if (!field.value.includes(button.dataset.insert.trim())) {
    field.setRangeText(button.dataset.insert, 0, 0, "end");
    field.selectionStart = field.selectionEnd = field.value.length;
  }
  field.focus();
});
// A drawer that is open is all there is: the Tab key does not lead to what lies dimmed behind it.
for (const [name, state] of [["toggle", "open"], ["beforetoggle", "closed"]]) {
  document.addEventListener(
    name,
    ({ target, newState }) => {
      if (newState !== state || !target.popover) return;
      const behindIt = [...document.body.children].filter((one) => one !== target && !KEPT_IN_REACH.has(one.id));
      for (const one of behindIt) one.inert = state === "open";
      if (state === "open") target.focus();
    },
    true,
  );
}
// Where the page gets another layout, what was a drawer may stand beside it: it would hold the page inert.
for (const width of ["72rem", "44rem"]) {
  matchMedia(`(max-width: ${width})`).addEventListener("change", closeDrawers);
}
document.addEventListener("change", (event) => {
  const acting = event.target.closest(".acting");
  if (acting && !event.target.multiple) acting.querySelector(".choose").click();
});
document.addEventListener(
  "cancel",
  (event) => {
    const closes = event.target.querySelector && event.target.querySelector("[data-closes]");
    if (!closes) return;
    event.preventDefault();
    closes.click();
  },
  true,
);
document.addEventListener("click", (event) => {
  const deny = event.target.closest("#window-question a[data-closes]");
  if (!deny) return;
  event.preventDefault();
  one("window-question").remove();
  showWindows();
});

// Following what happens.
function listen() {
  if (stream) stream.close();
  stream = null;
  if (document.hidden) return;
  stream = new EventSource("/live" + location.search);
  // after a restart of the sandbox its versions begin anew
  stream.onerror = () => {
    version = 0;
    if (!isAway) lose();
    isAway = true;
    // a browser tries again by itself, but not after a refusal
    if (stream.readyState === EventSource.CLOSED) setTimeout(askAgain, RETRY_MS);
  };
  stream.onopen = find;
  stream.onmessage = (event) => {
    find();
    const news = JSON.parse(event.data);
    if (news.version < version) return;
    version = news.version;
    steadily(() => Object.entries(news.regions).forEach(([id, markup]) => bring(id, markup)));
  };
}

async function askAgain() {
  try {
    const answer = await fetch(location.href);
    if (answer.ok) return listen();
    say(refusal(new DOMParser().parseFromString(await answer.text(), "text/html"), answer));
  } catch {
    listen();
  }
}

function lose() {
  say(LOST);
  isLost = true;
}

function find() {
  isAway = false;
  if (isLost) say("");
}

function bring(id, markup) {
  const made = document.createElement("template");
  made.innerHTML = markup;
  if (id === "windows") keepQuestion(made.content);
  replaceInside(id, made.content);
}
document.addEventListener("visibilitychange", listen);
window.addEventListener("popstate", () => location.reload());
window.addEventListener("pageshow", (event) => event.persisted && location.reload());
window.addEventListener("pagehide", () => stream && stream.close());

document.documentElement.classList.add("scripted");
// the times on the page are those of this machine: what is followed comes in its zone
document.cookie = `zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}; path=/; samesite=strict`;
const clean = new URL(location.href);
clean.searchParams.delete("failed");
if (clean.href !== location.href) history.replaceState(null, "", clean);
for (const log of document.querySelectorAll(".scrolls")) showNewest(log);
keepOwn(one("windows"));
if (location.hash) one(location.hash.slice(1))?.scrollIntoView();
showWindows();
listen();
