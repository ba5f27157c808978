// Squares narrower than this have room for few words.
const SMALL_SQUARE = 80;

// Maps: tables of coloured squares in the width that there is, in place of the static drawing.
class MapFigure {
  constructor(figure, node) {
    Object.assign(this, { figure, choice: 0, chart: node.querySelector(".chart") });
    const select = el("select", { name: "show", "aria-label": "what the squares show" }, ...figure.choices.map((words, i) => el("option", { value: i }, `show ${words}`)));
    select.addEventListener("change", () => { this.choice = Number(select.value); this.draw(); });
    const files = node.querySelector(".about .files");
    this.chart.before(el("div", { class: "head" }, el("p", { class: "what" }, `${figure.y} over ${figure.x}`), el("div", { class: "bar controls" }, select, el("span", { class: "files" }, ...files.childNodes))));
    files.remove();
    this.tip = el("div", { class: "tip", hidden: true });
    this.chart.after(el("ul", { class: "legend patches", "aria-label": "Colours" }, ...figure.legend.map(key => this.entry(key)),
      ...figure.maps.some(map => map.squares.some(s => s.outlined)) ? [el("li", {}, "≠ runs and ρ disagree")] : []));
    this.chart.classList.add("maps");
    this.chart.dataset.by = "script";
    this.chart.addEventListener("pointermove", event => this.tell(event.target.closest?.("td")));
    this.chart.addEventListener("pointerdown", event => this.tell(event.target.closest?.("td")));
    this.chart.addEventListener("pointerleave", event => event.pointerType === "touch" || this.tell(null));
    new ResizeObserver(() => this.wide !== this.chart.clientWidth && this.draw()).observe(this.chart);
    this.draw();
  }

  entry({ label, color, patch }) {
    // As strong as the strongest squares of its colour.
    const strength = Math.max(0, ...this.figure.maps.flatMap(map => map.squares).filter(s => s.color === color).map(s => s.opacity));
    const sample = patch ? `<rect class="patch" width="22" height="12" y="1" fill="${rgb(color)}" style="--o: ${strength}"/>` : '<line class="edge" x1="0" x2="26" y1="7" y2="7" stroke-width="3" stroke="#15181c"/>';
    const item = el("li", {});
    item.innerHTML = `<svg width="26" height="14" aria-hidden="true" data-color="${colorName(color)}">${sample}</svg> ${esc(label)}`;
    return item;
  }

  // Maps side by side while their squares stay as wide as their texts need.
  draw() {
    const { figure, choice } = this, room = this.wide = this.chart.clientWidth || 1000;
    const most = Math.max(...figure.maps.map(map => map.x.length)), count = figure.maps.length;
    const columns = clamp(Math.floor(room / (most * 88 + 90)), 1, Math.min(count, 3)), width = (room / columns - 90) / most;
    const scroll = this.chart.querySelector(".maps-grid")?.scrollLeft ?? 0;
    const grid = el("div", { class: "maps-grid" });
    grid.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    grid.append(...figure.maps.map(map => {
      const holder = el("div", { class: "map", tabindex: 0, role: "region", "aria-label": map.title ? `Map: ${figure.title}, ${map.title}` : `Map: ${figure.title}` });
      holder.innerHTML = (map.title ? `<p class="title">${esc(map.title)}</p>` : "") + this.table(map, choice, width);
      return holder;
    }));
    this.chart.replaceChildren(grid, this.tip);
    grid.scrollLeft = scroll;
  }

  // Letters of a small square at which its longest word has room, within what can be read.
  letters(map, choice, width, face) {
    const words = map.squares.flatMap(square => (square.shows[choice] || "").split(/[ -]/));
    const longest = Math.max(1, ...words.map(word => widthOf(word, `600 10px ${face}`))) / 10;
    return clamp((width - 8) / longest, 8, 12.8);
  }

  table(map, choice, width) {
    const { figure } = this, small = width < SMALL_SQUARE, face = getComputedStyle(this.chart).fontFamily, names = `12.2px ${face}`;
    // As wide as the names of the rows; names of columns that are wider than these stand upright.
    const first = Math.ceil(Math.max(...map.y.map(name => widthOf(name, names)))) + 12;
    const upright = map.x.some(name => widthOf(name, names) + 4 > width);
    const heavy = new Set(map.edges.map(String)), at = new Map(map.squares.map(s => [`${s.x},${s.y}`, s]));
    // The sides of a square on which a spectral radius passes 1.
    const sides = (x, y) => [["left", [x, y, x, y + 1]], ["bottom", [x, y, x + 1, y]]]
      .filter(([, side]) => heavy.has(String(side))).map(([name]) => `edge-${name}`);
    const cell = (x, y) => {
      const square = at.get(`${x},${y}`);
      if (!square) return '<td class="blank"><span class="unseen">no results</span></td>';
      const whole = square.shows[choice] || "–", names = whole.split(" or "), tied = choice === 0 && names.length > 1;
      // The interval of a tie is not corrected for several comparisons: the tip has it.
      const others = tied ? [] : square.shows.filter((text, i) => i !== choice && text && text !== "–");
      // In a small square: the name or how many share the first place, and the factor without its limits.
      const main = !small ? whole : choice === 0 && names.length > 1 ? `${names.length} tied` : whole.startsWith("×") ? whole.split(" ")[0] : whole;
      const factor = small && choice === 0 && names.length < 2 ? others.find(text => text.startsWith("×"))?.split(" ")[0] : "";
      return `<td class="${[...sides(x, y), square.outlined ? "outlined" : "", square.opacity < 0.2 ? "tie" : ""].join(" ").trim()}" data-color="${colorName(square.color)}" style="--o:${square.opacity}" data-at="${x},${y}"><span class="main">${esc(main)}</span>`
        + `${factor ? `<span class="more" aria-hidden="true">${esc(factor)}</span>` : ""}${others.length ? `<span class="${small ? "unseen" : "more"}">${esc(others.join("; "))}</span>` : ""}</td>`;
    };
    const rows = map.y.map((name, y) => `<tr><th scope="row">${esc(name)}</th>${map.x.map((_, x) => cell(x, y)).join("")}</tr>`).reverse();
    const along = `<thead><tr><td class="along" colspan="${map.x.length + 1}">${esc(figure.y)} ↑</td></tr></thead>`;
    const columns = map.x.map(name => `<th scope="col"><span>${esc(name)}</span></th>`).join("");
    const across = `<tr><td class="corner"></td><td class="across" colspan="${map.x.length}">${esc(figure.x)} →</td></tr>`;
    const letters = small ? ` style="--letters: ${fixed(this.letters(map, choice, width, face))}px"` : "";
    return `<table class="squares${upright ? " upright" : ""}"${letters}><caption class="unseen">${esc(`${figure.y} (rows) over ${figure.x} (columns)${map.title ? `, ${map.title}` : ""}`)}</caption><colgroup><col style="width: ${first}px"><col span="${map.x.length}"></colgroup>${along}`
      + `<tbody>${rows.join("")}</tbody><tfoot><tr><td class="corner"></td>${columns}</tr>${across}</tfoot></table>`;
  }

  tell(square) {
    const at = square?.dataset.at;
    this.tip.hidden = !at;
    if (!at) return;
    const { figure } = this, map = figure.maps[[...this.chart.querySelectorAll(".map")].indexOf(square.closest(".map"))];
    const [x, y] = at.split(",").map(Number), found = map.squares.find(s => s.x === x && s.y === y);
    const rows = figure.choices.map((words, i) => `<tr><td>${esc(words)}</td><td>${esc(found.shows[i] || "–")}</td></tr>`);
    this.tip.innerHTML = `<b>${esc(figure.x)} ${esc(map.x[x])}, ${esc(figure.y)} ${esc(map.y[y])}</b> <span class="dim">${esc(map.title)}</span><table>${rows.join("")}</table>`;
    this.tip.hidden = false;
    const box = square.getBoundingClientRect(), out = this.chart.getBoundingClientRect();
    this.tip.style.left = `${clamp(box.left - out.left, 0, Math.max(0, out.width - this.tip.offsetWidth))}px`;
    this.tip.style.top = `${box.bottom - out.top + 4}px`;
  }
}

// Maps of too many squares for a text in each: the static drawing, and what is at a point or at two numbers.
class DenseMap {
  constructor(figure, node) {
    Object.assign(this, { figure, map: figure.maps[0], chart: node.querySelector(".chart") });
    const { map, chart } = this;
    this.squares = new Map(map.squares.map(([x, y, winner, ahead, remark]) => [`${x},${y}`, [map.winners[winner], ahead, remark]]));
    this.inputs = [[figure.x, map.values[0]], [figure.y, map.values[1]]].map(([name, values]) =>
      el("input", { type: "text", inputmode: "decimal", size: 8, "aria-label": name, value: Number(values[Math.floor(values.length / 2)].toPrecision(3)) }));
    this.answer = el("output", {});
    const [x, y] = this.inputs;
    const form = el("form", { class: "lookup" }, `${figure.x} = `, x, ` ${figure.y} = `, y, " ", this.answer);
    form.addEventListener("submit", event => event.preventDefault());
    form.addEventListener("input", () => this.look());
    this.tip = el("div", { class: "tip", hidden: true });
    chart.before(form);
    chart.append(this.tip);
    chart.classList.add("maps", "dense");
    // It scrolls where the page is narrow.
    Object.entries({ tabindex: 0, role: "region", "aria-label": `Map: ${figure.title}` }).forEach(([name, value]) => chart.setAttribute(name, value));
    chart.dataset.by = "script";
    for (const name of ["pointermove", "pointerdown"]) chart.addEventListener(name, event => this.tell(event));
    chart.addEventListener("pointerleave", event => event.pointerType === "touch" || (this.tip.hidden = true));
    this.look();
  }

  // What is best on a square, in words.
  words([x, y]) {
    const square = this.squares.get(`${x},${y}`);
    if (!square) return ["nothing that was tried reaches ε", ""];
    const [winner, ahead, remark] = square;
    return [winner.includes(" or ") ? `no practical difference: ${winner}` : `${winner}${ahead && `, ${ahead}`}`, remark];
  }

  // The nearest square to two numbers.
  look() {
    const { map, inputs, figure } = this;
    const places = inputs.map((input, i) => {
      const value = Number(input.value.replace(",", ".")), values = map.values[i];
      if (!(value > 0)) return null;
      const apart = values.map(one => Math.abs(Math.log(one / value)));
      const nearest = apart.indexOf(Math.min(...apart)), step = Math.abs(Math.log(values[1] / values[0]));
      return apart[nearest] > 0.51 * step ? null : nearest;
    });
    const range = i => `${Number(Math.min(...map.values[i]).toPrecision(3))} to ${Number(Math.max(...map.values[i]).toPrecision(3))}`;
    this.answer.textContent = places.includes(null) ? `the map has ${figure.x} from ${range(0)} and ${figure.y} from ${range(1)}` : this.words(places).join("; ");
  }

  tell(event) {
    const { map, chart } = this, panel = chart.querySelector("svg .panel"), svg = panel.ownerSVGElement;
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const [left, top, wide, high] = panel.dataset.area.split(" ").map(Number);
    const x = Math.floor((point.x - left) / wide * map.x.length), y = Math.floor((top + high - point.y) / high * map.y.length);
    this.tip.hidden = x < 0 || y < 0 || x >= map.x.length || y >= map.y.length;
    if (this.tip.hidden) return;
    const [winner, remark] = this.words([x, y]);
    this.tip.innerHTML = `<b>${esc(this.figure.x)} ${esc(map.x[x])}, ${esc(this.figure.y)} ${esc(map.y[y])}</b><br>${esc(winner)}<br>${esc(remark)}`;
    const out = chart.getBoundingClientRect();
    this.tip.style.left = `${clamp(event.clientX - out.left + 12, 0, Math.max(0, out.width - this.tip.offsetWidth))}px`;
    this.tip.style.top = `${event.clientY - out.top + 14}px`;
  }
}
data.maps.filter(figure => sectionOf(figure.id)).forEach(figure => new (figure.maps[0].winners ? DenseMap : MapFigure)(figure, sectionOf(figure.id)));
