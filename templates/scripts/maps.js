// Maps: tables of coloured squares in the width that there is, in place of the static drawing.
// Squares narrower than this have room for few words.
const SMALL_SQUARE = 80;
// The width of a square whose text is easy to read, and of the names of rows beside a map.
const SQUARE = 88;
const ROW_NAMES = 90;

class MapFigure {
  constructor(figure, node) {
    Object.assign(this, { figure, choice: 0, chart: node.querySelector(".chart") });
    const { chart } = this;
    const options = figure.choices.map((words, i) => el("option", { value: i }, `show ${words}`));
    const attributes = { name: "show", "aria-label": "what the squares show" };
    const select = el("select", attributes, ...options);
    select.addEventListener("change", () => {
      this.choice = Number(select.value);
      this.draw();
    });
    const files = node.querySelector(".about .files");
    const links = el("span", { class: "files" }, ...files.childNodes);
    const bar = el("div", { class: "bar controls" }, select, links);
    const what = el("p", { class: "what" }, `${figure.y} over ${figure.x}`);
    chart.before(el("div", { class: "head" }, what, bar));
    files.remove();
    this.tip = el("div", { class: "tip", hidden: true });
    chart.after(this.legend());
    chart.classList.add("maps");
    chart.dataset.by = "script";
    for (const name of ["pointermove", "pointerdown"]) {
      chart.addEventListener(name, event => this.tell(event.target.closest?.("td")));
    }
    chart.addEventListener("pointerleave", event => {
      // A finger leaves as soon as it is lifted; what it has found stays.
      if (event.pointerType !== "touch") this.tell(null);
    });
    new ResizeObserver(() => {
      if (this.wide !== chart.clientWidth) this.draw();
    }).observe(chart);
    this.draw();
  }

  legend() {
    const { figure } = this;
    const entries = figure.legend.map(key => this.entry(key));
    const hasOutlined = figure.maps.some(map => map.squares.some(square => square.outlined));
    if (hasOutlined) entries.push(el("li", {}, "≠ runs and ρ disagree"));
    return el("ul", { class: "legend patches", "aria-label": "Colours" }, ...entries);
  }

  entry({ label, color, patch }) {
    // As strong as the strongest squares of its colour.
    const squares = this.figure.maps.flatMap(map => map.squares);
    const own = squares.filter(square => square.color === color);
    const strength = Math.max(0, ...own.map(square => square.opacity));
    const sample = patch
      ? `<rect class="patch" width="22" height="12" y="1" fill="${rgb(color)}" style="--o: ${strength}"/>`
      : '<line class="edge" x1="0" x2="26" y1="7" y2="7" stroke-width="3" stroke="#15181c"/>';
    const item = el("li", {});
    item.innerHTML = `<svg width="26" height="14" aria-hidden="true" data-color="${colorName(color)}">${sample}</svg> ${esc(label)}`;
    return item;
  }

  // Maps side by side while their squares stay as wide as their texts need.
  draw() {
    const { figure, choice, chart } = this;
    this.wide = chart.clientWidth || 1000;
    const most = Math.max(...figure.maps.map(map => map.x.length));
    const fitting = Math.floor(this.wide / (most * SQUARE + ROW_NAMES));
    const columns = clamp(fitting, 1, Math.min(figure.maps.length, 3));
    const width = (this.wide / columns - ROW_NAMES) / most;
    const scroll = chart.querySelector(".maps-grid")?.scrollLeft ?? 0;
    const grid = el("div", { class: "maps-grid" });
    grid.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    for (const map of figure.maps) {
      const name = map.title ? `Map: ${figure.title}, ${map.title}` : `Map: ${figure.title}`;
      const attributes = { class: "map", tabindex: 0, role: "region", "aria-label": name };
      const holder = el("div", attributes);
      const title = map.title ? `<p class="title">${esc(map.title)}</p>` : "";
      holder.innerHTML = title + this.table(map, choice, width);
      grid.append(holder);
    }
    chart.replaceChildren(grid, this.tip);
    grid.scrollLeft = scroll;
  }

  // Letters of a small square at which its longest word has room, within what can be read.
  letters(map, choice, width, face) {
    const words = map.squares.flatMap(square => (square.shows[choice] || "").split(/[ -]/));
    const longest = Math.max(1, ...words.map(word => widthOf(word, `600 10px ${face}`))) / 10;
    return clamp((width - 8) / longest, 8, 12.8);
  }

  table(map, choice, width) {
    const { figure } = this;
    const isSmall = width < SMALL_SQUARE;
    const face = getComputedStyle(this.chart).fontFamily;
    const nameWidth = name => widthOf(name, `12.2px ${face}`);
    // As wide as the names of the rows; names of columns that are wider than these stand upright.
    const first = Math.ceil(Math.max(...map.y.map(nameWidth))) + 12;
    const isUpright = map.x.some(name => nameWidth(name) + 4 > width);
    const heavy = new Set(map.edges.map(String));
    const squares = new Map(map.squares.map(square => [`${square.x},${square.y}`, square]));
    const cell = (x, y) => {
      const square = squares.get(`${x},${y}`);
      if (!square) return '<td class="blank"><span class="unseen">no results</span></td>';
      return squareCell(square, sidesOf(heavy, x, y), choice, isSmall);
    };
    const rows = map.y.map((name, y) => {
      const cells = map.x.map((_, x) => cell(x, y)).join("");
      return `<tr><th scope="row">${esc(name)}</th>${cells}</tr>`;
    });
    // The smallest value of y is at the bottom.
    rows.reverse();
    const along = `<thead><tr><td class="along" colspan="${map.x.length + 1}">${esc(figure.y)} ↑</td></tr></thead>`;
    const columns = map.x.map(name => `<th scope="col"><span>${esc(name)}</span></th>`).join("");
    const across = `<tr><td class="corner"></td><td class="across" colspan="${map.x.length}">${esc(figure.x)} →</td></tr>`;
    const size = isSmall ? fixed(this.letters(map, choice, width, face)) : null;
    const letters = isSmall ? ` style="--letters: ${size}px"` : "";
    const title = map.title ? `, ${map.title}` : "";
    const caption = esc(`${figure.y} (rows) over ${figure.x} (columns)${title}`);
    return (
      `<table class="squares${isUpright ? " upright" : ""}"${letters}><caption class="unseen">${caption}</caption>` +
      `<colgroup><col style="width: ${first}px"><col span="${map.x.length}"></colgroup>${along}` +
      `<tbody>${rows.join("")}</tbody><tfoot><tr><td class="corner"></td>${columns}</tr>${across}</tfoot></table>`
    );
  }

  // The tip of a square, or none.
  tell(square) {
    const at = square?.dataset.at;
    this.tip.hidden = !at;
    if (!at) return;
    const { figure, chart, tip } = this;
    const holders = [...chart.querySelectorAll(".map")];
    const map = figure.maps[holders.indexOf(square.closest(".map"))];
    const [x, y] = at.split(",").map(Number);
    const found = map.squares.find(one => one.x === x && one.y === y);
    const rows = figure.choices.map(
      (words, i) => `<tr><td>${esc(words)}</td><td>${esc(found.shows[i] || "–")}</td></tr>`,
    );
    const place = `${esc(figure.x)} ${esc(map.x[x])}, ${esc(figure.y)} ${esc(map.y[y])}`;
    tip.innerHTML = `<b>${place}</b> <span class="dim">${esc(map.title)}</span><table>${rows.join("")}</table>`;
    tip.hidden = false;
    const box = square.getBoundingClientRect();
    const out = chart.getBoundingClientRect();
    const left = clamp(box.left - out.left, 0, Math.max(0, out.width - tip.offsetWidth));
    tip.style.left = `${left}px`;
    tip.style.top = `${box.bottom - out.top + 4}px`;
  }
}

// The sides of a square on which a spectral radius passes 1, as classes.
function sidesOf(heavy, x, y) {
  const sides = [
    ["left", [x, y, x, y + 1]],
    ["bottom", [x, y, x + 1, y]],
  ];
  return sides.filter(([, side]) => heavy.has(String(side))).map(([name]) => `edge-${name}`);
}

function squareCell(square, sides, choice, isSmall) {
  const whole = square.shows[choice] || "–";
  const names = whole.split(" or ");
  const isTied = choice === 0 && names.length > 1;
  // The interval of a tie is not corrected for several comparisons: the tip has it.
  const others = isTied
    ? []
    : square.shows.filter((text, i) => i !== choice && text && text !== "–");
  const main = isSmall ? shortMain(whole, names, isTied) : whole;
  const hasFactor = isSmall && choice === 0 && names.length < 2;
  const factor = hasFactor && others.find(text => text.startsWith("×"))?.split(" ")[0];
  const classes = [...sides, square.outlined ? "outlined" : "", square.opacity < 0.2 ? "tie" : ""];
  const more = factor ? `<span class="more" aria-hidden="true">${esc(factor)}</span>` : "";
  const rest = others.length
    ? `<span class="${isSmall ? "unseen" : "more"}">${esc(others.join("; "))}</span>`
    : "";
  return `<td class="${classes.join(" ").trim()}" data-color="${colorName(square.color)}" style="--o:${square.opacity}" data-at="${square.x},${square.y}"><span class="main">${esc(main)}</span>${more}${rest}</td>`;
}

// In a small square: the name or how many share the first place, and the factor without its limits.
function shortMain(whole, names, isTied) {
  if (isTied) return `${names.length} tied`;
  return whole.startsWith("×") ? whole.split(" ")[0] : whole;
}

// Maps of too many squares for a text in each: the static drawing, and what is at a point or at two
// numbers.
class DenseMap {
  constructor(figure, node) {
    Object.assign(this, { figure, map: figure.maps[0], chart: node.querySelector(".chart") });
    const { map, chart } = this;
    this.squares = new Map(
      map.squares.map(([x, y, winner, ahead, remark]) => [
        `${x},${y}`,
        [map.winners[winner], ahead, remark],
      ]),
    );
    const [valuesX, valuesY] = map.values;
    this.inputs = [middleInput(figure.x, valuesX), middleInput(figure.y, valuesY)];
    const [x, y] = this.inputs;
    this.answer = el("output", {});
    const words = [`${figure.x} = `, x, ` ${figure.y} = `, y, " ", this.answer];
    const form = el("form", { class: "lookup" }, ...words);
    form.addEventListener("submit", event => event.preventDefault());
    form.addEventListener("input", () => this.look());
    this.tip = el("div", { class: "tip", hidden: true });
    chart.before(form);
    chart.append(this.tip);
    chart.classList.add("maps", "dense");
    // It scrolls where the page is narrow.
    chart.setAttribute("tabindex", 0);
    chart.setAttribute("role", "region");
    chart.setAttribute("aria-label", `Map: ${figure.title}`);
    chart.dataset.by = "script";
    for (const name of ["pointermove", "pointerdown"]) {
      chart.addEventListener(name, event => this.tell(event));
    }
    chart.addEventListener("pointerleave", event => {
      if (event.pointerType !== "touch") this.tip.hidden = true;
    });
    this.look();
  }

  // What is best on a square, in words.
  words([x, y]) {
    const square = this.squares.get(`${x},${y}`);
    if (!square) return ["nothing that was tried reaches ε", ""];
    const [winner, ahead, remark] = square;
    const isTied = winner.includes(" or ");
    const first = isTied
      ? `no practical difference: ${winner}`
      : `${winner}${ahead && `, ${ahead}`}`;
    return [first, remark];
  }

  // Says what is at the nearest square to two numbers.
  look() {
    const { map, inputs, figure } = this;
    const places = inputs.map((input, i) => nearestSquare(input, map.values[i]));
    const three = value => Number(value.toPrecision(3));
    const range = i =>
      `${three(Math.min(...map.values[i]))} to ${three(Math.max(...map.values[i]))}`;
    this.answer.textContent = places.includes(null)
      ? `the map has ${figure.x} from ${range(0)} and ${figure.y} from ${range(1)}`
      : this.words(places).join("; ");
  }

  // The tip of the square under the pointer.
  tell(event) {
    const { figure, map, chart, tip } = this;
    const panel = chart.querySelector("svg .panel");
    const screen = panel.ownerSVGElement.getScreenCTM();
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(screen.inverse());
    const [left, top, wide, high] = panel.dataset.area.split(" ").map(Number);
    const x = Math.floor(((point.x - left) / wide) * map.x.length);
    const y = Math.floor(((top + high - point.y) / high) * map.y.length);
    tip.hidden = x < 0 || y < 0 || x >= map.x.length || y >= map.y.length;
    if (tip.hidden) return;
    const [winner, remark] = this.words([x, y]);
    const place = `${esc(figure.x)} ${esc(map.x[x])}, ${esc(figure.y)} ${esc(map.y[y])}`;
    tip.innerHTML = `<b>${place}</b><br>${esc(winner)}<br>${esc(remark)}`;
    const out = chart.getBoundingClientRect();
    const room = Math.max(0, out.width - tip.offsetWidth);
    tip.style.left = `${clamp(event.clientX - out.left + 12, 0, room)}px`;
    tip.style.top = `${event.clientY - out.top + 14}px`;
  }
}

// A field for a number, which begins with the middle one of those of the map.
function middleInput(name, values) {
  const middle = values[Math.floor(values.length / 2)];
  return el("input", {
    type: "text",
    inputmode: "decimal",
    size: 8,
    "aria-label": name,
    value: Number(middle.toPrecision(3)),
  });
}

// The index of the value nearest to what a field says; null where it says no number or one that is
// outside of the map.
function nearestSquare(input, values) {
  const value = Number(input.value.replace(",", "."));
  if (!(value > 0)) return null;
  const distances = values.map(one => Math.abs(Math.log(one / value)));
  const nearest = distances.indexOf(Math.min(...distances));
  const step = Math.abs(Math.log(values[1] / values[0]));
  return distances[nearest] > 0.51 * step ? null : nearest;
}

for (const figure of data.maps) {
  const section = sectionOf(figure.id);
  if (!section) continue;
  if (figure.maps[0].winners) new DenseMap(figure, section);
  else new MapFigure(figure, section);
}
