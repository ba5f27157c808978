// Tables: a click on a head sorts by it, words above filter; commands are copied.
for (const table of document.querySelectorAll("table.data")) {
  const body = table.tBodies[0], rows = [...body.rows], original = [...rows];
  // Numbers as pages write them: 1.2·10⁻³, −0.5, ×1 920.
  const number = text => {
    const found = /^[×[\s]*([−+-]?)(?:(?:(\d[\d.]*)·)?10([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)|(\d[\d.]*(?:\s\d{3})*))/.exec(text.trim());
    if (!found) return NaN;
    const [, sign, mantissa, raised, plain] = found;
    const power = [...raised ?? ""].map(c => c === "⁻" ? "-" : "⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(c)).join("");
    return (sign === "" || sign === "+" ? 1 : -1) * Number((plain ?? mantissa ?? "1").replace(/\s/g, "")) * 10 ** Number(power);
  };
  // One row has no order.
  if (rows.length > 1) [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort"), next = now === "ascending" ? "descending" : now === "descending" ? null : "ascending";
      [...table.tHead.rows[0].cells].forEach(cell => cell.removeAttribute("aria-sort"));
      if (!next) return body.append(...original);
      head.setAttribute("aria-sort", next);
      const text = row => row.cells[column].textContent.trim(), sign = next === "ascending" ? 1 : -1;
      const value = row => number(text(row)), said = rows.filter(row => !/^[–-]?$/.test(text(row)));
      const numeric = said.length > 0 && said.filter(row => !Number.isNaN(value(row))).length >= said.length / 2;
      const compare = (a, b) => {
        if (!numeric) return sign * text(a).localeCompare(text(b));
        const [x, y] = [value(a), value(b)];
        return Number.isNaN(x) || Number.isNaN(y) ? Number.isNaN(x) - Number.isNaN(y) : sign * (x - y);
      };
      body.append(...[...rows].sort(compare));
    });
  });
  // Pages that filter several things at once bring their own.
  if ("filtered" in table.dataset) continue;
  if (rows.length < 6 && !table.querySelector("th[data-choose]")) continue;
  const words = Object.assign(document.createElement("input"), { type: "search" });
  const shown = Object.assign(document.createElement("span"), { className: "shown" });
  shown.setAttribute("role", "status");
  const label = Object.assign(document.createElement("label"), {});
  label.append("Filter rows by words ", words);
  const bar = Object.assign(document.createElement("p"), { className: "filter" });
  bar.append(label, shown);
  (table.closest(".scroll") ?? table).before(bar);
  const chosen = [];
  // A number is one from its first digit on, not a part of another.
  const has = (row, word) => /^[\d.]+$/.test(word) ? [...row.cells].some(cell => cell.textContent.split(/[\s,[\]=×]+/).some(part => part.startsWith(word)))
    : row.textContent.toLowerCase().includes(word);
  const filter = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const asked = chosen.filter(([, select]) => select.value);
    let count = 0;
    for (const row of rows) {
      row.hidden = !wanted.every(word => has(row, word))
        || !asked.every(([column, select]) => row.cells[column].textContent.trim() === select.value);
      count += !row.hidden;
    }
    shown.textContent = wanted.length || asked.length ? `${count} of ${rows.length}` : "";
  };
  words.addEventListener("input", filter);
  for (const head of table.querySelectorAll("th[data-choose]")) {
    const select = document.createElement("select"), name = document.createElement("label");
    select.append(new Option(head.dataset.choose, ""), ...[...new Set(rows.map(row => row.cells[head.cellIndex].textContent.trim()))].map(v => new Option(v, v)));
    name.append(`${head.textContent} `, select);
    bar.append(name);
    chosen.push([head.cellIndex, select]);
    select.addEventListener("change", filter);
  }
}
for (const node of document.querySelectorAll(".again")) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Copy", className: "copy" });
  button.setAttribute("aria-label", `Copy ${node.dataset.copied ?? "the command"}`);
  node.append(button);
  button.addEventListener("click", () => copy(button, node.querySelector("code").textContent));
}
// Browsers open what encloses the target of a link; older ones do not.
const reveal = () => {
  for (let node = document.getElementById(location.hash.slice(1)); node; node = node.parentElement) if (node.localName === "details") node.open = true;
};
addEventListener("hashchange", reveal);
reveal();
