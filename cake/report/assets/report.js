"use strict";
(() => {
  const table = document.getElementById("candidates");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];

  const key = (row, column) => {
    const text = row.cells[column].textContent.trim();
    if (text === "") return [2, 0, ""];
    const number = Number(text);
    return Number.isNaN(number) ? [1, 0, text] : [0, number, ""];
  };

  const compare = (a, b) => a[0] - b[0] || a[1] - b[1] || a[2].localeCompare(b[2], undefined, { numeric: true });

  const sortBy = (column) => {
    const head = heads[column];
    const descending = head.getAttribute("aria-sort") === "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const rows = [...body.rows].map((row) => [key(row, column), row]);
    // Rows without a value stay at the end in both directions.
    rows.sort(([a], [b]) => (a[0] === 2 || b[0] === 2 || !descending ? compare(a, b) : compare(b, a)));
    body.append(...rows.map(([, row]) => row));
  };

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sortBy(column));
    head.append(button);
  });

  const box = document.getElementById("filter");
  const shown = document.getElementById("shown");
  const filter = () => {
    const words = box.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
    let count = 0;
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) count += 1;
    }
    shown.textContent = `${count} of ${body.rows.length}`;
  };
  box.addEventListener("input", filter);
  filter();
})();
