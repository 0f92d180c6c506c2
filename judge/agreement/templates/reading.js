// Filters the cases by words; nothing leaves the page.
"use strict";
const form = document.getElementById("filter");
if (form) {
  const cases = [...document.querySelectorAll(".case")];
  const texts = cases.map(one => one.textContent.toLowerCase());
  const filter = () => {
    const words = form.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let kept = 0;
    cases.forEach((one, n) => {
      one.hidden = !words.every(word => texts[n].includes(word));
      kept += !one.hidden;
    });
    document.getElementById("count").textContent = kept + " of " + cases.length;
  };
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", event => event.preventDefault());
  filter();
}
