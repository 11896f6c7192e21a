// What a page does beyond links and forms: keys, and hearing that the vault has changed. Everything works without it.
"use strict";

const find = (selector, within = document) => within.querySelector(selector);
const findAll = (selector, within = document) => [...within.querySelectorAll(selector)];

// -- keys ----------------------------------------------------------------------------------------

const rows = () => findAll("[data-row]");
const chosen = () => find("[data-row].chosen");

let kept = null;

function choose(step) {
  const all = rows();
  if (!all.length) return;
  const place = all.indexOf(chosen());
  const next = all[Math.max(0, Math.min(all.length - 1, place < 0 ? (step > 0 ? 0 : all.length - 1) : place + step))];
  all.forEach((row) => row.classList.toggle("chosen", row === next));
  const link = find("a[data-main]", next);
  if (link) { link.focus({ preventScroll: true }); kept = link.getAttribute("href"); }
  next.scrollIntoView({ block: "nearest" });
}

function press(selector) {
  const within = chosen();
  const target = (within && find(selector, within)) || find(`main ${selector}`);
  if (target) target.click();
  return Boolean(target);
}

const KEYS = {
  "/": () => { const box = find("#q"); if (!box) { location.assign("/"); return; } box.focus(); box.select(); },
  j: () => choose(1),
  k: () => choose(-1),
  ArrowDown: () => chosen() && choose(1),
  ArrowUp: () => chosen() && choose(-1),
  n: () => location.assign("/new"),
  e: () => press("[data-key=e]"),
  o: () => press("[data-key=o]"),
  a: () => press("[data-key=a]"),
  r: () => press("[data-key=r]"),
  "?": () => find("#keys").showModal(),
  g: () => { going = Date.now(); },
};
const PLACES = { s: "/", b: "/browse", r: "/review", g: "/graph", h: "/health", l: "/sessions" };
let going = 0;

document.addEventListener("keydown", (event) => {
  const form = find("form[data-editor]");
  if (form && (event.ctrlKey || event.metaKey) && event.key === "s") { event.preventDefault(); form.requestSubmit(); return; }
  if (completing(event)) return;
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const field = event.target.closest("input, textarea, select");
  if (field) {
    if (event.key === "Escape") field.blur();
    else if (field.id === "q" && event.key === "ArrowDown" && rows().length) { event.preventDefault(); field.blur(); choose(1); }
    return;
  }
  if (find("dialog[open]")) return;
  if (going && Date.now() - going < 1500 && PLACES[event.key]) { location.assign(PLACES[event.key]); return; }
  going = 0;
  if (event.key === "Enter" && chosen() && document.activeElement === document.body) { press("a[data-main]"); return; }
  const act = KEYS[event.key];
  if (act && act() !== false && !event.key.startsWith("Arrow")) event.preventDefault();
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-keys]")) find("#keys").showModal();
  if (event.target.closest("[data-close]")) event.target.closest("dialog").close();
});

// Asked twice before something is taken out of use.
document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

// What was chosen stays chosen when the list is drawn anew.
document.addEventListener("htmx:after:swap", () => {
  const row = kept && !chosen() && rows().find((one) => { const link = find("a[data-main]", one); return link && link.getAttribute("href") === kept; });
  if (!row) return;
  row.classList.add("chosen");
  if (document.activeElement === document.body) find("a[data-main]", row).focus({ preventScroll: true });
});

// -- completion of [[names and #tags while writing ------------------------------------------------

let offered = [];
let picked = 0;

function draw() {
  const list = find("#names");
  list.hidden = !offered.length;
  list.replaceChildren(...offered.map((one, place) => {
    const item = document.createElement("li");
    item.role = "option";
    item.textContent = one.label;
    item.ariaSelected = String(place === picked);
    item.addEventListener("mousedown", (event) => { event.preventDefault(); picked = place; take(); });
    return item;
  }));
}

function opening(field) {
  if (field.matches("[data-names]")) return field.value.trim() && [`[[${field.value}`, field.value];
  const before = field.value.slice(0, field.selectionStart);
  return before.match(/\[\[([^\[\]|#\n]{0,60})$/) || before.match(/(?:^|\s)#([\p{L}\d/_-]{1,40})$/u);
}

function take() {
  const field = find("[data-complete], [data-names]"), found = opening(field), one = offered[picked];
  offered = [];
  draw();
  if (!found || !one) return;
  if (field.matches("[data-names]")) { field.value = one.text; field.form.requestSubmit(); return; }
  const isLink = found[0].startsWith("[["), end = field.selectionStart, rest = field.value.slice(end);
  const closing = isLink && !rest.startsWith("]]") ? "]]" : "";
  const shown = isLink && one.label.toLowerCase() !== one.text.toLowerCase() ? `|${one.label.replace(/[[\]|#^\\]/g, "")}` : "";
  field.setRangeText(`${one.text}${shown}${closing}`, end - found[1].length, end, "end");
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

function completing(event) {
  if (!offered.length || !event.target.matches("[data-complete], [data-names]")) return false;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") picked = (picked + (event.key === "ArrowDown" ? 1 : -1) + offered.length) % offered.length;
  else if (event.key === "Enter" || event.key === "Tab") { event.preventDefault(); take(); return true; }
  else if (event.key === "Escape") offered = [];
  else return false;
  event.preventDefault();
  draw();
  return true;
}

document.addEventListener("input", async (event) => {
  const field = event.target;
  if (!field.matches("[data-complete], [data-names]")) return;
  const found = opening(field);
  if (!found) { if (offered.length) { offered = []; draw(); } return; }
  const answer = await fetch(`/entry/names?${new URLSearchParams({ word: found[1], tag: found[0].startsWith("[[") ? "" : "1" })}`);
  const now = opening(field);
  if (!answer.ok || !now || now[0] !== found[0]) return;
  offered = await answer.json();
  picked = 0;
  draw();
});

// -- hearing of changes ---------------------------------------------------------------------------

let known = null;

// The number of the state of the index, asked for while somebody looks at the page.
async function look() {
  if (document.hidden) return;
  const before = known;
  try {
    const answer = await fetch("/generation");
    if (answer.ok && !answer.redirected) known = await answer.text();
  } catch { return; } // the server has ended, or the page is being left
  if (before !== null && before !== known) changed();
}

function changed() {
  const form = find("form[data-was]");
  if (form) { compare(form); return; }
  document.body.dispatchEvent(new CustomEvent("vault-changed"));
}

async function compare(form) {
  const answer = await fetch(`/entry/hash?${new URLSearchParams({ id: form.elements.id.value, at: form.elements.at.value })}`);
  const same = answer.ok && (await answer.json()).hash === form.dataset.was;
  find("#moved").hidden = same;
}

setInterval(look, 1000);
document.addEventListener("visibilitychange", look);
look();

// Unsaved words are not lost by a wrong key.
document.addEventListener("input", (event) => { const form = event.target.closest("form[data-was]"); if (form) form.dataset.dirty = "1"; });
window.addEventListener("beforeunload", (event) => { const form = find("form[data-was][data-dirty]"); if (form && !form.dataset.sent) event.preventDefault(); });
document.addEventListener("submit", (event) => { if (event.target.dataset.was && !event.defaultPrevented) event.target.dataset.sent = "1"; });

// -- diagrams: drawn in a frame that is loaded only where there are any, shown as pictures above their text ----

let frame = null;
let drawn = [];

function drawDiagrams() {
  const blocks = findAll("pre > code.language-mermaid:not([data-drawn])");
  if (!blocks.length) return;
  if (!frame) {
    frame = document.createElement("iframe");
    Object.assign(frame, { src: "/diagram", className: "drawing", title: "Draws the diagrams", tabIndex: -1, ariaHidden: "true" });
    document.body.append(frame);
  } else if (frame.dataset.ready) blocks.forEach(send);
}

function send(block) {
  block.dataset.drawn = "1";
  const isDark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  frame.contentWindow.postMessage({ number: drawn.push(block) - 1, text: block.textContent, isDark }, location.origin);
}

window.addEventListener("message", ({ origin, source: sender, data }) => {
  if (!frame || origin !== location.origin || sender !== frame.contentWindow) return;
  if (data.isReady) { frame.dataset.ready = "1"; drawDiagrams(); return; }
  const block = drawn[data.number].closest("pre");
  const shown = document.createElement(data.svg ? "img" : "p");
  if (data.svg) Object.assign(shown, { src: `data:image/svg+xml,${encodeURIComponent(data.svg)}`, width: data.width, height: data.height, alt: "Diagram; its text follows" });
  else Object.assign(shown, { className: "bad small", textContent: `No diagram: ${data.problem}` });
  block.before(shown);
  if (!data.svg) return;
  const details = document.createElement("details");
  details.append(Object.assign(document.createElement("summary"), { textContent: "Its text" }));
  block.replaceWith(details);
  details.append(block);
});

document.addEventListener("DOMContentLoaded", drawDiagrams);
document.addEventListener("htmx:after:swap", drawDiagrams);
