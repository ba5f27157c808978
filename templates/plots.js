// A figure on the page: its toolbar, panels, list of curves, reading by pointer or keyboard,
// zoom, files, and its part of the address.
const DEFAULT = figure => ({ x: figure.x, scaleX: figure.scale_x, scaleY: figure.scale_y, band: figure.band, panels: figure.views[0].panels,
  range: "common", theory: true, hidden: [], kinds: [], zoom: null, large: figure.large ?? null });
const SHORT = { x: "x", scaleX: "scale-x", scaleY: "scale-y", band: "band", panels: "panels", range: "range" };
const NARROW = 760, SMALL = 480, GAP = 16, TITLE = 22, PAPER = 700, NAME = 15, SAMPLE = 40;
const el = (tag, attributes = {}, ...inside) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) value === false || node.setAttribute(key, value === true ? "" : value);
  node.append(...inside);
  return node;
};
const clamp = (v, low, high) => Math.max(low, Math.min(high, v));

// The panels of a figure in a width: columns, and of each panel its size; those in `hero` stand
// beside or below a large one.
function arrange(count, large, wide) {
  const narrow = wide < NARROW, high = clamp(innerHeight - 272, 420, 560), one = [wide, high, true];
  const columns = n => narrow ? Math.min(n, 2) : Math.ceil(n / Math.ceil(n / 5));
  const share = n => (wide - GAP * (n - 1)) / n;
  if (count === 1) return { columns: 1, sizes: [narrow ? [wide, 330, true] : one] };
  const others = count - 1;
  if (large !== null && !narrow && others <= 3) {
    const left = (wide - GAP) * 1.9 / 2.9, each = (high - (others - 1) * 6 - others * TITLE + TITLE) / others;
    const sizes = Array.from({ length: count }, (_, i) => i === large ? [left, high, true] : [wide - GAP - left, each, false]);
    return { columns: "minmax(0, 1.9fr) minmax(0, 1fr)", sizes, hero: "beside" };
  }
  if (large !== null) {
    const n = narrow && others <= 3 ? 1 : columns(others), size = [share(n), narrow ? (n === 1 ? 190 : 130) : others <= 5 ? 220 : 180, false];
    return { columns: n, sizes: Array.from({ length: count }, (_, i) => i === large ? [wide, narrow ? 330 : high - 60, true] : size), hero: "below" };
  }
  if (count === 2) return { columns: narrow ? 1 : 2, sizes: Array(2).fill(narrow ? [wide, 280, false] : [share(2), clamp(innerHeight - 288, 320, 460), true]) };
  const n = narrow && count <= 4 ? 1 : columns(count), rows = Math.ceil(count / n);
  const each = narrow ? (n === 1 ? 190 : 130) : rows === 1 ? 320 : rows === 2 ? 220 : rows === 3 ? 180 : 150;
  return { columns: n, sizes: Array(count).fill([share(n), each, false]) };
}

class Plot {
  constructor(figure, node) {
    Object.assign(this, { figure, node, chart: node.querySelector(".chart"), view: DEFAULT(figure), cells: [], drawn: [], reading: null });
    this.what = el("p", { class: "what" });
    // What the caption says of the band, as the report wrote it.
    this.caption = node.querySelector("figcaption .band");
    this.written = this.caption?.textContent;
    const help = el("p", { class: "unseen", id: `${figure.id}-keys` }, "Left and right arrows, Page Up, Page Down, Home and End move the reading position; up and down change the panel; Enter enlarges it; plus and minus zoom, 0 shows all; Escape ends.");
    this.grid = el("div", { class: "panels" });
    this.tip = el("div", { class: "tip", hidden: true });
    this.list = el("div", { class: "curves" });
    this.chart.before(el("div", { class: "head" }, this.what, this.toolbar()));
    this.chart.after(this.list);
    this.chart.replaceChildren(help, this.grid, this.tip);
    this.chart.dataset.by = "script";
    new ResizeObserver(() => this.wide !== this.chart.clientWidth && this.draw()).observe(this.chart);
    addEventListener("resize", () => this.high !== innerHeight && this.wide >= NARROW && this.draw());
    addEventListener("beforeprint", () => this.draw(PAPER));
    addEventListener("afterprint", () => this.draw());
  }

  button(words, name, act, more = {}) {
    const button = el("button", { type: "button", class: name, ...more }, words);
    button.addEventListener("click", act);
    return button;
  }

  toolbar() {
    const figure = this.figure, rest = el("span", { class: "rest" }), bar = el("div", { class: "bar controls", role: "group", "aria-label": "View" });
    const choice = (into, key, words, options) => {
      const select = el("select", { name: SHORT[key], "aria-label": words });
      for (const [value, text, off] of options) select.append(el("option", { value, disabled: !!off }, text));
      select.addEventListener("change", () => this.set({ [key]: select.value, ...["x", "scaleX"].includes(key) && { zoom: null }, ...key === "panels" && { large: null } }));
      if (options.length > 1) into.append(select);
      (this.selects ??= {})[key] = select;
    };
    choice(bar, "x", "x axis", figure.xs);
    const scales = axis => [["linear", `${axis} linear`], ["log", `${axis} log`]];
    choice(rest, "scaleX", "scale of the x axis", scales("x"));
    choice(rest, "scaleY", "scale of the y axis", scales("y"));
    const runs = figure.cells.some(c => c.runs.length), bands = figure.cells.length ? ["none", ...figure.bands, ...figure.fixed ? [] : ["runs"]] : ["none"];
    choice(rest, "band", "band", bands.map(name => name === "runs" && !runs ? [name, `${shortBand(figure, name)} (too many for a page)`, true] : [name, shortBand(figure, name)]));
    choice(rest, "panels", "panels by", figure.views.map(view => [view.panels, view.panels === "" ? "one panel" : `by ${view.symbols.join(", ")}`]));
    if (figure.views.some(v => v.groups.length > 1)) choice(rest, "range", "range of the y axis", [["common", "common y"], ["own", "own y"]]);
    if (figure.theory.length || figure.references.length) {
      this.theory = el("input", { type: "checkbox", name: "theory", checked: true });
      this.theory.addEventListener("change", () => this.set({ theory: this.theory.checked }));
      rest.append(el("label", {}, this.theory, "theory"));
    }
    rest.append(el("span", { class: "files" }, this.button("SVG", "svg", () => save(`${figure.id}.svg`, "image/svg+xml", this.file()), { title: "Save this view as SVG" }),
      this.button("CSV", "csv", () => save(`${figure.id}.csv`, "text/csv", this.csv()), { title: "Save the numbers of this view" }),
      this.button("Table", "table", event => event.currentTarget.setAttribute("aria-pressed", this.tabulate()), { title: "Show the numbers of this view", "aria-pressed": "false" }),
      this.button("Link", "link", event => copy(event.currentTarget, location.href), { title: "Copy a link to this view" }),
      this.button("Embed", "embed", event => copy(event.currentTarget, this.frame()), { title: "Copy an iframe of this view for another page" })),
    this.reset = this.button("Reset view", "reset", () => this.set(DEFAULT(figure)), { hidden: true }));
    const more = this.button("More", "more", () => more.setAttribute("aria-expanded", bar.classList.toggle("open")), { "aria-expanded": "false" });
    bar.append(more, rest);
    return bar;
  }

  set(change) {
    Object.assign(this.view, change);
    this.draw();
    remember();
  }

  // --- drawing ---
  draw(wide = this.chart.clientWidth || 1000) {
    const { figure, view } = this, { panels, keys } = model(figure, view), usual = DEFAULT(figure);
    const visible = line => this.visible(line);
    const plain = ["x", "scaleX", "scaleY", "panels", "range", "zoom"].every(key => view[key] === usual[key]) && view.band !== "runs"
      && view.theory && !view.hidden.length && !view.kinds.length;
    // The first view's range is that of the static drawing, without its bands too.
    const framed = plain && [usual.band, "none"].includes(view.band) && panels.length === figure.layout.frames.length ? figure.layout.frames : frames(figure, view, panels, visible);
    [this.wide, this.high] = [wide, innerHeight];
    const large = view.large !== null && view.large < panels.length && panels.length > 1 ? view.large : null;
    const layout = arrange(panels.length, large, this.wide), face = getComputedStyle(this.chart).fontFamily;
    Object.assign(this, { panels, large });
    this.place(layout, panels.length);
    const sizes = panels.map((_, i) => {
      const [width, height, big] = layout.sizes[i], matrix = !big && !layout.hero && view.range === "common" && !view.zoom && typeof layout.columns === "number";
      const high = Math.round(height - (panels.length > 1 ? TITLE : 0)), bottom = this.isBottom(layout, i), named = big || bottom && high >= 100;
      const titleX = fitted(figure.xs.find(([key]) => key === view.x)[1], width - 2, face, X_TITLE);
      const more = named && !big ? NAME + TITLE_LINE * (titleX.lines.length - 1) : 0;
      // Beside a large panel the lowest has no more room than the others.
      return { width, height: high + (layout.hero === "beside" ? 0 : more), titleX, big: big && width > SMALL, values: big, named, face, ticksY: !matrix || i % layout.columns === 0, above: big || !layout.hero && high >= 150 ? figure.y : "" };
    });
    const draw = (i, more) => drawPanel(figure, view, panels[i], framed[i], { ...sizes[i], ...more }, visible), isNarrow = i => !sizes[i].values && sizes[i].width < NARROW_PANEL;
    const once = panels.map((_, i) => draw(i)), quiet = once.some((one, i) => isNarrow(i) && one.isCut);
    // Where all curves coincide labels say nothing, unless they do in every panel.
    const isQuiet = i => quiet && isNarrow(i) || once[i].isLevel && once.some(one => !one.isLevel);
    this.drawn = panels.map((panel, i) => {
      const one = isQuiet(i) ? draw(i, { quiet: true }) : once[i], { title, slider } = this.cells[i], size = sizes[i], { width } = size;
      slider.style.height = `${size.height}px`;
      slider.firstChild.innerHTML = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${fixed(width)} ${size.height}" aria-hidden="true">${one.svg}<g class="cursor"></g></svg>`;
      const { lines, size: letters } = fitted(panel.title, width - 18, size.face, PANEL_TITLE);
      title.textContent = panel.title;
      title.style.cssText = `font-size: ${letters}px${lines.length > 1 ? "; white-space: pre-line; line-height: 11px" : ""}`;
      if (lines.length > 1) title.replaceChildren(lines[0], el("br"), lines[1]);
      title.hidden = panels.length < 2;
      title.setAttribute("aria-pressed", i === large);
      slider.setAttribute("aria-label", panel.title ? `${figure.title}, ${panel.title}` : figure.title);
      return { ...one, size, svg: slider.querySelector("svg"), slider };
    });
    const inside = this.drawn.flatMap(one => one.inside);
    this.keys = keys.filter(key => key.role !== "theory" || this.off(key) || inside.some(l => l.role === "theory" && (l.label === key.label || key.color < 0 && l.dash === key.dash)));
    this.warn(panels.some(p => p.lines.some(l => l.x.length)));
    this.show();
  }

  // Whether no small panel stands below this one.
  isBottom({ columns, sizes, hero }, i) {
    const small = sizes.map((_, j) => j).filter(j => !hero || j !== this.large), place = small.indexOf(i);
    return place >= 0 && place + (hero === "beside" ? 1 : columns) >= small.length;
  }

  warn(drawn) {
    this.chart.querySelector(".warn")?.remove();
    if (!drawn) this.chart.prepend(el("p", { class: "warn" }, "There is nothing to draw: no cell has results for this view."));
  }

  // As many cells as there are panels, in the columns of the layout.
  place({ columns, hero }, count) {
    while (this.cells.length < count) this.cells.push(this.cell(this.cells.length));
    this.cells.splice(count).forEach(({ node }) => node.remove());
    this.grid.style.gridTemplateColumns = typeof columns === "number" ? `repeat(${columns}, minmax(0, 1fr))` : columns;
    this.cells.forEach(({ node }, i) => {
      const is = i === this.large;
      node.classList.toggle("large", is);
      node.style.gridArea = !is ? "" : hero === "beside" ? `1 / 1 / ${count} / 2` : "1 / 1 / 2 / -1";
      if (hero === "beside" && !is) node.style.gridColumn = "2";
      if (!node.parentNode) this.grid.append(node);
    });
    if (!this.cells.some(({ slider }) => slider.tabIndex === 0)) this.cells[this.large ?? 0].slider.tabIndex = 0;
  }

  cell(index) {
    const title = this.button("", "title", () => this.enlarge(index), { tabindex: -1, title: "Enlarge this panel, or make it small again" });
    const slider = el("div", { class: "plane", role: "slider", tabindex: -1, "aria-describedby": `${this.figure.id}-keys`, "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": 100 }, el("div"));
    slider.addEventListener("pointermove", event => this.move(event, index));
    slider.addEventListener("pointerdown", event => this.down(event, index));
    slider.addEventListener("pointerup", event => this.up(event, index));
    slider.addEventListener("pointercancel", () => { this.drag = null; });
    slider.addEventListener("pointerleave", event => event.pointerType === "touch" || this.drag || document.activeElement === slider && this.byKey || this.read(null));
    slider.addEventListener("dblclick", () => this.view.zoom && this.set({ zoom: null }));
    slider.addEventListener("keydown", event => this.key(event, index));
    slider.addEventListener("blur", () => this.byKey && this.read(null));
    return { node: el("div", { class: "cell" }, title, slider), title, slider };
  }

  enlarge(index) {
    this.set({ large: this.large === index ? null : index });
  }

  // --- what is visible ---
  // Cells are hidden, not names: they stay hidden when other panels name curves anew.
  visible(line) {
    const { hidden, kinds, theory } = this.view;
    if (["measured", "selected"].includes(line.role)) return !this.gone(line);
    return theory && !kinds.includes(this.kind(line)) && !kinds.includes(line.label) && !(line.places.length && line.places.every(place => hidden.includes(place)));
  }

  // Whether all cells of a curve are hidden.
  gone({ places }) {
    return places.every(place => this.view.hidden.includes(place));
  }

  // What the list calls a kind of prediction or a slope.
  kind(line) {
    return line.role === "reference" ? line.label : this.figure.kinds.find(([, dash]) => dash === line.dash)?.[0];
  }

  show() {
    const { figure, view } = this, axis = figure.xs.find(([key]) => key === view.x)[1];
    this.what.innerHTML = indexed(`${figure.y} over ${axis}${view.band === "none" ? "" : `; ${view.band === "runs" ? "" : "band: "}${shortBand(figure, view.band)}`}${view.zoom ? `; from ${across(view.zoom[0])} to ${across(view.zoom[1])}` : ""}${figure.labels.ranked && figure.cells.some(cell => cell.geometric) ? "; ratios of geometric means" : ""}`);
    this.what.title = view.band === "none" ? this.what.textContent : `${this.what.textContent} (${longBand(figure, view.band)})`;
    if (this.caption) this.caption.textContent = view.band === figure.band ? this.written : view.band === "none" ? "no band" : view.band === "runs" ? shortBand(figure, view.band) : `band: ${BANDS[view.band]}`;
    this.entries();
    if (this.table) this.table.replaceChildren(...this.tables());
    for (const [key, select] of Object.entries(this.selects)) select.value = view[key];
    if (this.theory) this.theory.checked = view.theory;
    this.reset.hidden = JSON.stringify(view) === JSON.stringify(DEFAULT(figure));
    this.drawn.forEach((one, i) => this.say(i, null));
    const reading = this.reading;
    this.read(null);
    if (reading && this.byKey && this.drawn[reading.panel]) this.read(reading);
  }

  // --- the list of curves ---
  entries() {
    const styles = this.keys.map(key => [key.label, key.color, key.dash, key.mark, key.places].join()).join("\n");
    if (this.styles !== styles) {
      const list = el("ul", { class: "legend", "aria-label": "Curves: click hides, double click shows only this" }, ...this.keys.map(key => el("li", {}, this.entry(key))));
      const own = this.keys.filter(key => key.role === "measured"), names = unique(own.map(key => key.algorithm));
      this.groups = own.length > 10 && names.length > 1 ? names.map(algorithm => {
        const mine = own.filter(key => key.algorithm === algorithm);
        return { ...mine[0], label: `${algorithm}, ${mine.length} curves`, color: mine[0].family * 6, dash: mine[0].dash, places: mine.flatMap(key => key.places) };
      }) : [];
      const groups = this.groups.length ? [el("ul", { class: "legend groups", "aria-label": "Algorithms: click hides, double click shows only this" }, ...this.groups.map(key => el("li", {}, this.entry(key))))] : [];
      const open = !!this.list.querySelector("details[open]");
      // One line of algorithms stays open; more fold with the curves.
      const [above, inside] = names.length > 8 ? [[], groups] : [groups, []];
      this.list.replaceChildren(...above, ...this.keys.length > 10 ? [el("details", { open }, el("summary", {}, `All ${this.keys.length} curves: hide or show`), ...inside, list)] : [list]);
    }
    this.styles = styles;
    this.list.querySelectorAll(".legend:not(.groups) button").forEach((button, i) => button.setAttribute("aria-pressed", this.pressed(this.keys[i])));
    this.list.querySelectorAll(".groups button").forEach((button, i) => button.setAttribute("aria-pressed", this.pressed(this.groups[i])));
  }

  sample(key) {
    const mark = key.role === "reference" || key.color < 0 || key.flat ? "" : `<polygon class="mark" points="${outline(markOf(key), key.role === "measured" ? 4 : 3.4, SAMPLE / 2, 7)}" fill="${rgb(key.color)}"/>`;
    const hole = key.role === "theory" && mark ? `<polygon class="hole" points="${outline(markOf(key), 2, SAMPLE / 2, 7)}" fill="#ffffff"/>` : "";
    return `<line x1="0" y1="7" x2="${SAMPLE}" y2="7" stroke="${rgb(key.color)}" stroke-width="${key.role === "measured" ? 2 : 1.4}" stroke-dasharray="${pattern(key)}"/>${mark}${hole}`;
  }

  off(key) {
    return key.role === "measured" ? this.gone(key) : this.view.kinds.includes(key.label) || this.view.kinds.includes(this.kind(key)) || !this.view.theory;
  }

  // Of a curve that has a hidden cell and one that is shown: mixed.
  pressed(key) {
    const some = key.role === "measured" && key.places.some(place => this.view.hidden.includes(place));
    return this.off(key) ? "false" : some ? "mixed" : "true";
  }

  entry(key) {
    const button = el("button", { type: "button", "data-label": key.label, title: "click: hide or show; double click or Shift+Enter: only this" });
    button.innerHTML = `<svg width="${SAMPLE}" height="14" aria-hidden="true" data-color="${colorName(key.color)}">${this.sample(key)}</svg> ${esc(key.label)}`;
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
      const own = [key.label, this.kind(key)];
      this.set({ kinds: this.off(key) ? kinds.filter(kind => !own.includes(kind)) : [...kinds, key.label], theory: true });
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

  // --- the reading position: a value of x in all panels, at the nearest points of each ---
  // The values of x at which a panel has points.
  stops(i) {
    const one = this.drawn[i];
    if (one.stops) return one.stops;
    const of = lines => {
      const all = new Set();
      for (const line of lines) for (let k = 0; k < line.x.length; k++) if (line.px[k] === line.px[k] && line.py[k] === line.py[k]) all.add(line.x[k]);
      return [...all].sort((a, b) => a - b);
    };
    const own = of(one.lines.filter(l => l.role === "measured"));
    return one.stops = own.length ? own : of(one.lines);
  }

  // The curves of a panel at a value of x, from the largest value to the smallest.
  rows(i, x) {
    const { lines, at } = this.drawn[i], out = [], px = at.x(x);
    for (const line of lines.filter(l => l.role !== "selected")) {
      let best = -1;
      for (let k = 0; k < line.x.length; k++) if (line.px[k] === line.px[k] && line.py[k] === line.py[k] && (best < 0 || Math.abs(line.x[k] - x) < Math.abs(line.x[best] - x))) best = k;
      if (best < 0) continue;
      // A curve that has ended, or that has no point near, says nothing here.
      const beside = [line.px[best - 1], line.px[best + 1]].map(p => Math.abs(p - line.px[best])).filter(d => d === d);
      if (Math.abs(line.px[best] - px) <= Math.max(8, ...beside.map(d => d / 2 + 0.5))) out.push({ line, k: best, y: line.y[best] });
    }
    return out.sort((a, b) => b.y - a.y);
  }

  nearest(i, x) {
    const stops = this.stops(i), scale = this.view.scaleX, p = place(scale, x);
    return stops.reduce((best, v, k) => best < 0 || Math.abs(place(scale, v) - p) < Math.abs(place(scale, stops[best]) - p) ? k : best, -1);
  }

  // The value of x under the pointer.
  under(event, i) {
    const { at, svg, size } = this.drawn[i], box = svg.getBoundingClientRect(), px = (event.clientX - box.left) * size.width / box.width;
    const share = clamp((px - at.left) / at.wide, 0, 1);
    return { px: at.left + share * at.wide, x: unplace(at.scaleX, at.frame.x[0] + share * (at.frame.x[1] - at.frame.x[0])), y: (event.clientY - box.top) * size.height / box.height };
  }

  move(event, i) {
    const { x, px, y } = this.under(event, i);
    if (this.drag && Math.abs(px - this.drag.px) > 6) {
      const { at, svg } = this.drawn[i], [from, to] = [px, this.drag.px].sort((a, b) => a - b);
      svg.querySelector(".cursor").innerHTML = `<rect class="stretch" x="${fixed(from)}" y="${at.top}" width="${fixed(to - from)}" height="${at.bottom - at.top}"/>`;
      this.tip.hidden = true;
      return;
    }
    this.byKey = false;
    const k = this.nearest(i, x);
    this.read(k < 0 ? null : { panel: i, x: this.stops(i)[k], y });
  }

  down(event, i) {
    if (event.pointerType === "mouse" && event.button === 0) {
      this.drag = this.under(event, i);
      this.cells[i].slider.setPointerCapture(event.pointerId);
    }
    this.move(event, i);
  }

  up(event, i) {
    const from = this.drag, to = this.under(event, i);
    this.drag = null;
    if (from && Math.abs(to.px - from.px) > 8) this.set({ zoom: [from.x, to.x].sort((a, b) => a - b).map(v => +v.toPrecision(6)) });
  }

  // Zooms by a factor around the reading position.
  zoom(factor, i) {
    const { at } = this.drawn[i], scale = this.view.scaleX, middle = this.reading ? place(scale, this.reading.x) : (at.frame.x[0] + at.frame.x[1]) / 2;
    const whole = frames(this.figure, { ...this.view, zoom: null }, this.panels, () => true)[i].x;
    const ends = at.frame.x.map((p, end) => clamp(middle + (p - middle) / factor, whole[0], whole[1]));
    const all = ends[0] <= whole[0] && ends[1] >= whole[1];
    this.set({ zoom: all ? null : ends.map(p => +unplace(scale, p).toPrecision(6)) });
  }

  key(event, i) {
    const stops = this.stops(i), now = this.reading ? this.nearest(i, this.reading.x) : -1, page = Math.max(1, Math.round(stops.length / 10));
    const to = { ArrowLeft: now < 0 ? stops.length - 1 : now - 1, ArrowRight: now + 1, PageUp: now + page, PageDown: (now < 0 ? stops.length : now) - page, Home: 0, End: stops.length - 1 }[event.key];
    const order = [...this.large === null ? [] : [this.large], ...this.cells.map((_, j) => j).filter(j => j !== this.large)], turn = order.indexOf(i);
    const next = { ArrowUp: order[turn - 1] ?? -1, ArrowDown: order[turn + 1] ?? -1 }[event.key];
    const act = { Escape: () => this.reading ? this.read(null) : this.view.zoom && this.set({ zoom: null }), 0: () => this.view.zoom && this.set({ zoom: null }),
      "+": () => this.zoom(2, i), "=": () => this.zoom(2, i), "-": () => this.zoom(0.5, i), Enter: () => this.panels.length > 1 && this.enlarge(i), " ": () => this.panels.length > 1 && this.enlarge(i) }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || to === undefined && next === undefined && !act) return;
    event.preventDefault();
    if (act) { this.byKey = true; return act(); }
    if (next !== undefined) return this.cells[next] && this.turn(next);
    this.byKey = true;
    if (stops.length) this.read({ panel: i, x: stops[clamp(to, 0, stops.length - 1)] });
  }

  // The other panel gets the focus, at the same value of x.
  turn(i) {
    const reading = this.reading;
    this.byKey = false;
    this.cells.forEach(({ slider }, j) => { slider.tabIndex = j === i ? 0 : -1; });
    this.cells[i].slider.focus();
    this.byKey = true;
    const k = this.nearest(i, reading ? reading.x : Infinity);
    if (k >= 0) this.read({ panel: i, x: this.stops(i)[reading ? k : this.stops(i).length - 1] });
  }

  read(reading) {
    this.reading = reading;
    this.tip.hidden = !reading;
    this.drawn.forEach((one, i) => {
      const cursor = one.svg.querySelector(".cursor"), k = reading ? this.nearest(i, reading.x) : -1;
      if (k < 0) { cursor.textContent = ""; return; }
      const { at } = one, x = this.stops(i)[k], px = fixed(at.x(x)), rows = this.rows(i, x);
      cursor.innerHTML = `<line x1="${px}" x2="${px}" y1="${at.top}" y2="${at.bottom}" stroke="#59616b"/>` + (rows.length > 30 ? "" : rows.map(({ line, k }) =>
        `<g data-color="${colorName(line.color)}"><circle class="dot" cx="${fixed(line.px[k])}" cy="${fixed(line.py[k])}" r="${one.size.big ? 4 : 3}" fill="${rgb(line.color)}"/></g>`).join(""));
    });
    if (!reading) return;
    this.say(reading.panel, reading.x);
    this.tell(reading);
  }

  // What a screen reader says of a panel.
  say(i, x) {
    const { slider } = this.cells[i], stops = this.stops(i), k = x === null ? stops.length - 1 : this.nearest(i, x);
    const axis = this.figure.xs.find(([key]) => key === this.view.x)[1];
    slider.setAttribute("aria-valuemax", Math.max(0, stops.length - 1));
    slider.setAttribute("aria-valuenow", Math.max(0, k));
    const rows = k < 0 ? [] : this.rows(i, stops[k]), few = rows.length > 12 ? [...rows.slice(0, 3), ...rows.slice(-3)] : rows;
    slider.setAttribute("aria-valuetext", k < 0 ? "nothing is drawn" : `${axis} ${across(stops[k])}: ${few.map(({ line, y }) => `${line.label} ${number(y)}`).join("; ")}${few.length < rows.length ? `; ${rows.length - few.length} more between` : ""}`);
  }

  // The tip: all curves of the panel in the order of their values.
  tell({ panel, x, y }) {
    const { at, size, svg } = this.drawn[panel], all = this.rows(panel, x), axis = this.figure.xs.find(([key]) => key === this.view.x)[1];
    const own = all.filter(r => r.line.role === "measured"), { isGeometric, level } = levels(this.figure, own), least = own.reduce((a, r) => Math.min(a, level(r)), Infinity);
    // Of very many, those that are next to the pointer, or the lowest.
    const near = y === undefined ? all.slice(-18) : [...all].sort((a, b) => Math.abs(a.line.py[a.k] - y) - Math.abs(b.line.py[b.k] - y)).slice(0, 18);
    const rows = all.length > 20 ? all.filter(r => near.includes(r)) : all, ns = unique(own.map(r => r.line.n?.[r.k]));
    const band = ({ line, k }) => !line.low || Number.isNaN(line.low[k]) ? "" : `[${number(line.low[k])}, ${number(line.high[k])}]`;
    const ratio = r => {
      if (r.line.role !== "measured" || own.length < 2 || !this.figure.labels.ranked) return "";
      if (!(least > 0)) return this.figure.labels.zero_below > 0 && level(r) === 0 ? "zero to rounding" : "";
      return level(r) > least ? `${readable(level(r) / least)}×` : "lowest";
    };
    const row = r => `<tr><td><svg width="${SAMPLE}" height="14" data-color="${colorName(r.line.color)}">${this.sample(r.line)}</svg>${esc(r.line.label)}</td><td>${number(r.y)}</td><td class="dim">${band(r)}</td>${ns.length > 1 ? `<td class="dim">${r.line.n?.[r.k] ? `n = ${r.line.n[r.k]}` : ""}</td>` : ""}<td class="dim">${ratio(r)}</td></tr>`;
    const notes = [this.panels[panel].title, ns.length === 1 && ns[0] ? `n = ${ns[0]}${this.figure.unit === "instance" ? " instances" : ""}` : "", own.some(r => band(r)) ? BANDS[this.view.band] : "", isGeometric && own.length > 1 && this.figure.labels.ranked ? "ratios of geometric means" : "", rows.length < all.length ? `${rows.length} of ${all.length} curves` : ""];
    this.tip.innerHTML = `<b>${esc(axis)} ${across(x)}</b> <span class="dim">${esc(notes.filter(Boolean).join("; "))}</span><table>${rows.map(row).join("")}</table>`;
    this.tip.hidden = false;
    const box = svg.getBoundingClientRect(), out = this.chart.getBoundingClientRect(), by = box.width / size.width, px = box.left - out.left + at.x(x) * by;
    const wide = this.tip.offsetWidth, below = out.width < SMALL, right = px + 16 + wide <= out.width || px < out.width / 2;
    this.tip.style.left = `${clamp(below ? 0 : right ? px + 16 : px - 16 - wide, 0, Math.max(0, out.width - wide))}px`;
    this.tip.style.top = `${below ? box.bottom - out.top + 4 : box.top - out.top + 6}px`;
  }

  // --- the numbers as a table ---
  // Shows or hides it; whether it is shown.
  tabulate() {
    if (this.table) this.table.remove();
    this.table = this.table ? null : el("div", { class: "numbers" }, ...this.tables());
    if (this.table) this.list.before(this.table);
    return !!this.table;
  }

  // A table of each panel: the curves at so many values of x at most, evenly chosen.
  tables() {
    const axis = this.figure.xs.find(([key]) => key === this.view.x)[1], ROWS = 25;
    return this.drawn.map(({ lines }, i) => {
      const own = lines.filter(l => l.x.length && !["reference", "selected"].includes(l.role)), stops = this.stops(i), step = Math.max(1, (stops.length - 1) / (ROWS - 1));
      const rows = unique(Array.from({ length: Math.min(ROWS, stops.length) }, (_, k) => stops[Math.round(k * step)]));
      const cells = x => {
        const near = new Map(this.rows(i, x).map(({ line, k }) => [line, k]));
        return own.map(line => { const k = near.get(line); return `<td>${k === undefined ? "" : number(line.y[k]) + (line.low && !Number.isNaN(line.low[k]) ? ` [${number(line.low[k])}, ${number(line.high[k])}]` : "")}</td>`; }).join("");
      };
      const words = `${this.panels[i].title ? `${this.panels[i].title}: ` : ""}${this.figure.y}${rows.length < stops.length ? `, ${rows.length} of ${stops.length} rows; the CSV has all` : ""}`;
      const out = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Table: ${this.figure.title}, ${this.panels[i].title || "numbers"}` });
      out.innerHTML = `<table><caption>${indexed(words)}</caption><thead><tr><th scope="col">${indexed(axis)}</th>${own.map(l => `<th scope="col">${esc(l.label)}</th>`).join("")}</tr></thead>`
        + `<tbody>${rows.map(x => `<tr><th scope="row">${across(x)}</th>${cells(x)}</tr>`).join("")}</tbody></table>`;
      return out;
    });
  }

  // --- files ---
  // This figure alone, as an element of another page.
  frame() {
    const url = new URL(location.href);
    url.searchParams.set("embed", this.figure.id);
    return `<iframe src="${esc(url.href)}" title="${esc(this.figure.title)}" width="800" height="620" style="border: 0"></iframe>`;
  }

  // The view as a file of its own: as on light paper, with plain colours.
  file() {
    const origin = this.grid.getBoundingClientRect(), top = 46, parts = [];
    this.drawn.forEach(({ svg, size }, i) => {
      const box = svg.getBoundingClientRect(), copy = svg.cloneNode(true), [x, y] = [box.left - origin.left, box.top - origin.top + top];
      copy.querySelector(".cursor").remove();
      const { lines, size: letters } = fitted(this.panels[i].title, size.width, "sans-serif", PANEL_TITLE);
      const words = lines.length < 2 ? esc(lines[0]) : lines.map((words, k) => `<tspan x="${fixed(x)}" y="${fixed(y - 14 + 10 * k)}">${esc(words)}</tspan>`).join("");
      const title = this.panels.length > 1 ? `<text x="${fixed(x)}" y="${fixed(y - 7)}" font-size="${fixed(letters)}" font-weight="640" fill="#15181c">${words}</text>` : "";
      parts.push([y + size.height, `${title}<g transform="translate(${fixed(x)},${fixed(y)})">${copy.innerHTML}</g>`]);
    });
    const wide = Math.ceil(this.wide), legend = [];
    let [x, y] = [4, Math.max(...parts.map(p => p[0])) + 14];
    for (const key of this.keys.filter(k => !this.off(k))) {
      const long = SAMPLE + 24 + widthOf(key.label, "12px sans-serif");
      if (x > 4 && x + long > wide) [x, y] = [4, y + 18];
      legend.push(`<g class="key" data-label="${esc(key.label)}" transform="translate(${fixed(x)},${fixed(y)})">${this.sample(key)}<text x="${SAMPLE + 6}" y="11" font-size="12" fill="#15181c">${esc(key.label)}</text></g>`);
      x += long;
    }
    // What the figure answers and where it is from.
    const from = [data.question, data.origin && `Source: ${data.origin}`, data.experiment && `exactfed, ${data.experiment}`].filter(Boolean);
    const lines = from.map((words, i) => `<text class="from" x="4" y="${fixed(y + 34 + 15 * i)}" font-size="11" fill="#59616b">${esc(cut(words, "11px sans-serif", wide - 8))}</text>`);
    const high = Math.ceil(y + 24 + 15 * from.length);
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${wide} ${high}" width="${wide}" height="${high}" font-family="sans-serif"><title>${esc(this.figure.title)}</title>`
      + `<rect class="paper" width="${wide}" height="${high}" fill="#ffffff"/><text x="4" y="15" font-size="14" font-weight="640" fill="#15181c">${esc(cut(this.figure.title, "640 14px sans-serif", wide - 8))}</text><text x="4" y="33" font-size="12" fill="#59616b">${esc(this.what.textContent)}</text>`
      + `${parts.map(p => p[1]).join("\n")}<g class="legend">${legend.join("")}</g>${lines.join("")}</svg>\n`;
  }

  csv() {
    // What a spreadsheet would take for a formula is made a text.
    const inert = text => /^[-=+@\t\r']/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
    const quote = text => /[",\n\r]/.test(text = inert(text)) ? `"${text.replaceAll('"', '""')}"` : text;
    const number = v => v === undefined || Number.isNaN(v) ? "" : String(+v.toPrecision(8));
    const rows = [["panel", "curve", "role", this.view.x, "y", "low", "high", "n", "band"]];
    for (const panel of this.panels) for (const line of panel.lines.filter(l => this.visible(l))) {
      line.x.forEach((x, i) => rows.push([panel.title, line.label, line.role === "measured" && line.n && !line.n[i] ? "exact" : line.role, number(x), number(line.y[i]), number(line.low?.[i]), number(line.high?.[i]), line.n?.[i] || "", line.role === "measured" ? this.view.band : ""]));
      if (this.view.band === "runs") line.runs.forEach((run, r) => run.x.forEach((x, i) => rows.push([panel.title, line.label, `${this.figure.unit === "instance" ? "instance" : "replicate"} ${r}`, number(x), number(run.y[i]), "", "", 1, ""])));
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

// --- the address: #figure.key=value&… of all that differs from the manifest's view ---
// By class too, since a heading of the page may have the id of a figure.
const sectionOf = id => [...document.querySelectorAll(".plot")].find(node => node.id === id);
// An embedded figure stands alone.
const alone = sectionOf(new URLSearchParams(location.search).get("embed"));
if (alone) {
  document.body.replaceChildren(el("main", { id: "main", class: "alone" }, alone));
  document.body.append(el("p", { class: "from" }, el("a", { href: `${location.pathname}#${alone.id}`, target: "_top" }, document.title)));
}
const plots = data.figures.filter(figure => !alone || figure.id === alone.id).map(figure => new Plot(figure, sectionOf(figure.id)));

function remember() {
  const state = new URLSearchParams();
  for (const { figure, view } of plots) {
    const usual = DEFAULT(figure), add = (name, value) => state.append(`${figure.id}.${name}`, value);
    for (const [key, name] of Object.entries(SHORT)) if (view[key] !== usual[key]) add(name, view[key]);
    if (view.large !== (view.panels === usual.panels ? usual.large : null)) add("large", view.large === null ? "none" : view.large + 1);
    if (view.zoom) add("zoom", view.zoom.map(v => +v.toPrecision(6)).join(".."));
    if (!view.theory) add("theory", "off");
    // A curve by its name here; a cell of a curve that is partly shown, by its own.
    const { curves, of } = viewOf(figure, view), hides = place => view.hidden.includes(place);
    curves.forEach((curve, i) => {
      const places = of.flatMap((c, place) => c === i ? [place] : []), hidden = places.filter(hides);
      const names = hidden.length === places.length ? [curve.label] : hidden.map(place => figure.cells[place].name);
      names.forEach(name => add("hide", name));
    });
    view.kinds.forEach(kind => add("hide-theory", kind));
  }
  const text = state.toString();
  history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
}

// A figure's view from the address; what is not there is passed over.
function viewFrom(state, { figure, selects }) {
  const view = DEFAULT(figure), get = name => state.get(`${figure.id}.${name}`);
  for (const [key, name] of Object.entries(SHORT)) {
    const wanted = get(name), options = [...selects[key]?.options ?? []].filter(o => !o.disabled).map(o => o.value);
    if (wanted !== null && options.includes(wanted)) view[key] = wanted;
  }
  if (view.panels !== figure.views[0].panels) view.large = null;
  const large = get("large");
  if (large !== null) view.large = Number.isInteger(Number(large)) && large >= 1 ? large - 1 : null;
  const zoom = (get("zoom") ?? "").split("..").map(Number);
  if (get("zoom") && zoom.length === 2 && zoom[0] < zoom[1] && zoom.every(v => Number.isFinite(place(view.scaleX, v)))) view.zoom = zoom;
  view.theory = get("theory") !== "off";
  const { curves, of } = viewOf(figure, view), names = state.getAll(`${figure.id}.hide`);
  view.hidden = figure.cells.flatMap((cell, i) => names.includes(curves[of[i]].label) || names.includes(cell.name) ? [i] : []);
  view.kinds = state.getAll(`${figure.id}.hide-theory`);
  return view;
}

function recall() {
  const start = performance.now(), state = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  for (const plot of plots) {
    if (location.hash.includes("=")) plot.view = viewFrom(state, plot);
    plot.draw();
  }
  plots.find(plot => [...state.keys()].some(key => key.startsWith(`${plot.figure.id}.`)))?.node.scrollIntoView();
  performance.measure("exactfed-draw", { start, end: performance.now() });
}
addEventListener("hashchange", recall);
recall();
