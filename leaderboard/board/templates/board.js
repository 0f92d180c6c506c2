(function () {
  "use strict";
  // Without this the table stands sorted by composite; with it, every header is a button that sorts the rows of each part.
  document.querySelectorAll("table.board").forEach(function (table) {
    const headers = Array.from(table.tHead.rows[0].cells);
    const said = document.getElementById(table.getAttribute("aria-describedby"));

    function key(row, column, text) {
      const value = row.cells[column].dataset.value;
      return value === "" || value === undefined ? null : text ? value : Number(value);
    }

    function sort(column) {
      const header = headers[column];
      const other = header.dataset.first === "ascending" ? "descending" : "ascending";
      const direction = header.getAttribute("aria-sort") === header.dataset.first ? other : header.dataset.first;
      const sign = direction === "ascending" ? 1 : -1;
      const text = header.dataset.kind === "text";
      Array.from(table.tBodies).forEach(function (part) {
        const rows = Array.from(part.rows).filter(function (row) { return !row.classList.contains("part"); });
        rows.map(function (row, n) { return { row: row, n: n, key: key(row, column, text) }; }).sort(function (a, b) {
          if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.n - b.n; // what is missing stays last
          return sign * ((a.key > b.key) - (a.key < b.key)) || a.n - b.n;
        }).forEach(function (entry) { part.append(entry.row); });
      });
      headers.forEach(function (h) { h.removeAttribute("aria-sort"); });
      header.setAttribute("aria-sort", direction);
      said.textContent = "Sorted by " + header.textContent + ", " + direction + ".";
    }

    headers.forEach(function (header, column) {
      const button = document.createElement("button");
      button.type = "button";
      button.append.apply(button, Array.from(header.childNodes));
      button.addEventListener("click", function () { sort(column); });
      header.replaceChildren(button);
    });
    table.dataset.sortable = "ready";
  });
})();
