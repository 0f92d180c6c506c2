// The sheet's script. Every text of a case is set as text, never as markup; nothing leaves the page but the file that is downloaded.
"use strict";
const sheet = JSON.parse(document.getElementById("data").textContent);
const key = "helmbench-sheet-" + sheet.sheet;
const by = id => document.getElementById(id);
const state = { labels: {}, notes: {}, at: 0, rater: sheet.rater };
let shown = "gate", kept = true, criterion = null;

function restore() {
  try {
    const saved = JSON.parse(localStorage.getItem(key)) || {};
    for (const part of ["labels", "notes"]) if (saved[part] && typeof saved[part] === "object") state[part] = saved[part];
    if (Number.isInteger(saved.at) && saved.at >= 0 && saved.at < sheet.items.length) state.at = saved.at;
    if (!sheet.rater && typeof saved.rater === "string") state.rater = saved.rater;
  } catch { /* what can't be read is no reason not to label; the first save says whether this browser keeps anything */ }
}

function save() {
  try {
    localStorage.setItem(key, JSON.stringify(state));
    kept = true;
  } catch {
    kept = false;
    by("status").textContent = "This browser keeps nothing: download your labels before you close the page.";
  }
}

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

const current = () => sheet.items[state.at];
const given = () => sheet.items.filter(i => i.item in state.labels).length;

function show(view) {
  shown = view;
  for (const id of ["gate", "pause", "sheet"]) by(id).hidden = id !== view;
  window.scrollTo(0, 0);
  if (view === "sheet") draw(true); else by(view === "gate" ? "begin" : "resume").focus();
}

function drawCriterion(name) {
  const own = sheet.criteria[name];
  by("title").textContent = own.title;
  by("text").replaceChildren(...own.text.map(block => {
    if (block.heading) return element("h3", block.heading);
    if (block.text) return element("p", block.text);
    const list = element("ul");
    list.append(...block.list.map(line => {
      const item = element("li"), label = own.labels.find(l => line.startsWith(l + ":"));
      if (label) item.append(element("strong", label), line.slice(label.length)); else item.textContent = line;
      return item;
    }));
    return list;
  }));
  by("labels").replaceChildren(...own.labels.map((label, n) => {
    const button = element("button");
    button.type = "button";
    button.append(element("kbd", String(n + 1)), " " + label);
    button.addEventListener("click", () => choose(n));
    return button;
  }));
  by("criterion").open = true; // a new rubric is read before the first reply
}

function draw(moved) {
  const item = current(), own = sheet.criteria[item.criterion];
  if (criterion !== item.criterion) drawCriterion(criterion = item.criterion);
  by("progress").textContent = `${given()} of ${sheet.items.length} labelled`;
  by("bar").max = sheet.items.length;
  by("bar").value = given();
  [...by("labels").children].forEach((button, n) => button.setAttribute("aria-pressed", String(state.labels[item.item] === own.labels[n])));
  by("back").disabled = state.at === 0;
  by("on").disabled = state.at === sheet.items.length - 1;
  by("ungiven").disabled = given() === sheet.items.length;
  by("clear").disabled = !(item.item in state.labels);
  if (!moved) return;
  by("where").textContent = `Reply ${state.at + 1} of ${sheet.items.length}`;
  by("facts").hidden = !item.facts.length;
  by("facts").replaceChildren(...item.facts.map(fact => element("p", fact)));
  by("said").replaceChildren(...item.said.flatMap((text, n) => [element("h2", n % 2 ? "Earlier reply" : "Message"), element("div", text, "quote")]));
  by("reply").textContent = item.reply;
  by("note").value = state.notes[item.item] || "";
  by("status").textContent = "";
  window.scrollTo(0, 0);
  by("where").focus({ preventScroll: true });
}

function go(to) {
  if (to < 0 || to >= sheet.items.length || to === state.at) return;
  state.at = to;
  draw(true);
  save();
}

function choose(n) {
  const label = sheet.criteria[current().criterion].labels[n];
  if (label === undefined) return;
  state.labels[current().item] = label;
  draw(false);
  by("status").textContent = given() === sheet.items.length ? `${label}. Every reply has a label: download the labels.` : label;
  save();
}

function clear() {
  if (!(current().item in state.labels)) return;
  delete state.labels[current().item];
  draw(false);
  by("status").textContent = "No label.";
  save();
}

function ungiven() {
  const n = sheet.items.length;
  for (let step = 1; step <= n; step++) {
    const to = (state.at + step) % n;
    if (!(sheet.items[to].item in state.labels)) return go(to);
  }
}

function download() {
  // Replies without a label are in the file too, so that the import can say what is missing.
  const lines = sheet.items.map(i => JSON.stringify({
    item: i.item, label: state.labels[i.item] ?? null, note: state.notes[i.item] || null, rater: state.rater || null, seed: sheet.seed, sheet: sheet.sheet,
  }));
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "application/jsonl" }));
  const name = (state.rater.match(/[\p{L}\p{N}]+/gu) || [sheet.sheet]).join("-");
  link.download = `labels-${name}.jsonl`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  by("status").textContent = `Downloaded: ${given()} of ${sheet.items.length} labelled.`;
}

const keys = {
  ArrowRight: () => go(state.at + 1), j: () => go(state.at + 1), ArrowLeft: () => go(state.at - 1), k: () => go(state.at - 1),
  u: clear, g: ungiven, n: () => by("note").focus(), p: () => show("pause"), c: () => { by("criterion").open = !by("criterion").open; },
};

document.addEventListener("keydown", event => {
  if (shown !== "sheet" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === by("note")) {
    if (event.key === "Escape") by("where").focus({ preventScroll: true });
    return;
  }
  const act = /^[1-9]$/.test(event.key) ? () => choose(Number(event.key) - 1) : keys[event.key];
  if (!act || event.repeat && act !== keys.j && act !== keys.k && !event.key.startsWith("Arrow")) return;
  event.preventDefault();
  act();
});

by("begin").addEventListener("click", () => {
  if (by("rater")) { state.rater = by("rater").value.trim(); save(); }
  show("sheet");
});
by("resume").addEventListener("click", () => show("sheet"));
by("stop").addEventListener("click", keys.p);
by("back").addEventListener("click", keys.k);
by("on").addEventListener("click", keys.j);
by("ungiven").addEventListener("click", ungiven);
by("clear").addEventListener("click", clear);
by("download").addEventListener("click", download);
by("note").addEventListener("input", () => {
  const text = by("note").value;
  if (text) state.notes[current().item] = text; else delete state.notes[current().item];
  save();
});
// The same sheet in a second tab: what is chosen there counts here, so that neither writes over the other.
window.addEventListener("storage", event => {
  if (event.key !== key || event.newValue === null) return;
  const at = state.at;
  restore();
  state.at = at;
  if (shown === "sheet") draw(document.activeElement !== by("note"));
});
window.addEventListener("beforeunload", event => { if (!kept) event.preventDefault(); });

restore();
if (by("rater")) by("rater").value = state.rater;
if (given()) {
  by("kept").textContent = `${given()} of ${sheet.items.length} labelled so far; they are still here.`;
  by("begin").textContent = "Go on";
}
