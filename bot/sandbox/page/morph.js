// Puts new markup in place of old: nodes that are still there stay the same nodes.
"use strict";

// attributes that the browser, or this page's script, gives to a node
const OWN = ["open", "style", "aria-busy", "data-moved", "inert"];

// An input block is known by its field: others may come before it while somebody types into it. A button is
// known by its words: the focus must not stay on one that becomes another.
function keyOf(node) {
  if (node.nodeName === "BUTTON" && node.name) return node.textContent;
  return node.id || (node.classList?.contains("input") && node.querySelector("label")?.htmlFor) || "";
}

function morph(old, made) {
  if (old.nodeType !== made.nodeType || old.nodeName !== made.nodeName || keyOf(old) !== keyOf(made)) {
    old.replaceWith(made);
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== made.nodeValue) old.nodeValue = made.nodeValue;
    return;
  }
  for (const { name } of [...old.attributes]) {
    const kept = OWN.includes(name);
    if (!kept && !made.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of [...made.attributes]) {
    const kept = name === "open" && old.nodeName === "DIALOG";
    if (!kept && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  morphChildren(old, made);
}

function morphChildren(old, made) {
  let at = old.firstChild;
  for (const wanted of [...made.childNodes]) {
    const key = keyOf(wanted);
    let known = key ? at : null;
    while (known && keyOf(known) !== key) known = known.nextSibling;
    while (known && at && at !== known) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
    const next = at ? at.nextSibling : null;
    if (!at || (keyOf(at) && keyOf(at) !== key)) old.insertBefore(wanted, at);
    else {
      morph(at, wanted);
      at = next;
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}
