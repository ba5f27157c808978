// A figure on the page: its controls, legend, reading by pointer or keyboard,
// files, and its part of the address.
const DEFAULT = figure => ({ x: figure.x, scaleX: figure.scale_x, scaleY: figure.scale_y, band: figure.band,
  panels: figure.views[0].panels, theory: true, hidden: [], kinds: [] });
const SHORT = { x: "x", scaleX: "scale-x", scaleY: "scale-y", band: "band", panels: "panels" };
const el = (tag, attributes = {}, ...inside) => {
  const node = Object.assign(document.createElement(tag), {});
  for (const [key, value] of Object.entries(attributes)) value === false || node.setAttribute(key, value === true ? "" : value);
  node.append(...inside);
  return node;
};

class Plot {
  constructor(figure, node) {
    Object.assign(this, { figure, node, chart: node.querySelector(".chart"), view: DEFAULT(figure), reading: null });
    this.original = this.chart.innerHTML;
    this.tip = el("div", { class: "tip", role: "status", hidden: true });
    this.legend = el("ul", { class: "legend", "aria-label": "Curves: click hides, double click shows only this" });
    this.chart.before(this.controls(), this.legend);
    this.note = el("p", { class: "note", hidden: true });
    this.chart.after(this.tip, this.note);
    node.querySelector(".files").prepend(this.button("SVG", "svg", () => save(`${this.figure.id}.svg`, "image/svg+xml", this.file())),
      this.button("CSV", "csv", () => save(`${this.figure.id}.csv`, "text/csv", this.csv())),
      this.button("Link to this view", "link", event => copy(event.target, location.href)));
    this.chart.addEventListener("pointermove", event => this.point(event));
    this.chart.addEventListener("pointerdown", event => this.point(event));
    this.chart.addEventListener("pointerleave", event => event.pointerType === "touch" || this.read(null));
    this.chart.addEventListener("keydown", event => this.key(event));
    new ResizeObserver(() => this.wide !== this.chart.clientWidth && this.draw()).observe(this.chart);
  }

  button(words, name, act) {
    const button = el("button", { type: "button", class: name }, words);
    button.addEventListener("click", act);
    return button;
  }

  controls() {
    const figure = this.figure, box = el("div", { class: "controls" });
    const choice = (key, words, options) => {
      const select = el("select", { name: SHORT[key] });
      for (const [value, text, off] of options) select.append(el("option", { value, disabled: !!off }, text));
      select.addEventListener("change", () => this.set({ [key]: select.value }));
      if (options.length > 1) box.append(el("label", {}, `${words} `, select));
      (this.selects ??= {})[key] = select;
    };
    choice("x", "across", figure.xs);
    const scalesOf = [["linear", "linear"], ["log", "logarithmic"]];
    choice("scaleX", "x axis", scalesOf);
    choice("scaleY", "y axis", scalesOf);
    const runs = figure.cells.some(c => c.runs.length);
    const bands = Object.entries(BANDS).filter(([name]) => name !== "sem" || figure.band === "sem");
    choice("band", "band", bands.map(([name, text]) => [name, name === "runs" && !runs ? "every replicate (too many for a page)" : text, name === "runs" && !runs]));
    choice("panels", "panels by", figure.views.map(({ panels }) => [panels, panels === "" ? "nothing" : panels.split(",").join(", ")]));
    if (figure.theory.length || figure.references.length) {
      this.theory = el("input", { type: "checkbox", name: "theory", checked: true });
      this.theory.addEventListener("change", () => this.set({ theory: this.theory.checked }));
      box.append(el("label", {}, this.theory, " theory"));
    }
    box.append(this.button("As it was", "reset", () => this.set(DEFAULT(figure))));
    return box;
  }

  set(change) {
    Object.assign(this.view, change);
    this.draw();
    remember();
  }

  // Panels in a row and their size: as plotters drew them, or fewer and narrower.
  layout(count) {
    const { size, columns } = this.figure.layout, room = this.chart.clientWidth || 1000;
    const asked = count === this.figure.layout.frames.length ? columns : Math.min(count, 3);
    const [wide, high] = asked === 1 ? [620, 360] : count === this.figure.layout.frames.length ? size : [330, 250];
    if (asked * wide * 0.72 <= room) return { columns: asked, size: [wide, high], own: asked === columns && wide === size[0] };
    const most = Math.max(1, Math.min(asked, Math.floor(room / 280))), even = Math.ceil(count / Math.ceil(count / most));
    const narrow = Math.max(260, Math.min(even === 1 ? 620 : 480, Math.floor((room - 10) / even)));
    return { columns: even, size: [narrow, Math.min(360, Math.round(narrow * 0.76))], own: false };
  }

  draw() {
    const { figure, view } = this, { panels, keys } = model(figure, view);
    this.wide = this.chart.clientWidth;
    const usual = DEFAULT(figure), same = Object.keys(SHORT).every(key => view[key] === usual[key]);
    const axesSame = ["x", "scaleX", "scaleY", "panels"].every(key => view[key] === usual[key]);
    const { columns, size, own } = this.layout(panels.length);
    const framed = axesSame && view.band !== "runs" && panels.length === figure.layout.frames.length ? figure.layout.frames : frames(figure, view, panels);
    Object.assign(this, { panels, keys, framed, columns, size });
    const title = figure.layout.title, rows = Math.ceil(panels.length / columns);
    this.chart.dataset.by = same && own ? "plotters" : "script";
    if (same && own) {
      this.chart.innerHTML = this.original;
      this.svg = this.chart.querySelector("svg");
      const box = this.svg.viewBox.baseVal, above = box.height - 6 - rows * (size[1] + title);
      this.above = above;
      this.svg.setAttribute("viewBox", `0 ${above} ${box.width} ${box.height - above}`);
      this.svg.setAttribute("height", box.height);
      this.svg.querySelector(".legend")?.setAttribute("display", "none");
    } else {
      const wide = columns * size[0] + 10, high = rows * (size[1] + title) + 6;
      this.above = 0;
      const inside = panels.map((panel, i) => {
        const x = i % columns * size[0], y = Math.floor(i / columns) * (size[1] + title);
        return `<g class="panel" transform="translate(${x},${y})"><text x="${size[0] / 2 + 20}" y="13" font-size="12" text-anchor="middle" fill="#222222">${esc(panel.title)}</text>`
          + `<g transform="translate(0,${title})">${drawPanel(figure, view, panel, framed[i], size, i % columns === 0)}</g></g>`;
      }).join("\n");
      this.chart.innerHTML = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${wide} ${high}" width="${wide}" height="${high}" font-family="sans-serif"><title>${esc(figure.title)}</title>`
        + `<rect class="paper" width="${wide}" height="${high}" fill="#ffffff"/>${inside}</svg>`;
      this.svg = this.chart.querySelector("svg");
      if (!panels.some(p => p.lines.some(l => l.points.length))) {
        this.chart.prepend(el("p", { class: "warn" }, "There is nothing to draw: no cell has results for this view."));
      }
    }
    const svg = this.svg;
    svg.setAttribute("role", "application");
    svg.setAttribute("aria-roledescription", "chart");
    svg.setAttribute("tabindex", "0");
    svg.setAttribute("aria-label", `${figure.title}. Left and right arrows read the points of a curve, up and down change the curve.`);
    this.dot = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    Object.entries({ r: 5, fill: "none", class: "dot", "stroke-width": 2, visibility: "hidden" }).forEach(([k, v]) => this.dot.setAttribute(k, v));
    svg.append(this.dot);
    this.layers = [...svg.querySelectorAll(".panel")].map(panel => [...panel.querySelectorAll(".series")]);
    this.show();
  }

  // Cells are hidden, not names: they stay hidden when other panels name curves anew.
  visible(line) {
    const { hidden, kinds, theory } = this.view;
    if (line.role === "measured") return !this.gone(line);
    return theory && !kinds.includes(this.kind(line)) && !(line.places.length && line.places.every(place => hidden.includes(place)));
  }

  // Whether all cells of a curve are hidden.
  gone({ places }) {
    return places.every(place => this.view.hidden.includes(place));
  }

  // What the legend calls a prediction or a slope.
  kind(line) {
    return line.role === "reference" ? line.label : this.figure.kinds.find(([, dash]) => dash === line.dash)?.[0];
  }

  show() {
    this.panels.forEach((panel, i) => panel.lines.forEach((line, j) => {
      this.layers[i]?.[j]?.setAttribute("visibility", this.visible(line) ? "visible" : "hidden");
    }));
    const styles = this.keys.map(key => [key.label, key.color, key.dash, key.mark, key.places].join()).join("\n");
    if (this.styles !== styles) this.legend.replaceChildren(...this.keys.map(key => el("li", {}, this.entry(key))));
    this.styles = styles;
    this.legend.querySelectorAll("button").forEach((button, i) => button.setAttribute("aria-pressed", this.pressed(this.keys[i])));
    for (const [key, select] of Object.entries(this.selects)) select.value = this.view[key];
    if (this.theory) this.theory.checked = this.view.theory;
    // The caption speaks of the manifest's view: another one says what it shows.
    const usual = DEFAULT(this.figure), other = ["x", "band", "panels"].some(key => this.view[key] !== usual[key]);
    const axis = this.figure.xs.find(([key]) => key === this.view.x)[1];
    this.note.hidden = !other;
    this.note.textContent = `Shown now: over ${axis}; band: ${BANDS[this.view.band]}; panels by ${this.view.panels || "nothing"}. Below, the manifest's view:`;
    this.read(null);
  }

  sample(key) {
    const mark = key.role === "measured" ? `<polygon points="${outline(markOf(key), 4, 13, 7)}" fill="${rgb(key.color)}"/>` : "";
    return `<line x1="0" y1="7" x2="26" y2="7" stroke="${rgb(key.color)}" stroke-width="${mark ? 2 : 1.4}" stroke-dasharray="${pattern(key)}"/>${mark}`;
  }

  off(key) {
    return key.role === "measured" ? this.gone(key) : this.view.kinds.includes(key.label) || !this.view.theory;
  }

  // Of a curve that has a hidden cell and one that is shown: mixed.
  pressed(key) {
    const some = key.role === "measured" && key.places.some(place => this.view.hidden.includes(place));
    return this.off(key) ? "false" : some ? "mixed" : "true";
  }

  entry(key) {
    const button = el("button", { type: "button", "data-label": key.label, title: "click: hide or show; double click or Shift+Enter: only this" });
    button.innerHTML = `<svg width="26" height="14" aria-hidden="true" data-color="${colorName(key.color)}">${this.sample(key)}</svg> ${esc(key.label)}`;
    button.addEventListener("click", event => event.shiftKey ? this.isolate(key, this.view) : event.detail < 2 && this.toggle(key));
    button.addEventListener("dblclick", () => this.isolate(key, this.before));
    return button;
  }

  toggle(key) {
    const { hidden, kinds } = this.view;
    this.before = { hidden, kinds };
    if (key.role === "measured") {
      const others = hidden.filter(place => !key.places.includes(place));
      this.set({ hidden: this.pressed(key) === "true" ? [...others, ...key.places] : others });
    } else {
      this.set({ kinds: kinds.includes(key.label) ? kinds.filter(kind => kind !== key.label) : [...kinds, key.label], theory: true });
    }
  }

  // Only this curve; if it is the only one, all of them again.
  isolate(key, { hidden, kinds }) {
    const same = (a, b) => a.length === b.length && a.every(v => b.includes(v));
    if (key.role === "measured") {
      const others = this.figure.cells.map((_, place) => place).filter(place => !key.places.includes(place));
      this.set({ hidden: same(others, hidden) ? [] : others });
    } else {
      const others = this.keys.filter(k => k.role !== "measured" && k.label !== key.label).map(k => k.label);
      this.set({ kinds: same(others, kinds) ? [] : others });
    }
  }

  // --- reading values ---
  places() {
    const all = [];
    this.panels.forEach((panel, i) => {
      const at = scales(this.figure, this.view, this.framed[i], this.size);
      const [x0, y0] = [i % this.columns * this.size[0], this.above + Math.floor(i / this.columns) * (this.size[1] + this.figure.layout.title) + this.figure.layout.title];
      panel.lines.filter(line => this.visible(line)).forEach(line => {
        const list = stretches(line.points, at).flat().map(p => ({ ...p, px: p.px + x0, py: p.py + y0, panel, line }));
        if (list.length) all.push(list);
      });
    });
    return all;
  }

  point(event) {
    const box = this.svg.getBoundingClientRect(), view = this.svg.viewBox.baseVal, ratio = view.width / box.width;
    const [x, y] = [view.x + (event.clientX - box.left) * ratio, view.y + (event.clientY - box.top) * ratio];
    let best = null, least = 30 * ratio + 20;
    for (const list of this.places()) for (const p of list) {
      const apart = Math.hypot(p.px - x, p.py - y);
      if (apart < least) [best, least] = [p, apart];
    }
    this.read(best);
  }

  key(event) {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (event.key === "Escape") this.read(null);
    if (!step) return;
    event.preventDefault();
    const all = this.places();
    if (!all.length) return;
    const [line, index] = this.reading ?? [0, -1];
    const next = this.reading ? Math.max(0, Math.min(all.length - 1, line + step[0])) : 0;
    const list = all[next], at = Math.max(0, Math.min(list.length - 1, step[0] ? index : index + step[1]));
    this.reading = [next, at];
    this.read(list[at], true);
  }

  read(p, keep = false) {
    if (!keep) this.reading = null;
    this.tip.hidden = !p;
    this.dot.setAttribute("visibility", p ? "visible" : "hidden");
    if (!p) return;
    this.dot.setAttribute("cx", p.px);
    this.dot.setAttribute("cy", p.py);
    const name = this.figure.xs.find(([key]) => key === this.view.x)[1];
    const band = Number.isNaN(p.low) ? "" : `, [${short(p.low)}, ${short(p.high)}] (${BANDS[this.view.band]})`;
    const n = p.n ? `, n = ${p.n}` : "";
    this.tip.replaceChildren(el("strong", {}, p.line.label), p.panel.title ? ` (${p.panel.title})` : "", `: ${short(p.y)}${band}${n}, at ${+p.x.toPrecision(6)} ${name}`);
    const box = this.svg.getBoundingClientRect(), view = this.svg.viewBox.baseVal, ratio = box.width / view.width;
    const left = this.chart.offsetLeft + (p.px - view.x) * ratio, room = this.node.clientWidth;
    this.tip.style.top = `${this.chart.offsetTop + (p.py - view.y) * ratio + 14}px`;
    this.tip.style.left = `${Math.max(0, Math.min(left - this.tip.offsetWidth / 2, room - this.tip.offsetWidth))}px`;
  }

  // --- files ---
  file() {
    const svg = this.svg.cloneNode(true), view = this.svg.viewBox.baseVal, lines = [[]];
    svg.querySelector(".dot").remove();
    svg.querySelectorAll('[visibility="hidden"], [display="none"]').forEach(node => node.remove());
    let x = 12;
    for (const key of this.keys.filter(k => !this.off(k))) {
      const long = 38 + 7 * key.label.length;
      if (x > 12 && x + long > view.width) { lines.push([]); x = 12; }
      lines.at(-1).push([x, key]);
      x += long;
    }
    const top = 10 + 18 * lines.length;
    const legend = lines.map((line, i) => line.map(([at, key]) => `<g transform="translate(${at},${view.y - top + 6 + 18 * i})">${this.sample(key)}<text x="31" y="11" font-size="12">${esc(key.label)}</text></g>`).join("")).join("");
    const [wide, high] = [view.width, view.height + top];
    Object.entries({ viewBox: `0 ${view.y - top} ${wide} ${high}`, width: wide, height: high, role: "img" }).forEach(([k, v]) => svg.setAttribute(k, v));
    ["tabindex", "aria-roledescription"].forEach(name => svg.removeAttribute(name));
    svg.querySelector(".paper").setAttribute("y", view.y - top);
    svg.querySelector(".paper").setAttribute("height", high);
    svg.insertAdjacentHTML("beforeend", `<g class="legend">${legend}</g>`);
    return new XMLSerializer().serializeToString(svg);
  }

  csv() {
    // What a spreadsheet would take for a formula is made a text.
    const inert = text => /^[-=+@\t\r']/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
    const quote = text => /[",\n\r]/.test(text = inert(text)) ? `"${text.replaceAll('"', '""')}"` : text;
    const number = v => Number.isNaN(v) ? "" : String(+v.toPrecision(8));
    const rows = [["panel", "curve", "role", this.view.x, "y", "low", "high", "n", "band"]];
    for (const panel of this.panels) for (const line of panel.lines.filter(l => this.visible(l))) {
      for (const p of line.points) rows.push([panel.title, line.label, line.role, number(p.x), number(p.y), number(p.low), number(p.high), p.n || "", line.role === "measured" ? this.view.band : ""]);
      if (this.view.band === "runs") line.runs.forEach((run, i) => run.forEach(p => rows.push([panel.title, line.label, `replicate ${i}`, number(p.x), number(p.y), "", "", 1, ""])));
    }
    return rows.map(row => row.map(v => quote(String(v))).join(",")).join("\n") + "\n";
  }
}

function save(name, type, text) {
  const link = el("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function copy(button, text) {
  const confirm = words => { const was = button.textContent; button.textContent = words; setTimeout(() => { button.textContent = was; }, 1500); };
  const old = () => {
    const area = el("textarea", { "aria-hidden": "true" }, text);
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    confirm(done ? "copied" : "press Ctrl+C");
  };
  navigator.clipboard ? navigator.clipboard.writeText(text).then(() => confirm("copied"), old) : old();
}

// --- the address: #figure.key=value&… of all that is not as it was ---
const plots = data.figures.map(figure => new Plot(figure, document.getElementById(figure.id)));

function remember() {
  const state = new URLSearchParams();
  for (const { figure, view } of plots) {
    const usual = DEFAULT(figure);
    for (const [key, name] of Object.entries(SHORT)) if (view[key] !== usual[key]) state.append(`${figure.id}.${name}`, view[key]);
    if (!view.theory) state.append(`${figure.id}.theory`, "off");
    // A curve by its name here; a cell of a curve that is partly shown, by its own.
    const { curves, of } = viewOf(figure, view), hides = place => view.hidden.includes(place);
    curves.forEach((curve, i) => {
      const places = of.flatMap((c, place) => c === i ? [place] : []), hidden = places.filter(hides);
      const names = hidden.length === places.length ? [curve.label] : hidden.map(place => figure.cells[place].name);
      names.forEach(name => state.append(`${figure.id}.hide`, name));
    });
    view.kinds.forEach(kind => state.append(`${figure.id}.hide-theory`, kind));
  }
  const text = state.toString();
  history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
}

function recall() {
  if (!location.hash.includes("=")) return plots.forEach(plot => plot.draw());
  const state = new URLSearchParams(location.hash.slice(1));
  for (const plot of plots) {
    const view = DEFAULT(plot.figure), id = plot.figure.id;
    for (const [key, name] of Object.entries(SHORT)) {
      const wanted = state.get(`${id}.${name}`), options = [...plot.selects[key].options].filter(o => !o.disabled).map(o => o.value);
      if (wanted !== null && options.includes(wanted)) view[key] = wanted;
    }
    view.theory = state.get(`${id}.theory`) !== "off";
    const { curves, of } = viewOf(plot.figure, view), names = state.getAll(`${id}.hide`);
    const hides = (cell, place) => names.includes(curves[of[place]].label) || names.includes(cell.name);
    view.hidden = plot.figure.cells.flatMap((cell, place) => hides(cell, place) ? [place] : []);
    view.kinds = state.getAll(`${id}.hide-theory`);
    plot.view = view;
    plot.draw();
  }
  const first = plots.find(plot => [...state.keys()].some(key => key.startsWith(`${plot.figure.id}.`)));
  first?.node.scrollIntoView();
}
for (const map of document.querySelectorAll(".chart:not([data-by])")) {
  if (!plots.some(plot => plot.chart === map)) Object.entries({ tabindex: 0, role: "region", "aria-label": "Map" }).forEach(([k, v]) => map.setAttribute(k, v));
}
addEventListener("hashchange", recall);
recall();
