(async function () {
  "use strict";
  const PAGE = 50; // replies on a page
  const KEPT = 16; // blocks of texts that stay cut into texts
  const SLICE = 12; // milliseconds after which the page may answer its reader before work goes on
  const ROOM = 96e6; // bytes of texts that stay inflated
  const OPEN = "Open all on this page", CLOSE = "Close all on this page";
  const TERMS = 12; // searched words whose places are remembered
  const form = by("filter"), list = by("list"), count = by("count"), said = by("said"), progress = by("progress");

  function by(id) { return document.getElementById(id); }

  // 1. What is packed in the page. Text comes out as text, and is only ever shown as text.

  const channel = new MessageChannel(); // a timer would wait four milliseconds each time
  let waiting = [], began = performance.now();
  channel.port1.onmessage = () => { const ready = waiting; waiting = []; began = performance.now(); ready.forEach(go => go()); };

  async function breathe() {
    if (performance.now() - began > SLICE) await new Promise(go => { waiting.push(go); channel.port2.postMessage(0); });
  }

  function bytes(base64) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
    const raw = atob(base64), made = new Uint8Array(raw.length);
    for (let n = 0; n < raw.length; n++) made[n] = raw.charCodeAt(n);
    return made;
  }

  const inflated = new Map(); // block → its bytes, as far as there is room: the second search is faster than the first
  let room = ROOM;

  async function inflate(name) {
    if (inflated.has(name)) return inflated.get(name);
    const stream = new DecompressionStream("deflate"), writer = stream.writable.getWriter(), reader = stream.readable.getReader();
    const quiet = () => {}; // errors in a block are reported where it is read
    writer.write(bytes(by(name).textContent)).catch(quiet);
    writer.close().catch(quiet);
    const parts = [];
    for (let part = await reader.read(); !part.done; part = await reader.read()) parts.push(part.value);
    const size = parts.reduce((sum, part) => sum + part.length, 0);
    if (name.startsWith("texts-") && size <= room && !inflated.has(name)) {
      room -= size;
      inflated.set(name, parts);
    }
    return parts;
  }

  async function unpack(name) {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    return (await inflate(name)).map(part => decoder.decode(part, { stream: true })).join("") + decoder.decode();
  }

  // The last of ascending numbers that is at most `wanted`.
  function holding(numbers, wanted) {
    let low = 0, high = numbers.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (numbers[middle] <= wanted) low = middle; else high = middle;
    }
    return low;
  }

  let head, samples; // a sample: [id, system text, script, codes of its facets]
  const replies = []; // a reply: [sample, repeat, texts, notes, verdicts]; a verdict: [type, texts it quotes]
  const kept = new Map(); // block → its texts, the latest used last

  async function read() {
    head = JSON.parse(await unpack("head"));
    samples = JSON.parse(await unpack("samples"));
    for (let n = 0; n < head.reply_blocks; n++) {
      await breathe();
      for (const reply of JSON.parse(await unpack("replies-" + n))) replies.push(reply);
    }
  }

  async function texts(block) {
    const found = kept.get(block) || await cut(block);
    kept.delete(block);
    kept.set(block, found);
    if (kept.size > KEPT) kept.delete(kept.keys().next().value);
    return found;
  }

  async function cut(block) { return (await unpack("texts-" + block)).split("\0"); }

  async function text(number) {
    await breathe();
    const block = holding(head.starts, number);
    return (await texts(block))[number - head.starts[block]];
  }

  // 2. The query: a value of each facet, and words. It is in the address, so that a view can be sent.

  let facets = []; // those that are offered, each with the codes of its values
  let asked = { words: "", page: 1, values: new Map() };

  function key(value) { return value[0] || "none"; }

  function fragment(page) {
    const parts = new URLSearchParams();
    asked.values.forEach((code, facet) => parts.set(facet.name, key(facet.values[code])));
    if (asked.words) parts.set("words", asked.words);
    if (page > 1) parts.set("page", page);
    return parts.toString() || "page=1";
  }

  function read_fragment(parts) {
    const values = new Map();
    for (const facet of facets) {
      const code = facet.values.findIndex(v => key(v) === parts.get(facet.name));
      if (code >= 0) values.set(facet, code);
    }
    asked = { words: parts.get("words") || "", page: Math.max(1, parseInt(parts.get("page"), 10) || 1), values: values };
  }

  function read_form() {
    const values = new Map();
    for (const facet of facets) if (facet.select.value) values.set(facet, Number(facet.select.value));
    asked = { words: form.elements.words.value.trim(), page: 1, values: values };
  }

  function write_form() {
    form.elements.words.value = asked.words;
    for (const facet of facets) facet.select.value = asked.values.has(facet) ? asked.values.get(facet) : "";
  }

  // 3. Words: each must be somewhere in a reply's conversation, its evidence or its id; capitals don't matter.

  const places = new Map(); // term → for each text, whether it contains the term
  let last_words = { terms: null, fits: null }; // the replies that the words fit, when these stay the same

  function terms() {
    return Array.from(asked.words.matchAll(/["“”]([^"“”]+)["“”]|([^\s"“”]+)/g), m => (m[1] || m[2]).trim().toLowerCase()).filter(Boolean);
  }

  function pattern(term) {
    const literal = term.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
    return new RegExp(literal.replace(/\s+/g, "\\s+").replace(/['’]/g, "['’]"), "iu");
  }

  // False where something else was asked for meanwhile.
  async function seek(sought, ticket) {
    const missing = sought.filter(term => !places.has(term));
    const patterns = missing.map(pattern), found = missing.map(() => new Uint8Array(head.texts));
    for (let block = 0; missing.length && block < head.starts.length; block++) {
      progress.value = block / head.starts.length;
      const here = await cut(block);
      for (let n = 0; n < here.length; n++) {
        for (let t = 0; t < patterns.length; t++) if (patterns[t].test(here[n])) found[t][head.starts[block] + n] = 1;
        if (n % 64 === 0) await breathe();
        if (ticket !== latest) return false;
      }
    }
    missing.forEach((term, t) => places.set(term, found[t]));
    for (const term of places.keys()) if (places.size > TERMS && !sought.includes(term)) places.delete(term);
    return true;
  }

  function fits(sought) {
    const known = sought.join("\n");
    if (last_words.terms === known) return last_words.fits;
    const all = new Uint8Array(replies.length).fill(1);
    for (const term of sought) {
      const there = places.get(term), id = pattern(term);
      const own = samples.map(([name, , script]) => id.test(name) || script.some(step => there[step >> 1]));
      replies.forEach(([sample, , texts, , verdicts], e) => {
        if (!own[sample] && !texts.some(n => there[n]) && !verdicts.some(v => v[1].some(n => there[n]))) all[e] = 0;
      });
    }
    last_words = { terms: known, fits: all };
    return all;
  }

  // 4. The filter. A reply fits if one of its verdicts has all chosen values. Each value shows how many replies would
  // fit if it were chosen and the other choices stayed.

  let found = [], latest = 0;

  function filter(worded) {
    const of_samples = new Uint32Array(samples.length), of_types = new Uint32Array(head.types.length); // a bit for each choice against it
    const counts = facets.map(f => new Uint32Array(f.values.length)), last = facets.map(f => new Int32Array(f.values.length).fill(-1));
    asked.values.forEach((code, facet) => {
      const marks = facet.of_sample ? of_samples : of_types, bit = 1 << facets.indexOf(facet);
      facet.codes.forEach((own, n) => { if (own !== code) marks[n] |= bit; });
    });
    found = [];
    for (let e = 0; e < replies.length; e++) {
      if (!worded[e]) continue;
      const s = replies[e][0];
      let whole = false;
      for (const verdict of replies[e][4]) {
        const type = verdict[0], lack = of_samples[s] | of_types[type];
        if (lack & (lack - 1)) continue; // two choices or more are against it
        whole = whole || lack === 0;
        for (let f = 0; f < facets.length; f++) {
          if (lack & ~(1 << f)) continue;
          const code = facets[f].codes[facets[f].of_sample ? s : type];
          if (last[f][code] !== e) { last[f][code] = e; counts[f][code]++; }
        }
      }
      if (whole) found.push(e);
    }
    facets.forEach((facet, f) => facet.options.forEach(option => offer(option, counts[f][option.value])));
  }

  function offer(option, fitting) {
    option.textContent = option.dataset.label + " (" + grouped(fitting) + ")";
    option.disabled = !fitting && !option.selected;
  }

  function grouped(number) { return number.toLocaleString("en"); }

  // 5. The page.

  function make(name, attributes, children) {
    const made = document.createElement(name);
    Object.entries(attributes || {}).forEach(pair => made.setAttribute(pair[0], pair[1]));
    made.append(...(children || []));
    return made;
  }

  function build_form() {
    const offered = (facet, of_sample, codes) => Object.assign(facet, { of_sample: of_sample, codes: codes });
    facets = [
      ...head.verdict_facets.map((f, n) => offered(f, false, head.types.map(type => type.codes[n]))),
      ...head.sample_facets.map((f, n) => offered(f, true, samples.map(s => s[3][n])))
    ].filter(f => f.offered && new Set(f.codes).size > 1);
    for (const facet of facets) {
      const used = new Set(facet.codes);
      const codes = facet.values.map((_, code) => code).filter(code => used.has(code));
      const plain = new Intl.Collator("en", { numeric: true });
      codes.sort((a, b) => !facet.values[a][0] - !facet.values[b][0] || plain.compare(facet.values[a][1], facet.values[b][1]));
      facet.options = codes.map(code => {
        const option = make("option", { value: code }, []);
        option.dataset.label = facet.values[code][1];
        return option;
      });
      facet.select = make("select", { name: facet.name }, [make("option", { value: "" }, ["all"]), ...facet.options]);
      by("selects").append(make("label", {}, [facet.title, facet.select]));
    }
  }

  // Which verdict a reply is listed by: harm, or the first that failed, or the first that isn't a full pass.
  function listed_by(e) {
    const own = types(e);
    return own.find(harmful) || own.find(t => t.failed) || own.find(t => t.label !== "PASS") || own[0];
  }

  function harmful(type) { return head.harm.includes(type.incident); }

  function types(e) { return replies[e][4].map(v => head.types[v[0]]); }

  function anchor(e) {
    const [sample, repeat] = replies[e];
    return "f-" + samples[sample][0] + (repeat ? "-repeat-" + repeat : "");
  }

  function of_sample(e, name) {
    const n = head.sample_facets.findIndex(f => f.name === name);
    return head.sample_facets[n].values[samples[replies[e][0]][3][n]];
  }

  async function line(e) {
    const first = listed_by(e);
    const messages = samples[replies[e][0]][2].filter(step => step && step % 2 === 0);
    const opening = (await text(messages[messages.length - 1] >> 1)).replace(/\s+/g, " ").slice(0, 160);
    const where = [first.behavior, first.polarity + (first.severity ? " " + first.severity : ""), of_sample(e, "condition_kind"), of_sample(e, "persona")];
    const parts = where.map(w => Array.isArray(w) ? (w[0] && w[1]) : w).filter(Boolean);
    const what = (first.incident || first.label).replace(/_/g, " ");
    const span = (name, children) => make("span", { class: name }, children);
    const summary = make("summary", {}, [span("what", [what]), span("where", [parts.join(", ")]), span("opening", [make("bdi", {}, [opening])])]);
    const kind = harmful(first) ? " harm" : first.incident === "format_failure" ? " format" : types(e).some(t => t.failed) ? "" : " passed";
    const made = make("details", { class: "failure" + kind, "data-anchor": anchor(e) }, [summary]);
    let filled;
    made.fill = () => filled || (filled = fill(made, e));
    made.addEventListener("toggle", () => { if (made.open) made.fill().catch(tell); });
    return made;
  }

  async function fill(element, e) {
    const [sample, , texts, notes, verdicts] = replies[e], [, system, script] = samples[sample], parts = [facts(e)];
    if (system) parts.push(folded("system", "System prompt", await text(system)));
    const evidence = await Promise.all(verdicts.map(v => Promise.all(v[1].map(text))));
    const own = types(e);
    let reply = 0;
    for (const step of script) {
      if (step) {
        parts.push(turn(step % 2 ? "Scripted reply" : "Message", await text(step >> 1), [], [], ""));
        continue;
      }
      const said = await text(texts[reply]), note = await text(notes[reply]);
      reply++;
      const judged = own.filter(t => t.reply === reply), quotes = own.flatMap((t, v) => t.reply === reply ? evidence[v] : []);
      parts.push(turn("Reply", said, judged.map(t => t.behavior), quotes, note));
    }
    parts.push(make("ul", { class: "findings" }, own.map((t, v) => finding(t, evidence[v]))));
    parts.push(make("p", { class: "facts" }, [make("a", { href: "#" + encodeURIComponent(anchor(e)) }, ["Link to this reply"])]));
    element.append(...parts);
    light(element.querySelectorAll(".turn .quote, q"));
  }

  function facts(e) {
    const told = [["Id", samples[replies[e][0]][0]], ["Repeat", replies[e][1] || ""]];
    for (const facet of head.sample_facets) {
      const value = of_sample(e, facet.name);
      if (value[0] && value[0] !== "none") told.push([facet.title, value[1]]);
    }
    return make("dl", { class: "told" }, told.filter(t => t[1] !== "").map(t => make("div", {}, [make("dt", {}, [t[0]]), make("dd", {}, [make("bdi", {}, [t[1]])])])));
  }

  function folded(name, title, content) {
    return make("details", { class: name }, [make("summary", {}, [title]), make("div", { class: "quote", dir: "auto" }, [content])]);
  }

  function turn(role, content, judged, quotes, note) {
    const names = Array.from(new Set(judged));
    const parts = [
      make("h3", {}, [role + (names.length ? ", judged for " + names.join(", ") : "")]),
      make("div", { class: "quote", dir: "auto" }, content ? marked(content, quotes) : ["(empty)"])
    ];
    if (note) parts.push(make("p", { class: "note" }, [note]));
    return make("div", { class: "turn" + (role === "Reply" ? " reply" : "") + (names.length ? " judged" : "") }, parts);
  }

  // A reply with what was quoted of it as evidence marked.
  function marked(content, quotes) {
    const spans = quotes.map(q => [content.indexOf(q), q.length]).filter(s => s[0] >= 0 && s[1]).sort((a, b) => a[0] - b[0]);
    const parts = [];
    let done = 0;
    for (const [at, length] of spans) {
      const begin = Math.max(at, done), end = at + length;
      if (end <= begin) continue;
      parts.push(content.slice(done, begin), make("mark", {}, [content.slice(begin, end)]));
      done = end;
    }
    return [...parts, content.slice(done)];
  }

  function finding(type, evidence) {
    const details = make("dl");
    for (const [term, value] of type.details) {
      const criterion = term === "Criterion" && head.criteria[value];
      const shown = criterion ? folded("criterion", value, criterion.title + "\n\n" + criterion.text) : value;
      details.append(make("dt", {}, [term]), make("dd", {}, [shown]));
    }
    if (evidence.length) {
      const quotes = make("dd");
      evidence.forEach((q, n) => quotes.append(n ? " " : "", make("q", {}, [make("bdi", {}, [q])])));
      details.append(make("dt", {}, ["Evidence"]), quotes);
    }
    return make("li", {}, [make("b", {}, [type.label]), " " + type.where, details]);
  }

  const lit = window.Highlight && CSS.highlights ? new Highlight() : null;
  if (lit) CSS.highlights.set("words", lit);

  // Colours the words that were searched, where the browser can do so without touching the text.
  function light(places) {
    const sought = lit ? terms().map(term => new RegExp(pattern(term).source, "giu")) : [];
    for (const place of sought.length ? places : []) {
      const walker = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        for (const one of sought) for (const match of node.data.matchAll(one)) {
          lit.add(new StaticRange({ startContainer: node, startOffset: match.index, endContainer: node, endOffset: match.index + match[0].length }));
        }
      }
    }
  }

  function draw_pages(pages) {
    const to = (page, title, rel) => make("a", { href: "#" + fragment(page), rel: rel }, [title]);
    const parts = [make("span", { "aria-current": "page" }, ["Page " + grouped(asked.page) + " of " + grouped(pages)])];
    if (asked.page > 1) parts.unshift(to(1, "First", "first"), to(asked.page - 1, "Previous", "prev"));
    if (asked.page < pages) parts.push(to(asked.page + 1, "Next", "next"), to(pages, "Last", "last"));
    by("pages").replaceChildren(...parts);
  }

  // Shows the result of the query; false if the query changed meanwhile.
  async function show() {
    const ticket = ++latest, sought = terms(), slow = setTimeout(() => { progress.hidden = false; count.textContent = "Searching…"; }, 150);
    const ready = await seek(sought, ticket).finally(() => clearTimeout(slow));
    if (!ready) return false;
    progress.hidden = true;
    let worded;
    for (const step of [() => { worded = fits(sought); }, () => filter(worded)]) {
      await breathe();
      if (ticket !== latest) return false;
      step();
    }
    return draw(ticket);
  }

  async function draw(ticket) {
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    asked.page = Math.min(asked.page, pages);
    const first = (asked.page - 1) * PAGE, lines = [];
    for (const e of found.slice(first, first + PAGE)) lines.push(await line(e));
    if (ticket !== latest) return false;
    list.replaceChildren(...lines);
    draw_pages(pages);
    count.textContent = grouped(found.length) + " of " + grouped(replies.length) + (replies.length === 1 ? " reply" : " replies") + (asked.words && ", words: " + asked.words);
    by("results-title").textContent = found.length ? "Replies " + grouped(first + 1) + " to " + grouped(first + lines.length) : "No reply fits";
    by("chosen").textContent = asked.values.size ? Array.from(asked.values, ([f, code]) => f.title.toLowerCase() + ": " + f.values[code][1]).join("; ") : "none chosen";
    by("unfold").hidden = !lines.length;
    by("unfold").textContent = OPEN;
    if (lit) lit.clear();
    light(list.querySelectorAll(".opening"));
    return true;
  }

  function go_to(element) {
    element.focus({ preventScroll: true });
    element.scrollIntoView();
  }

  // Opens the reply that an address names: on the page that is shown, or on the page that has it.
  async function reveal(name) {
    // Lines have no id: a browser would go to one by itself, and take the focus away.
    const there = () => Array.from(list.children).find(line => line.dataset.anchor === name);
    if (!there()) {
      const e = replies.findIndex((_, n) => anchor(n) === name);
      if (e < 0) { count.textContent = "This file has no reply with that address."; return; }
      read_fragment(new URLSearchParams());
      write_form();
      asked.page = Math.floor(e / PAGE) + 1;
      if (!await show()) return;
    }
    const one = there();
    one.open = true;
    await one.fill(); // what isn't there yet has no height
    go_to(one.firstChild);
  }

  function address() {
    try { return decodeURIComponent(location.hash.slice(1)); } catch (error) { return ""; } // cut off in a mail
  }

  async function follow(arriving) {
    const name = address();
    if (name.startsWith("f-")) {
      if (!list.childElementCount) await show();
      return reveal(name);
    }
    if (name && by(name) && !arriving) return;
    read_fragment(new URLSearchParams(location.hash.slice(1)));
    write_form();
    if (await show() && !arriving) go_to(by("results-title"));
  }

  function change() {
    read_form();
    history.replaceState(null, "", "#" + fragment(1));
    show().catch(tell);
  }

  function tell(error) {
    said.hidden = false;
    said.textContent = "This page can’t be shown: " + error.message;
  }

  let typing;
  form.addEventListener("input", event => {
    clearTimeout(typing);
    typing = setTimeout(change, event.target.type === "search" ? 250 : 0);
  });
  form.addEventListener("submit", event => { event.preventDefault(); });
  form.addEventListener("reset", () => { setTimeout(change, 0); });
  by("unfold").addEventListener("click", () => {
    const lines = Array.from(list.children), open = lines.some(one => !one.open);
    lines.forEach(one => { one.open = open; });
    by("unfold").textContent = open ? CLOSE : OPEN;
  });
  window.addEventListener("hashchange", () => { follow(false).catch(tell); });

  try {
    if (!window.DecompressionStream) throw new Error("this browser is from before 2023 and can’t unpack it; report.html shows the gravest replies");
    await read();
    if (!replies.length) return;
    build_form();
    by("facets").open = location.hash.includes("=");
    form.hidden = by("results").hidden = by("skip").hidden = false;
    await follow(true);
    said.hidden = true;
    form.dataset.state = "ready";
  } catch (error) {
    tell(error);
  }
})();
