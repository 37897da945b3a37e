// Keeps the page steady under a person's hands while it changes: a log follows what is new only where nobody is at
// work in it, a button that came to another place takes no press at first, and the focus does not fall out of it.
// What is too long for its log is shown from its top, and so is what a press has changed.
"use strict";

const AT_END = 60; // CSS pixels below that still count as none
const HOLD_MS = 10000; // after a press in a log, in which it stays where it is
const SETTLE_MS = 1000; // nobody means a button that has only just come to where they press
const BUTTONS = ".scrolls button, .scrolls a, .scrolls select, .scrolls summary, dialog button, .to-end";
const behind = new Map(); // the id of a log with something new below -> that of the first new message in it
const settling = new WeakMap(); // button -> its timer
let touched = { log: "", at: -HOLD_MS };
let lastPress = { message: "", button: "" }; // the id of the message, and the words of the button in it

const logs = () => [...document.querySelectorAll(".scrolls")];
const isAtEnd = (log) => log.scrollHeight - log.scrollTop - log.clientHeight < AT_END;
const messages = (log) => [...log.querySelectorAll("li.message")];
const newestOf = (log) => messages(log).pop();
const newestNote = (log) => [...log.querySelectorAll("li.message.private")].pop();
const isForAll = (one) => !one.classList.contains("private");
const topOf = (one) => one.getBoundingClientRect().top;
const isCutAtTop = (log, one) => topOf(one) < topOf(log) - 1;

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

// The end of the log; but what one is to read is never cut at its top.
function showEnd(log, one) {
  log.scrollTop = log.scrollHeight;
  if (one && isCutAtTop(log, one)) one.scrollIntoView({ block: "start" });
}

// Whoever comes sees the end: from its top what is too long for the log, or still to be pressed.
function showNewest(log) {
  log.scrollTop = log.scrollHeight;
  const card = messages(log).filter((one) => one.querySelector(".block.actions button")).pop();
  const isThere = log.id === "stream" && card && card.getBoundingClientRect().bottom > topOf(log);
  showEnd(log, isThere ? card : newestOf(log));
}

// Lets `change` change the page.
function steadily(change) {
  const before = { logs: logs().map(lookAt), buttons: placesOfButtons() };
  const focused = document.activeElement;
  const around = [focused.closest("li.message"), focused.closest(".scrolls")].map((one) => one?.id);
  change();
  const there = before.logs.filter(({ log }) => log.isConnected);
  there.forEach(noteNew);
  showBehind(); // first, because it takes room from the log
  there.forEach(follow);
  there.forEach(({ log }) => forgetSeen(log));
  showBehind();
  if (document.activeElement === document.body && focused !== document.body) {
    around.map((id) => id && document.getElementById(id)).find(Boolean)?.focus({ preventScroll: true });
  }
  settleMoved(before.buttons);
}

function lookAt(log) {
  const [newest, note, card] = [newestOf(log), newestNote(log), pressedCard(log)];
  return {
    log,
    wasAtEnd: isAtEnd(log),
    newest: newest?.id || "",
    read: newest && !isCutAtTop(log, newest) ? newest : null,
    note: note?.id || "",
    noteInView: !!note && isInView(log, note),
    isDecided: !!card && isDecided(card),
    cardFromTop: !!card && !isCutAtTop(log, card),
  };
}

// The message in which a button was pressed last.
function pressedCard(log) {
  const card = document.getElementById(lastPress.message);
  return card && log.contains(card) ? card : null;
}

// It has been if the button that was pressed is gone.
const isDecided = (card) =>
  ![...card.querySelectorAll(".block button")].some((one) => one.textContent === lastPress.button);

function newSince(log, id) {
  const made = messages(log).filter((one) => one.id > id);
  return made.find(isForAll) || made[0];
}

function noteNew({ log, wasAtEnd, newest }) {
  const first = newSince(log, newest);
  if (!first || (wasAtEnd && !isHeld(log))) return;
  const known = document.getElementById(behind.get(log.id));
  if (!known || (!isForAll(known) && isForAll(first))) behind.set(log.id, first.id);
}

function follow({ log, wasAtEnd, newest, read, note, noteInView, isDecided: wasDecided, cardFromTop }) {
  if (!isHeld(log)) {
    if (wasAtEnd) showEnd(log, newSince(log, newest) || (read?.isConnected ? read : null));
    return;
  }
  // what only this person sees is the answer to what they did there: it comes, and stays, before their eyes
  const answer = newestNote(log);
  if (answer && (answer.id > note || noteInView)) answer.scrollIntoView({ block: "nearest" });
  // and before it what their press has changed: the card from its top
  const card = pressedCard(log);
  const shown = card && isDecided(card) && (!wasDecided || cardFromTop);
  if (shown && isCutAtTop(log, card)) card.scrollIntoView({ block: "start" });
}

// The first new message is seen when all of it is, or when it has come up to the middle.
function forgetSeen(log) {
  const first = document.getElementById(behind.get(log.id));
  const isUp = first && (isInView(log, first) || topOf(first) < topOf(log) + log.clientHeight / 2);
  if (!first || isUp || isAtEnd(log)) behind.delete(log.id);
}

function showBehind() {
  for (const button of document.querySelectorAll(".to-end")) {
    const first = document.getElementById(behind.get(button.dataset.log));
    const title = first?.querySelector(".block.header")?.textContent;
    button.hidden = !first;
    button.querySelector(".what").textContent = title ? `New: ${title}` : "New messages";
  }
}

function toEnd(log) {
  touched = { log: "", at: -HOLD_MS };
  steadily(() => showEnd(log));
}

// On to the first new message, and further where the rest fits.
function goOn(log) {
  const first = document.getElementById(behind.get(log.id));
  behind.delete(log.id);
  showBehind();
  touched = { log: "", at: -HOLD_MS };
  steadily(() => showEnd(log, first));
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
    // a window belongs to the card whose button opened it, however long it was open
    if (event.target.closest("dialog")) touched.at = performance.now();
    const button = event.target.closest("li.message .block button");
    if (button) lastPress = { message: button.closest("li.message").id, button: button.textContent };
  },
  true,
);
document.addEventListener("click", (event) => {
  const button = event.target.closest(".to-end");
  if (!button) return;
  const log = document.getElementById(button.dataset.log);
  log.focus({ preventScroll: true });
  goOn(log);
});
document.addEventListener(
  "scroll",
  ({ target }) => {
    if (!behind.has(target.id)) return;
    forgetSeen(target);
    showBehind();
  },
  true,
);
