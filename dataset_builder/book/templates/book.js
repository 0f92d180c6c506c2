(function () {
  "use strict";
  const page = document.body.dataset;
  const pause = document.getElementById("pause");
  const inside = document.getElementById("inside");
  const filter = document.getElementById("filter");
  const reviewer = document.getElementById("reviewer");
  const kept = document.getElementById("kept");
  const count = document.getElementById("count");
  const download = document.getElementById("download");
  const KEY = "helmbench-book " + page.content;
  const MARKUP = /<[a-zA-Z/!?]|&#|javascript:/i;
  // What the import replaces in a comment; substances and some places are known only by their hashes.
  const REFUSED = JSON.parse(page.refused).map(function (r) { return { pattern: new RegExp(r.pattern, r.flags), by: r.by }; });
  const TERMS = JSON.parse(page.terms);
  const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]/gu;
  const PERSON = /^\p{L}[^\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069()[\]{}<>;:#"\\`|]{0,118}$/u;

  function words(text) {
    return text.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").replace(/[‘’]/g, "'").replace(/\s+/g, " ").trim().toLowerCase();
  }

  function plural(n, one, more) {
    return n + " " + (n === 1 ? one : more || one + "s");
  }

  // What is there to read. Texts are taken once, before anything is added to the page.
  const scenarios = Array.from(document.querySelectorAll(".scenario")).map(function (element) {
    const own = element.querySelector(".own");
    return {
      element: element,
      id: element.id,
      text: words(element.closest(".behavior").querySelector("h3").textContent + " " + element.querySelector("summary").textContent + " " + own.textContent),
      messages: Array.from(element.querySelectorAll(".message")).map(function (m) { return { element: m, about: m.dataset.about, text: words(m.id + " " + m.textContent) }; }),
      states: [element.querySelector("[data-state]")].concat(Array.from(document.querySelectorAll('[data-state-of="' + element.id + '"]'))),
      signed: false, notes: {}, equipped: false, name: element.id
    };
  });
  // Protocols, parts and categories take a comment, the first two a signature; they have no messages.
  const chapters = Array.from(document.querySelectorAll(".chapter")).map(function (element) {
    const title = "the " + element.dataset.what + " “" + element.dataset.title + "”";
    return { element: element, id: element.id, messages: [], states: [element.querySelector("[data-state]")], signed: false, notes: {}, equipped: false, name: title };
  });
  const readable = scenarios.concat(chapters);
  const byId = new Map(readable.map(function (s) { return [s.id, s]; }));
  const shared = Array.from(document.querySelectorAll(".shared")).map(function (element) { return { element: element, text: words(element.textContent) }; });
  const sections = Array.from(document.querySelectorAll(".behavior")).concat(Array.from(document.querySelectorAll(".pillar")));
  const total = scenarios.reduce(function (n, s) { return n + s.messages.length; }, 0);

  // Search and filters.
  let opened = [];

  function mine(s, about) {
    const note = s.notes[about];
    return Boolean(note && (note.comment.trim() || note.verdict));
  }

  function fits(s, m, wanted) {
    const d = m.element.dataset;
    const answered = mine(s, m.about);
    return (!wanted.polarity || d.polarity === wanted.polarity) && (!wanted.clarity || d.clarity === wanted.clarity) &&
      (!wanted.register || d.register === wanted.register) && (!wanted.mine || (wanted.mine === "yes") === answered);
  }

  function update() {
    const wanted = Object.fromEntries(new FormData(filter));
    const sought = words(wanted.words).split(" ").filter(Boolean);
    const has = function (text) { return sought.every(function (w) { return text.includes(w); }); };
    const choosing = ["pillar", "behavior", "polarity", "clarity", "register"].some(function (k) { return wanted[k]; });
    let shown = 0;
    const seen = scenarios.filter(function (s) {
      const inside = (!wanted.pillar || s.element.dataset.pillar === wanted.pillar) && (!wanted.behavior || s.element.dataset.behavior === wanted.behavior);
      const fitting = inside ? s.messages.filter(function (m) { return fits(s, m, wanted); }) : [];
      const hits = fitting.filter(function (m) { return has(m.text); });
      const visible = new Set(hits.length || !has(s.text) ? hits : fitting);
      s.messages.forEach(function (m) { m.element.hidden = !visible.has(m); });
      s.element.hidden = visible.size === 0;
      s.states.slice(1).forEach(function (e) { e.parentElement.hidden = s.element.hidden; });
      shown += visible.size;
      return visible.size > 0;
    });
    shared.forEach(function (x) {
      const own = byId.get(x.element.id);
      const fitting = own && wanted.mine && !choosing ? (wanted.mine === "yes") === mine(own, page.whole) : !choosing && !wanted.mine;
      x.element.hidden = !fitting || !has(x.text);
    });
    sections.forEach(function (e) { e.hidden = !e.querySelector(":is(.scenario, .shared):not([hidden])"); });
    document.querySelectorAll(".listed").forEach(function (e) { e.hidden = !e.querySelector("li:not([hidden])"); });
    document.getElementById("nothing").hidden = Boolean(document.querySelector(":is(.scenario, .shared):not([hidden])"));
    count.textContent = shown + " of " + plural(total, "message") + " in " + seen.length + " of " + plural(scenarios.length, "scenario");
    opened.filter(function (s) { return !sought.length || !seen.includes(s); }).forEach(function (s) { s.element.open = false; });
    opened = opened.filter(function (s) { return s.element.open; });
    if (sought.length && seen.length <= 6) {
      seen.filter(function (s) { return !s.element.open; }).forEach(function (s) { s.element.open = true; opened.push(s); });
    }
    mark(sought, seen);
  }

  function mark(sought, seen) {
    if (!window.CSS || !CSS.highlights) return;
    const ranges = [];
    if (sought.length) {
      seen.filter(function (s) { return s.element.open; }).forEach(function (s) {
        const walk = document.createTreeWalker(s.element, NodeFilter.SHOW_TEXT);
        for (let node = walk.nextNode(); node && ranges.length < 2000; node = walk.nextNode()) {
          const text = node.data.toLowerCase();
          if (text.length !== node.data.length) continue;
          sought.forEach(function (w) {
            for (let at = text.indexOf(w); at >= 0; at = text.indexOf(w, at + w.length)) {
              const range = new Range();
              range.setStart(node, at);
              range.setEnd(node, at + w.length);
              ranges.push(range);
            }
          });
        }
      });
    }
    CSS.highlights.set("found", new Highlight(...ranges));
  }

  // Answers.
  function note(s, about) {
    s.notes[about] = s.notes[about] || { comment: "", verdict: null, severity: null };
    return s.notes[about];
  }

  function copy(id) {
    return document.getElementById(id).content.firstElementChild.cloneNode(true);
  }

  const hashes = new Map(Object.entries(TERMS.terms).flatMap(function (e) { return e[1].split(" ").map(function (hash) { return [hash, e[0]]; }); }));
  const known = new Map(); // one to three words → what replaces them, or "" for words that are no term

  function stem(word) {
    const plain = word.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "");
    return plain.length > 3 && /[^s]s$/.test(plain) ? plain.slice(0, -1) : plain;
  }

  async function hash(words) {
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(TERMS.salt + ":" + words));
    const hex = Array.from(new Uint8Array(digest), function (byte) { return byte.toString(16).padStart(2, "0"); }).join("");
    known.set(words, hashes.get(hex.slice(0, TERMS.digits)) || "");
  }

  // What a line says that the import replaces, as [start, end, placeholder]. Adds words to `unknown` that aren't hashed yet.
  function forbidden(line, unknown) {
    const found = REFUSED.flatMap(function (r) { return Array.from(line.matchAll(r.pattern), function (m) { return [m.index, m.index + m[0].length, r.by]; }); });
    const all = Array.from(line.matchAll(/[\p{L}\p{N}]+/gu));
    all.forEach(function (first, n) {
      for (let size = 1; size <= 3 && n + size <= all.length; size += 1) {
        const last = all[n + size - 1];
        const words = all.slice(n, n + size).map(function (m) { return stem(m[0]); }).join(" ");
        if (!known.has(words)) unknown.add(words);
        else if (known.get(words)) found.push([first.index, last.index + last[0].length, known.get(words)]);
      }
    });
    let end = 0;
    return found.sort(function (a, b) { return a[0] - b[0] || b[1] - a[1]; }).filter(function (f) {
      const own = f[1] > end;
      end = Math.max(end, f[1]);
      return own;
    });
  }

  // What the import would refuse or replace in a comment; nothing where it is fine. Hashing takes a moment: `again` is called after it.
  function unfit(text, again) {
    if (MARKUP.test(text)) return "Please write without “<” before a letter: it reads as markup, and the file would be refused.";
    const unknown = new Set();
    const said = text.split("\n").flatMap(function (line) {
      return forbidden(line, unknown).map(function (f) { return "“" + line.slice(f[0], f[1]).trim() + "” becomes " + f[2]; });
    });
    if (unknown.size && window.crypto && crypto.subtle) Promise.all(Array.from(unknown, hash)).then(again);
    return said.length ? said.join(", ") + " when the file is imported. Please say it without." : "";
  }

  function commenting(s, about, box) {
    const area = box.querySelector("textarea");
    area.value = note(s, about).comment;
    area.addEventListener("input", function () {
      note(s, about).comment = area.value;
      changed(s);
    });
    return function () {
      box.querySelector(".warn").textContent = unfit(note(s, about).comment, function () { refresh(s); });
      box.classList.toggle("empty", !mine(s, about));
    };
  }

  function answering(s, m) {
    const box = copy("answer");
    const own = note(s, m.about);
    const severity = Number(m.element.dataset.severity);
    const radios = Array.from(box.querySelectorAll("[type=radio]"));
    const number = box.querySelector("[type=number]");
    const undo = box.querySelector(".undo");
    const comment = commenting(s, m.about, box);
    box.querySelector("legend").textContent = "Severity " + String(severity).replace("-", "−");
    number.value = own.severity === null ? "" : own.severity;
    radios.forEach(function (radio) {
      radio.name = m.element.id;
      radio.checked = own.verdict === radio.value;
      radio.addEventListener("change", function () {
        own.verdict = radio.value;
        if (radio.value === "agree") { own.severity = null; number.value = ""; } else number.focus();
        changed(s);
      });
    });
    number.addEventListener("input", function () {
      const value = number.value === "" ? null : Number(number.value);
      own.severity = Number.isInteger(value) && value >= -10 && value <= 10 && value !== 0 && value !== severity ? value : null;
      own.verdict = "disagree";
      radios.forEach(function (radio) { radio.checked = radio.value === "disagree"; });
      changed(s);
    });
    undo.addEventListener("click", function () {
      own.verdict = own.severity = null;
      number.value = "";
      radios.forEach(function (radio) { radio.checked = false; });
      changed(s);
      radios[0].focus();
    });
    m.element.append(box);
    return function () {
      comment();
      undo.hidden = !own.verdict;
      if (number.value !== "" && own.severity === null) box.querySelector(".warn").textContent = "A whole number from −10 to 10, not 0, and another than its own.";
    };
  }

  function signing(s) {
    const box = copy("signature");
    const tick = box.querySelector("[type=checkbox]");
    const comment = commenting(s, page.whole, box);
    if (s.element.dataset.what) box.querySelector(".comment").firstChild.data = "On this " + s.element.dataset.what;
    if (s.element.dataset.what && !("signs" in s.element.dataset)) box.querySelectorAll(".signing, .why").forEach(function (e) { e.hidden = true; });
    tick.checked = s.signed;
    tick.addEventListener("change", function () { s.signed = tick.checked; changed(s); });
    s.element.querySelector("[data-sign]").append(box);
    return function () {
      comment();
      const who = person();
      const disputed = s.messages.filter(function (m) { return note(s, m.about).verdict === "disagree"; });
      const ready = who.name && who.qualification && !disputed.length;
      tick.disabled = !ready && !s.signed;
      tick.checked = s.signed;
      box.querySelector(".signing span").textContent = (ready ? "I, " + who.name + " (" + who.qualification + ")," : "I") + " have read all of " + s.name + " and sign it.";
      box.querySelector(".why").textContent = disputed.length ? "You disagree with the severity of " + disputed.map(function (m) { return m.about; }).join(", ") + ". That has to be settled before you can sign."
        : ready ? "Signing is up to you; a comment without a signature is as welcome." : "Nobody has signed on this page. To sign, give your name and qualification at the top.";
      box.classList.toggle("empty", !mine(s, page.whole) && !s.signed);
    };
  }

  function equip(s) {
    if (s.equipped) return;
    s.equipped = true;
    s.refresh = s.messages.map(function (m) { return answering(s, m); }).concat(signing(s));
    refresh(s);
  }

  function refresh(s) {
    (s.refresh || []).forEach(function (r) { r(); });
    const answers = s.messages.filter(function (m) { return mine(s, m.about); }).length + (mine(s, page.whole) ? 1 : 0);
    const state = [answers ? plural(answers, "answer") : "", s.signed ? "signed by you" : ""].filter(Boolean).join(", ");
    s.states.forEach(function (e) { e.textContent = state; });
  }

  // Who disputes a severity can't have signed it.
  function changed(s) {
    if (s.messages.some(function (m) { return note(s, m.about).verdict === "disagree"; })) s.signed = false;
    refresh(s);
    save();
  }

  function person() {
    const name = reviewer.elements.name.value.trim();
    const qualification = reviewer.elements.qualification.value.trim();
    return { name: PERSON.test(name) ? name : "", qualification: PERSON.test(qualification) ? qualification : "" };
  }

  // The review: what is kept in this browser is the file that is downloaded.
  function today() {
    const now = new Date();
    return [now.getFullYear(), String(now.getMonth() + 1).padStart(2, "0"), String(now.getDate()).padStart(2, "0")].join("-");
  }

  function review() {
    const who = person();
    const items = readable.map(function (s) {
      const notes = [page.whole].concat(s.messages.map(function (m) { return m.about; })).filter(function (about) { return mine(s, about); }).map(function (about) {
        const own = s.notes[about];
        return { about: about, comment: own.comment.replace(CONTROLS, " ").trim(), verdict: own.verdict, severity: own.severity };
      });
      return { scenario: s.id, text: s.element.dataset.hash, signed: Boolean(s.signed && who.name && who.qualification), notes: notes };
    });
    return {
      format: page.format, version: page.version, content: page.content, date: today(), reviewer: who,
      items: items.filter(function (item) { return item.signed || item.notes.length; })
    };
  }

  // Whether a file is a review from here to its last note: what is half one changes nothing.
  function whole(found) {
    const texts = function (o, names) { return Boolean(o) && names.every(function (k) { return typeof o[k] === "string"; }); };
    return texts(found, ["format"]) && found.format === page.format && texts(found.reviewer, ["name", "qualification"]) && Array.isArray(found.items) &&
      found.items.every(function (item) {
        return texts(item, ["scenario", "text"]) && Array.isArray(item.notes) && item.notes.every(function (n) { return texts(n, ["about", "comment"]); });
      });
  }

  // Takes what belongs to the words on this page; the number of scenarios that have changed since.
  function take(text) {
    const found = JSON.parse(text);
    if (!whole(found)) throw new Error("no review of this book");
    reviewer.elements.name.value = found.reviewer.name.slice(0, 120);
    reviewer.elements.qualification.value = found.reviewer.qualification.slice(0, 120);
    let other = 0;
    found.items.forEach(function (item) {
      const s = byId.get(item.scenario);
      if (!s || item.text !== s.element.dataset.hash) { other += 1; return; }
      s.signed = item.signed === true;
      item.notes.forEach(function (n) {
        if (n.about !== page.whole && !s.messages.some(function (m) { return m.about === n.about; })) return;
        const own = note(s, n.about);
        own.comment = n.comment.slice(0, Number(page.most));
        own.verdict = n.verdict === "agree" || n.verdict === "disagree" ? n.verdict : null;
        own.severity = own.verdict === "disagree" && Number.isInteger(n.severity) ? n.severity : null;
      });
      if (s.equipped) {
        s.element.querySelectorAll(".answer").forEach(function (box) { box.remove(); });
        s.equipped = false;
        equip(s);
      }
      refresh(s);
    });
    return other;
  }

  let waiting = 0;
  let keeps = true;

  function keep() {
    clearTimeout(waiting);
    waiting = 0;
    try {
      localStorage.setItem(KEY, JSON.stringify(review()));
    } catch {
      keeps = false;
    }
    tell();
  }

  function save() {
    tell();
    clearTimeout(waiting);
    waiting = setTimeout(keep, 300);
  }

  function tell() {
    const items = review().items;
    const notes = items.flatMap(function (item) { return item.notes; });
    const parts = [
      plural(notes.filter(function (n) { return n.comment; }).length, "comment")
    ];
    const verdicts = notes.filter(function (n) { return n.verdict; }).length;
    const signed = { scenario: 0, protocol: 0, part: 0 };
    items.forEach(function (item) {
      if (item.signed) signed[item.scenario.startsWith("protocol-") ? "protocol" : /^T\d+$/.test(item.scenario) ? "part" : "scenario"] += 1;
    });
    if (verdicts) parts.push(plural(verdicts, "severity answered", "severities answered"));
    Object.keys(signed).forEach(function (what) { if (signed[what]) parts.push(plural(signed[what], what) + " signed"); });
    const named = person().name;
    download.disabled = !items.length || !named;
    const typed = reviewer.elements.name.value.trim() || reviewer.elements.qualification.value.trim();
    const odd = ["name", "qualification"].some(function (k) { return reviewer.elements[k].value.trim() && !person()[k]; });
    kept.textContent = parts.join(", ") + (keeps ? ". Kept in this browser." : ". This browser keeps nothing: download before you close the page.") +
      (odd && typed ? " A name and a qualification begin with a letter and have no brackets, colons or quotation marks." : items.length && !named ? " Give your name to download." : "");
  }

  function offer(text, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = name;
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
  }

  function address() {
    try { return decodeURIComponent(location.hash.slice(1)); } catch { return ""; } // cut off in a mail
  }

  function reveal() {
    const id = address();
    const target = id && document.getElementById(id);
    if (!target || !pause.open) return;
    if (target.closest("[hidden]")) filter.reset();
    update();
    for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
    const around = target.closest(".scenario, .chapter");
    const s = around && byId.get(around.id);
    if (s) equip(s);
    target.scrollIntoView();
  }

  // From here on the page is alive.
  try {
    const before = localStorage.getItem(KEY);
    if (before) take(before);
    Object.keys(localStorage).filter(function (k) { return k.startsWith("helmbench-book ") && k !== KEY; }).forEach(function (k) {
      const text = localStorage.getItem(k);
      if (!text || !text.includes('"scenario"')) return;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "Download the notes on version " + k.slice(15);
      button.addEventListener("click", function () { offer(text, "helmbench-review-" + k.slice(15) + ".json"); });
      document.getElementById("earlier").append(" ", button);
    });
  } catch {
    keeps = false;
  }
  filter.hidden = reviewer.hidden = document.getElementById("earlier").hidden = false;
  filter.addEventListener("input", update);
  filter.addEventListener("submit", function (event) { event.preventDefault(); });
  filter.addEventListener("reset", function () { setTimeout(update); });
  reviewer.addEventListener("submit", function (event) { event.preventDefault(); });
  reviewer.addEventListener("input", function (event) {
    readable.forEach(refresh);
    save();
  });
  document.querySelector("#earlier [type=file]").addEventListener("change", function (event) {
    const input = event.target;
    const file = input.files[0];
    if (!file) return;
    file.text().then(function (text) {
      const other = take(text);
      keep();
      if (other) kept.textContent += " " + plural(other, "part") + " of that file " + (other === 1 ? "has" : "have") + " changed since and stayed out.";
    }).catch(function () { kept.textContent = "That file is no review of this book; nothing was changed."; }).finally(function () { input.value = ""; });
  });
  download.addEventListener("click", function () {
    keep();
    const made = review();
    offer(JSON.stringify(made, null, 1) + "\n", "helmbench-review-" + words(made.reviewer.name).replace(/[^a-z0-9]+/g, "-") + "-" + made.date + ".json");
  });
  readable.forEach(function (s) { s.element.addEventListener("toggle", function () { if (s.element.open) equip(s); }); });
  // A browser opens what a link leads to, or what is searched for on the page. The book is opened by its reader only.
  let asked = false;
  inside.hidden = true;
  pause.open = false;
  pause.firstElementChild.addEventListener("click", function () { asked = true; });
  pause.addEventListener("toggle", function () {
    if (pause.open && !asked) pause.open = false;
    inside.hidden = !pause.open;
    if (pause.open) reveal();
  });
  window.addEventListener("hashchange", reveal);
  window.addEventListener("pagehide", function () { if (waiting) keep(); });
  document.addEventListener("click", function (event) {
    const link = event.target.closest && event.target.closest('a[href^="#"]');
    if (link && link.getAttribute("href") === location.hash) setTimeout(reveal);
  });
  document.addEventListener("keydown", function (event) {
    const typing = event.target.matches("input:not([type=radio], [type=checkbox]), textarea, select");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey && pause.open) {
      event.preventDefault();
      filter.elements.words.focus();
      filter.elements.words.select();
    }
  });
  let unprinted = [];
  window.addEventListener("beforeprint", function () {
    unprinted = Array.from(document.querySelectorAll("#pause details:not([open])")).filter(function (d) { return !d.closest("[hidden]"); });
    unprinted.forEach(function (d) { d.open = true; });
    readable.filter(function (s) { return !s.element.hidden; }).forEach(equip);
    document.querySelectorAll(".answer:not(.empty) textarea").forEach(function (t) { t.style.height = t.scrollHeight + 2 + "px"; });
  });
  window.addEventListener("afterprint", function () { unprinted.forEach(function (d) { d.open = false; }); });
  readable.forEach(refresh);
  update();
  tell();
})();
