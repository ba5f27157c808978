// Tables: a click on a head sorts by it, words above filter; commands are copied.

// --- order ---
// What follows on a click: ascending, descending, and the order of the page.
const NEXT_ORDER = { ascending: "descending", descending: null };

function makeSortable(table) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  // One row has no order.
  if (rows.length < 2) return;
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const order = head.getAttribute("aria-sort");
      const next = order in NEXT_ORDER ? NEXT_ORDER[order] : "ascending";
      for (const cell of heads) cell.removeAttribute("aria-sort");
      if (!next) {
        body.append(...rows);
        return;
      }
      head.setAttribute("aria-sort", next);
      body.append(...sortedRows(rows, column, next === "ascending" ? 1 : -1));
    });
  });
}

// The text of a cell, without the name of its column, which narrow screens show.
function cellText(cell) {
  const name = cell.querySelector(".of")?.textContent ?? "";
  return cell.textContent.slice(name.length).trim();
}

// The number that a cell states; the page writes it beside the typeset text.
function cellNumber(cell) {
  return "value" in cell.dataset ? Number(cell.dataset.value) : NaN;
}

// Rows by the texts of a column, or by its numbers if at least half of what it says is numbers;
// what is none comes last.
function sortedRows(rows, column, sign) {
  const text = row => cellText(row.cells[column]);
  const number = row => cellNumber(row.cells[column]);
  const filled = rows.filter(row => !/^[–-]?$/.test(text(row)));
  const numeric = filled.filter(row => !Number.isNaN(number(row)));
  const isNumeric = filled.length > 0 && numeric.length >= filled.length / 2;
  const byText = (a, b) => sign * text(a).localeCompare(text(b));
  const byNumber = (a, b) => {
    const x = number(a);
    const y = number(b);
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
    return sign * (x - y);
  };
  return [...rows].sort(isNumeric ? byNumber : byText);
}

// --- filters ---
// Whether a row has a word. A number is one from its first digit on, not a part of another.
function hasWord(row, word) {
  if (!/^[\d.]+$/.test(word)) return row.textContent.toLowerCase().includes(word);
  const parts = [...row.cells].flatMap(cell => cell.textContent.split(/[\s,[\]=×]+/));
  return parts.some(part => part.startsWith(word));
}

function makeElement(name, properties) {
  return Object.assign(document.createElement(name), properties);
}

// Words above a table, and lists of the texts of columns that ask for them, choose its rows.
function addFilter(table) {
  const rows = [...table.tBodies[0].rows];
  const words = makeElement("input", { type: "search" });
  const shown = makeElement("span", { className: "shown" });
  shown.setAttribute("role", "status");
  const label = makeElement("label", {});
  label.append("Filter rows by words ", words);
  const bar = makeElement("p", { className: "filter" });
  bar.append(label, shown);
  (table.closest(".scroll") ?? table).before(bar);
  const chosen = [];
  const filter = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const asked = chosen.filter(({ select }) => select.value);
    const isChosen = (row, { column, select }) =>
      row.cells[column].textContent.trim() === select.value;
    let count = 0;
    for (const row of rows) {
      const hasWords = wanted.every(word => hasWord(row, word));
      row.hidden = !hasWords || !asked.every(one => isChosen(row, one));
      count += !row.hidden;
    }
    shown.textContent = wanted.length || asked.length ? `${count} of ${rows.length}` : "";
  };
  words.addEventListener("input", filter);
  for (const head of table.querySelectorAll("th[data-choose]")) {
    const column = head.cellIndex;
    const texts = new Set(rows.map(row => row.cells[column].textContent.trim()));
    const options = [...texts].map(text => new Option(text, text));
    const select = document.createElement("select");
    const name = document.createElement("label");
    select.append(new Option(head.dataset.choose, ""), ...options);
    name.append(`${head.textContent} `, select);
    bar.append(name);
    chosen.push({ column, select });
    select.addEventListener("change", filter);
  }
}

for (const table of document.querySelectorAll("table.data")) {
  makeSortable(table);
  // Pages that filter several things at once bring their own.
  if ("filtered" in table.dataset) continue;
  const isLong = table.tBodies[0].rows.length >= 6;
  if (isLong || table.querySelector("th[data-choose]")) addFilter(table);
}

// --- commands ---
for (const node of document.querySelectorAll(".again")) {
  const button = makeElement("button", { type: "button", textContent: "Copy", className: "copy" });
  button.setAttribute("aria-label", `Copy ${node.dataset.copied ?? "the command"}`);
  node.append(button);
  button.addEventListener("click", () => copy(button, node.querySelector("code").textContent));
}

// --- links to what is folded ---
// Browsers open what encloses the target of a link; older ones do not.
function reveal() {
  let node = document.getElementById(location.hash.slice(1));
  for (; node; node = node.parentElement) {
    if (node.localName === "details") node.open = true;
  }
}
addEventListener("hashchange", reveal);
reveal();
