// Keeps the page steady under a person's hands while it changes: a log follows what is new only where nobody is at
// work in it, a button that came to another place takes no press at first, and the focus does not fall out of it.
"use strict";

const AT_END = 60; // CSS pixels below that still count as none
const HOLD_MS = 10000; // after a press in a log, in which it stays where it is
const SETTLE_MS = 1000; // nobody means a button that has only just come to where they press
const BUTTONS = ".scrolls button, .scrolls a, .scrolls select, .scrolls summary, dialog button, .to-end";
const behind = new Set(); // the ids of logs with something new below
const settling = new WeakMap(); // button -> its timer
let touched = { log: "", at: -HOLD_MS };

const logs = () => [...document.querySelectorAll(".scrolls")];
const isAtEnd = (log) => log.scrollHeight - log.scrollTop - log.clientHeight < AT_END;
const newest = (log) => [...log.querySelectorAll("li.message")].pop()?.id || "";
const newestNote = (log) => [...log.querySelectorAll("li.message.private")].pop();
const noteOf = (log) => {
  const note = newestNote(log);
  return { id: note?.id || "", inView: !!note && isInView(log, note) };
};

const isInView = (log, one) => {
  const [all, at] = [log, one].map((element) => element.getBoundingClientRect());
  return at.top >= all.top - 1 && at.bottom <= all.bottom + 1;
};

// Whoever has the focus in a log, or pressed there a moment ago, is looking at something in it.
function isHeld(log) {
  const at = document.activeElement;
  if (at !== log && log.contains(at)) return true;
  return touched.log === log.id && performance.now() - touched.at < HOLD_MS;
}

// Lets `change` change the page.
function steadily(change) {
  const before = {
    logs: logs().map((log) => [log, isAtEnd(log), newest(log), noteOf(log)]),
    buttons: placesOfButtons(),
  };
  const focused = document.activeElement;
  const around = [focused.closest("li.message"), focused.closest(".scrolls")].map((one) => one?.id);
  change();
  for (const [log, ...was] of before.logs) follow(log, ...was);
  showBehind();
  if (document.activeElement === document.body && focused !== document.body) {
    around.map((id) => id && document.getElementById(id)).find(Boolean)?.focus({ preventScroll: true });
  }
  settleMoved(before.buttons);
}

function follow(log, wasAtEnd, last, before) {
  if (!log.isConnected) return;
  const note = newestNote(log);
  if (wasAtEnd && !isHeld(log)) log.scrollTop = log.scrollHeight;
  // what only this person sees is the answer to what they did there: it comes, and stays, before their eyes
  else if (note && isHeld(log) && (note.id > before.id || before.inView)) note.scrollIntoView({ block: "nearest" });
  if (newest(log) > last) behind.add(log.id);
  if (isAtEnd(log)) behind.delete(log.id);
}

function showBehind() {
  for (const button of document.querySelectorAll(".to-end")) button.hidden = !behind.has(button.dataset.log);
}

function toEnd(log) {
  touched = { log: "", at: -HOLD_MS };
  steadily(() => { log.scrollTop = log.scrollHeight; });
}

function placesOfButtons() {
  const shown = [...document.querySelectorAll(BUTTONS)].map((button) => [button, button.getBoundingClientRect()]);
  return new Map(
    shown
      .filter(([, at]) => at.width)
      .map(([button, at]) => [button, { top: at.top, left: at.left, does: button.textContent }]),
  );
}

function settleMoved(before) {
  for (const [button, now] of placesOfButtons()) {
    const old = before.get(button);
    const changed = old && old.does !== now.does;
    if (old && !changed && Math.abs(old.top - now.top) < 4 && Math.abs(old.left - now.left) < 4) continue;
    button.dataset.moved = changed ? "changed" : "yes";
    clearTimeout(settling.get(button));
    settling.set(button, setTimeout(() => button.removeAttribute("data-moved"), SETTLE_MS));
  }
}

document.addEventListener(
  "click",
  (event) => {
    // the style lets no pointer reach what has moved; the keyboard reaches it, and may press what is the same
    // (the script's own press of a button, for Escape, is no mistake)
    if (event.isTrusted && event.target.closest("[data-moved=changed]")) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
    const log = event.target.closest(".scrolls");
    if (log) touched = { log: log.id, at: performance.now() };
  },
  true,
);
document.addEventListener("click", (event) => {
  const button = event.target.closest(".to-end");
  if (!button) return;
  const log = document.getElementById(button.dataset.log);
  log.focus({ preventScroll: true });
  toEnd(log);
});
document.addEventListener(
  "scroll",
  ({ target }) => {
    if (!behind.has(target.id) || !isAtEnd(target)) return;
    behind.delete(target.id);
    showBehind();
  },
  true,
);
