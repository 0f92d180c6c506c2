(function () {
  "use strict";

  // Opens what an address names, and the folded sections around it.
  function reveal() {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (!target) return;
    target.hidden = false;
    for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
    target.scrollIntoView();
  }

  window.addEventListener("hashchange", reveal);
  document.querySelectorAll("a[href^='#']").forEach(function (link) { // again, where the address stays the same
    link.addEventListener("click", function () { if (link.hash === location.hash) setTimeout(reveal, 0); });
  });
  reveal();

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

  // The system text is once on the page; an entry gets its copy when it is opened.
  function unfold(element) {
    const entry = element.open && entries.find(function (e) { return e.element === element; });
    if (!entry) return;
    const place = element.querySelector("[data-system]");
    const original = place && document.getElementById("system-" + place.dataset.system);
    if (!original) return;
    const copy = original.cloneNode(true);
    copy.removeAttribute("id");
    copy.open = false;
    place.replaceWith(copy);
  }

  form.addEventListener("input", update);
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  form.addEventListener("reset", function () { setTimeout(update, 0); });
  list.addEventListener("toggle", function (event) { if (event.target.classList.contains("failure")) unfold(event.target); }, true);
  document.querySelectorAll("a[href='#failures']").forEach(function (link) {
    link.addEventListener("click", function () {
      form.reset();
      form.elements.incident.value = link.textContent.replaceAll(" ", "_");
      section.open = true;
      setTimeout(update, 0);
    });
  });
  form.hidden = false;
  update();
  section.dataset.filter = "ready";
})();
