(function () {
  "use strict";
  const section = document.getElementById("failures");
  const form = document.getElementById("filter");
  if (!section || !form) return;

  const list = document.getElementById("failure-list");
  const count = document.getElementById("count");
  const which = Array.from(form.querySelectorAll("[name=which]"));
  const selects = Array.from(form.querySelectorAll("select"));
  const search = form.querySelector("input[type=search]");
  const entries = Array.from(list.querySelectorAll(".failure")).map(function (element) {
    return {
      element: element,
      findings: Array.from(element.querySelectorAll("[data-behavior]")).map(function (finding) { return finding.dataset; }),
      text: words(element.textContent)
    };
  });

  function words(text) {
    return text.replace(/\s+/g, " ").trim().toLowerCase();
  }

  // All findings of an entry, or those that failed, as the switch says; without a switch there is one kind of entry.
  function asked(entry) {
    const all = !which.some(function (choice) { return choice.checked && choice.value === "failures"; });
    return entry.findings.filter(function (finding) { return all || String(finding.failed) === "true"; });
  }

  function update() {
    const wanted = selects.filter(function (s) { return s.value; });
    const sought = words(search.value);
    let shown = 0;
    entries.forEach(function (entry) {
      const fits = asked(entry).some(function (finding) {
        return wanted.every(function (s) { return finding[s.name] === s.value; });
      }) && entry.text.includes(sought);
      entry.element.hidden = !fits;
      shown += fits ? 1 : 0;
    });
    count.textContent = shown + " of " + entries.length + " shown";
  }

  // The system text stands once on the page; an entry gets its copy when it is opened.
  function unfold(element) {
    const entry = element.open && entries.find(function (e) { return e.element === element; });
    if (!entry) return;
    if (entry.fill) entry.fill();
    entry.fill = null;
    const place = element.querySelector("[data-system]");
    const original = place && document.getElementById("system-" + place.dataset.system);
    if (!original) return;
    const copy = original.cloneNode(true);
    copy.removeAttribute("id");
    copy.open = false;
    place.replaceWith(copy);
  }

  function reveal() {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (!target) return;
    target.hidden = false;
    for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
    target.scrollIntoView();
  }

  // What follows shows report.samples.json as templates/failure.html shows the rest. Text goes in as text, never as markup.
  function make(name, attributes, children) {
    const made = document.createElement(name);
    Object.entries(attributes || {}).forEach(function (pair) { made.setAttribute(pair[0], pair[1]); });
    made.append.apply(made, children || []);
    return made;
  }

  function turn(t) {
    const judged = t.judged.length > 0;
    const parts = [
      make("h3", {}, [t.role + (judged ? ", judged for " + t.judged.join(", ") : "")]),
      make("div", { class: "quote", dir: "auto" }, [t.text || "(empty)"])
    ];
    if (t.note) parts.push(make("p", { class: "note" }, [t.note]));
    return make("div", { class: "turn" + (t.role === "Reply" ? " reply" : "") + (judged ? " judged" : "") }, parts);
  }

  function finding(v) {
    const details = make("dl");
    v.details.forEach(function (d) {
      const known = d[0] === "Criterion" && document.getElementById("criterion-" + d[1]);
      const said = known ? make("a", { href: "#criterion-" + d[1] }, [d[1]]) : d[1];
      details.append(make("dt", {}, [d[0]]), make("dd", {}, [said]));
    });
    if (v.evidence.length) {
      const quotes = make("dd");
      v.evidence.forEach(function (e, n) { quotes.append(n ? " " : "", make("q", {}, [make("bdi", {}, [e])])); });
      details.append(make("dt", {}, ["Evidence"]), quotes);
    }
    return make("li", {}, [make("b", {}, [v.label]), " " + v.where, details]);
  }

  function failed(f) {
    return f.findings.some(function (v) { return v.failed; });
  }

  function add(f, systems) {
    const span = function (name, children) { return make("span", { class: name }, children); };
    const opening = span("opening", [make("bdi", {}, [f.opening])]);
    const element = make("details", { class: "failure" + (failed(f) ? "" : " passed"), id: f.anchor }, [make("summary", {}, [span("what", [f.what]), span("where", [f.where]), opening])]);
    function fill() {
      element.append(make("p", { class: "facts" }, [f.facts]));
      if (f.system && document.getElementById("system-" + f.system)) element.append(make("p", { "data-system": f.system }));
      else if (f.system) {
        const title = make("summary", {}, ["System text " + f.system]);
        element.append(make("details", { class: "system" }, [title, make("div", { class: "quote", dir: "auto" }, [systems[f.system]])]));
      }
      element.append.apply(element, f.turns.map(turn));
      element.append(make("ul", { class: "findings" }, f.findings.map(finding)));
    }
    list.append(element);
    const said = f.turns.map(function (t) { return t.text; });
    const why = f.findings.map(function (v) { return [v.label, v.where].concat(v.details.map(function (d) { return d.join(" "); }), v.evidence).join(" "); });
    entries.push({ element: element, findings: f.findings, text: words([f.what, f.where, f.facts].concat(said, why).join(" ")), fill: fill });
    document.querySelectorAll('[data-anchor="' + f.anchor + '"]').forEach(function (example) {
      example.replaceWith(make("a", { href: "#" + f.anchor }, [f.id]));
    });
  }

  function offer(name, value) {
    const select = form.elements[name];
    const known = Array.from(select.options).some(function (o) { return o.value === value; });
    if (value && !known) select.append(make("option", { value: value }, [value.replace(/_/g, " ")]));
  }

  async function load(input) {
    const place = document.getElementById("samples");
    const say = function (text) { place.querySelector("[role=status]").textContent = text; };
    try {
      const samples = JSON.parse(await input.files[0].text());
      if (samples.format !== "helmbench-report-samples-1" || samples.hash !== place.dataset.hash) return say("That file belongs to another report.");
      samples.entries.forEach(function (f) {
        add(f, samples.systems);
        f.findings.forEach(function (v) { selects.forEach(function (s) { offer(s.name, v[s.name]); }); });
      });
      input.parentElement.remove();
      say(samples.entries.length + " more replies stand at the end of the list.");
      update();
    } catch (error) {
      say("That file can’t be read: " + error.message);
    }
  }

  const file = document.querySelector("#samples input");
  if (file) {
    document.getElementById("samples").hidden = false;
    file.addEventListener("change", function () { if (file.files.length) load(file); });
  }
  form.addEventListener("input", update);
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  form.addEventListener("reset", function () { setTimeout(update, 0); });
  list.addEventListener("toggle", function (event) { if (event.target.classList.contains("failure")) unfold(event.target); }, true);
  document.querySelectorAll("a[data-show-incident]").forEach(function (link) {
    link.addEventListener("click", function () {
      form.reset();
      form.elements.incident.value = link.dataset.showIncident;
      section.open = true;
      setTimeout(update, 0);
    });
  });
  window.addEventListener("hashchange", reveal);
  form.hidden = false;
  update();
  reveal();
  section.dataset.filter = "ready";
})();
