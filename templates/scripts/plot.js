// A figure on the page: its toolbar, its panels and what is visible of them.
// The width of a figure on paper.
const PAPER = 700;

// The view that the manifest asks for. The order of the keys is that of `view`, with which it is
// compared as text.
function defaultView(figure) {
  return {
    x: figure.x,
    scaleX: figure.scale_x,
    scaleY: figure.scale_y,
    band: figure.band,
    panels: figure.views[0].panels,
    range: "common",
    theory: true,
    hidden: [],
    kinds: [],
    zoom: null,
    large: figure.large ?? null,
  };
}

// What a reader chooses from lists, by its names in the address and on the page.
const SHORT = {
  x: "x",
  scaleX: "scale-x",
  scaleY: "scale-y",
  band: "band",
  panels: "panels",
  range: "range",
};

function makeButton(words, name, act, more = {}) {
  const button = el("button", { type: "button", class: name, ...more }, words);
  button.addEventListener("click", act);
  return button;
}

const KEYS_HELP =
  "Left and right arrows, Page Up, Page Down, Home and End move the reading position; up and down change the panel; Enter enlarges it; plus and minus zoom, 0 shows all; Escape ends.";

class Plot {
  constructor(figure, node) {
    Object.assign(this, { figure, node, view: defaultView(figure), cells: [], drawn: [] });
    this.chart = node.querySelector(".chart");
    this.what = el("p", { class: "what" });
    // What the caption says of the band, as the report wrote it.
    this.caption = node.querySelector("figcaption .band");
    this.written = this.caption?.textContent;
    const help = el("p", { class: "unseen", id: `${figure.id}-keys` }, KEYS_HELP);
    this.grid = el("div", { class: "panels" });
    this.curves = new CurveList(this);
    this.reader = new Reader(this);
    this.chart.before(el("div", { class: "head" }, this.what, this.toolbar()));
    this.chart.after(this.curves.node);
    this.chart.replaceChildren(help, this.grid, this.reader.tip);
    this.chart.dataset.by = "script";
    new ResizeObserver(() => {
      if (this.wide !== this.chart.clientWidth) this.draw();
    }).observe(this.chart);
    addEventListener("resize", () => {
      if (this.high !== innerHeight && this.wide >= NARROW) this.draw();
    });
    addEventListener("beforeprint", () => this.draw(PAPER));
    addEventListener("afterprint", () => this.draw());
  }

  // --- the toolbar ---
  toolbar() {
    const { figure } = this;
    const bar = el("div", { class: "bar controls", role: "group", "aria-label": "View" });
    const rest = el("span", { class: "rest" });
    this.selects = {};
    this.choice(bar, "x", "x axis", figure.xs);
    const scales = axis => [
      ["linear", `${axis} linear`],
      ["log", `${axis} log`],
    ];
    this.choice(rest, "scaleX", "scale of the x axis", scales("x"));
    this.choice(rest, "scaleY", "scale of the y axis", scales("y"));
    this.choice(rest, "band", "band", this.bandOptions());
    const panels = figure.views.map(view => {
      const words = view.panels === "" ? "one panel" : `by ${view.symbols.join(", ")}`;
      return [view.panels, words];
    });
    this.choice(rest, "panels", "panels by", panels);
    if (figure.views.some(view => view.groups.length > 1)) {
      const ranges = [
        ["common", "common y"],
        ["own", "own y"],
      ];
      this.choice(rest, "range", "range of the y axis", ranges);
    }
    if (figure.theory.length || figure.references.length) {
      this.theory = el("input", { type: "checkbox", name: "theory", checked: true });
      this.theory.addEventListener("change", () => this.set({ theory: this.theory.checked }));
      rest.append(el("label", {}, this.theory, "theory"));
    }
    this.reset = makeButton("Reset view", "reset", () => this.set(defaultView(figure)), {
      hidden: true,
    });
    rest.append(this.fileButtons(), this.reset);
    const more = makeButton(
      "More",
      "more",
      () => more.setAttribute("aria-expanded", bar.classList.toggle("open")),
      { "aria-expanded": "false" },
    );
    bar.append(more, rest);
    return bar;
  }

  // A list from which a key of the view is chosen; one of a single option is not shown.
  choice(into, key, words, options) {
    const select = el("select", { name: SHORT[key], "aria-label": words });
    for (const [value, text, isOff] of options) {
      select.append(el("option", { value, disabled: !!isOff }, text));
    }
    select.addEventListener("change", () => {
      // A stretch of one axis is none of another, and panels are counted anew.
      const zoom = ["x", "scaleX"].includes(key) && { zoom: null };
      const large = key === "panels" && { large: null };
      this.set({ [key]: select.value, ...zoom, ...large });
    });
    if (options.length > 1) into.append(select);
    this.selects[key] = select;
  }

  bandOptions() {
    const { figure } = this;
    const hasRuns = figure.cells.some(cell => cell.runs.length);
    const ofRuns = figure.fixed ? [] : ["runs"];
    const bands = figure.cells.length ? ["none", ...figure.bands, ...ofRuns] : ["none"];
    return bands.map(name => {
      const words = shortBand(figure, name);
      return name === "runs" && !hasRuns
        ? [name, `${words} (too many for a page)`, true]
        : [name, words];
    });
  }

  fileButtons() {
    const { id } = this.figure;
    return el(
      "span",
      { class: "files" },
      makeButton("SVG", "svg", () => save(`${id}.svg`, "image/svg+xml", svgFile(this)), {
        title: "Save this view as SVG",
      }),
      makeButton("CSV", "csv", () => save(`${id}.csv`, "text/csv", csvFile(this)), {
        title: "Save the numbers of this view",
      }),
      makeButton(
        "Table",
        "table",
        event => event.currentTarget.setAttribute("aria-pressed", this.toggleTable()),
        { title: "Show the numbers of this view", "aria-pressed": "false" },
      ),
      makeButton("Link", "link", event => copy(event.currentTarget, location.href), {
        title: "Copy a link to this view",
      }),
      makeButton("Embed", "embed", event => copy(event.currentTarget, embeddedFrame(this.figure)), {
        title: "Copy an iframe of this view for another page",
      }),
    );
  }

  set(change) {
    Object.assign(this.view, change);
    this.draw();
    remember();
  }

  // --- drawing ---
  draw(wide = this.chart.clientWidth || 1000) {
    const { figure, view } = this;
    const { panels, keys } = model(figure, view);
    const framed = this.framesOf(panels);
    this.wide = wide;
    this.high = innerHeight;
    const hasLarge = view.large !== null && view.large < panels.length && panels.length > 1;
    this.large = hasLarge ? view.large : null;
    this.panels = panels;
    const layout = arrange(panels.length, this.large, wide);
    this.place(layout, panels.length);
    const face = getComputedStyle(this.chart).fontFamily;
    const sizes = panels.map((_, i) => this.sizeOf(layout, i, face));
    this.drawn = this.drawnPanels(framed, sizes).map((one, i) => this.fill(one, i, sizes[i]));
    const inside = this.drawn.flatMap(one => one.inside);
    const isDrawn = key =>
      inside.some(line => {
        const isKind = key.color < 0 && line.dash === key.dash;
        return line.role === "theory" && (line.label === key.label || isKind);
      });
    const shown = keys.filter(key => key.role !== "theory" || this.isOff(key) || isDrawn(key));
    this.warn(panels.some(panel => panel.lines.some(line => line.x.length)));
    this.show(shown);
  }

  // The ranges of the axes. The first view's range is that of the static drawing, without its bands
  // too.
  framesOf(panels) {
    const { figure, view } = this;
    const usual = defaultView(figure);
    const keys = ["x", "scaleX", "scaleY", "panels", "range", "zoom"];
    const isUsual = keys.every(key => view[key] === usual[key]);
    const isWhole = view.theory && !view.hidden.length && !view.kinds.length;
    const hasUsualBand = view.band !== "runs" && [usual.band, "none"].includes(view.band);
    const isStatic = isUsual && isWhole && hasUsualBand;
    if (isStatic && panels.length === figure.layout.frames.length) return figure.layout.frames;
    return frames(figure, view, panels, line => this.isVisible(line));
  }

  // What a panel has room for.
  sizeOf(layout, i, face) {
    const { figure, view, panels } = this;
    const { columns, hero } = layout;
    const [width, height, isLarge] = layout.sizes[i];
    // Panels in rows and columns that have the same y axis have its ticks on the left alone.
    const isMatrix =
      !isLarge && !hero && view.range === "common" && !view.zoom && typeof columns === "number";
    const high = Math.round(height - (panels.length > 1 ? TITLE : 0));
    const isNamed = isLarge || (this.isBottom(layout, i) && high >= 100);
    const titleX = fitted(axisName(figure, view), width - 2, face, X_TITLE);
    const more = isNamed && !isLarge ? NAME + TITLE_LINE * (titleX.lines.length - 1) : 0;
    const hasTitleY = isLarge || (!hero && high >= 150);
    return {
      width,
      // Beside a large panel the lowest has no more room than the others.
      height: high + (hero === "beside" ? 0 : more),
      titleX,
      big: isLarge && width > SMALL,
      values: isLarge,
      named: isNamed,
      face,
      ticksY: !isMatrix || i % columns === 0,
      above: hasTitleY ? figure.y : "",
    };
  }

  // The panels as drawn. Narrow panels have no labels where one of them has no room for its own, and
  // where all curves of a panel coincide labels say nothing, unless they do in every panel.
  drawnPanels(framed, sizes) {
    const { figure, view, panels } = this;
    const isVisible = line => this.isVisible(line);
    const drawOne = (i, more) =>
      drawPanel(figure, view, panels[i], framed[i], { ...sizes[i], ...more }, isVisible);
    const isNarrow = i => !sizes[i].values && sizes[i].width < NARROW_PANEL;
    const once = panels.map((_, i) => drawOne(i));
    const hasCut = once.some((one, i) => isNarrow(i) && one.isCut);
    const hasOpen = once.some(one => !one.isLevel);
    return once.map((one, i) => {
      const isQuiet = (hasCut && isNarrow(i)) || (one.isLevel && hasOpen);
      return isQuiet ? drawOne(i, { quiet: true }) : one;
    });
  }

  // Puts what was drawn of a panel on the page.
  fill(one, i, size) {
    const { figure, panels } = this;
    const panel = panels[i];
    const { title, slider } = this.cells[i];
    const { width, height } = size;
    slider.style.height = `${height}px`;
    slider.firstChild.innerHTML = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${fixed(width)} ${height}" aria-hidden="true">${one.svg}<g class="cursor"></g></svg>`;
    const { lines, size: letters } = fitted(panel.title, width - 18, size.face, PANEL_TITLE);
    const inTwo = lines.length > 1 ? "; white-space: pre-line; line-height: 11px" : "";
    title.textContent = panel.title;
    title.style.cssText = `font-size: ${letters}px${inTwo}`;
    if (lines.length > 1) title.replaceChildren(lines[0], el("br"), lines[1]);
    title.hidden = panels.length < 2;
    title.setAttribute("aria-pressed", i === this.large);
    const name = panel.title ? `${figure.title}, ${panel.title}` : figure.title;
    slider.setAttribute("aria-label", name);
    return { ...one, size, svg: slider.querySelector("svg"), slider };
  }

  // Whether no small panel stands below this one.
  isBottom({ columns, sizes, hero }, i) {
    const small = sizes.map((_, j) => j).filter(j => !hero || j !== this.large);
    const place = small.indexOf(i);
    return place >= 0 && place + (hero === "beside" ? 1 : columns) >= small.length;
  }

  warn(hasPoints) {
    this.chart.querySelector(".warn")?.remove();
    if (hasPoints) return;
    const words = "There is nothing to draw: no cell has results for this view.";
    this.chart.prepend(el("p", { class: "warn" }, words));
  }

  // As many cells of the grid as there are panels, in the columns of the layout.
  place({ columns, hero }, count) {
    while (this.cells.length < count) this.cells.push(this.cell(this.cells.length));
    for (const { node } of this.cells.splice(count)) node.remove();
    const isCount = typeof columns === "number";
    this.grid.style.gridTemplateColumns = isCount ? `repeat(${columns}, minmax(0, 1fr))` : columns;
    const areaOfLarge = hero === "beside" ? `1 / 1 / ${count} / 2` : "1 / 1 / 2 / -1";
    this.cells.forEach(({ node }, i) => {
      const isLarge = i === this.large;
      node.classList.toggle("large", isLarge);
      node.style.gridArea = isLarge ? areaOfLarge : "";
      if (hero === "beside" && !isLarge) node.style.gridColumn = "2";
      if (!node.parentNode) this.grid.append(node);
    });
    // A figure of cells without results has no panel.
    if (count > 0 && !this.cells.some(({ slider }) => slider.tabIndex === 0)) {
      this.cells[this.large ?? 0].slider.tabIndex = 0;
    }
  }

  cell(index) {
    const title = makeButton("", "title", () => this.enlarge(index), {
      tabindex: -1,
      title: "Enlarge this panel, or make it small again",
    });
    const attributes = {
      class: "plane",
      role: "slider",
      tabindex: -1,
      "aria-describedby": `${this.figure.id}-keys`,
      "aria-valuemin": 0,
      "aria-valuemax": 100,
      "aria-valuenow": 100,
    };
    const slider = el("div", attributes, el("div"));
    this.reader.listen(slider, index);
    return { node: el("div", { class: "cell" }, title, slider), title, slider };
  }

  enlarge(index) {
    this.set({ large: this.large === index ? null : index });
  }

  // --- what is visible ---
  // Cells are hidden, not names: they stay hidden when other panels name curves anew.
  isVisible(line) {
    const { hidden, kinds, theory } = this.view;
    if (["measured", "selected"].includes(line.role)) return !this.isGone(line);
    const isHiddenKind = kinds.includes(this.kind(line)) || kinds.includes(line.label);
    const isOfHidden = line.places.length && line.places.every(place => hidden.includes(place));
    return theory && !isHiddenKind && !isOfHidden;
  }

  // Whether all cells of a curve are hidden.
  isGone({ places }) {
    return places.every(place => this.view.hidden.includes(place));
  }

  // What the list calls a kind of prediction or a slope.
  kind(line) {
    if (line.role === "reference") return line.label;
    return this.figure.kinds.find(([, dash]) => dash === line.dash)?.[0];
  }

  // Whether an entry of the list of curves is hidden.
  isOff(key) {
    const { kinds, theory } = this.view;
    if (key.role === "measured") return this.isGone(key);
    return kinds.includes(key.label) || kinds.includes(this.kind(key)) || !theory;
  }

  // --- what is said around the panels ---
  show(keys) {
    const { figure, view } = this;
    this.what.innerHTML = indexed(this.description());
    this.what.title =
      view.band === "none"
        ? this.what.textContent
        : `${this.what.textContent} (${longBand(figure, view.band)})`;
    if (this.caption) this.caption.textContent = this.bandOfCaption();
    this.curves.show(keys);
    if (this.table) this.table.replaceChildren(...numberTables(this));
    for (const [key, select] of Object.entries(this.selects)) select.value = view[key];
    if (this.theory) this.theory.checked = view.theory;
    this.reset.hidden = JSON.stringify(view) === JSON.stringify(defaultView(figure));
    this.reader.refresh();
  }

  // What is drawn, in words.
  description() {
    const { figure, view } = this;
    const parts = [`${figure.y} over ${axisName(figure, view)}`];
    if (view.band !== "none") {
      const words = shortBand(figure, view.band);
      parts.push(view.band === "runs" ? words : `band: ${words}`);
    }
    if (view.zoom) parts.push(`from ${across(view.zoom[0])} to ${across(view.zoom[1])}`);
    if (figure.labels.ranked && figure.cells.some(cell => cell.geometric)) {
      parts.push("ratios of geometric means");
    }
    return parts.join("; ");
  }

  bandOfCaption() {
    const { figure, view } = this;
    if (view.band === figure.band) return this.written;
    if (view.band === "none") return "no band";
    return view.band === "runs" ? shortBand(figure, view.band) : `band: ${BANDS[view.band]}`;
  }

  // Shows or hides the table of the numbers; whether it is shown.
  toggleTable() {
    if (this.table) this.table.remove();
    this.table = this.table ? null : el("div", { class: "numbers" }, ...numberTables(this));
    if (this.table) this.curves.node.before(this.table);
    return !!this.table;
  }
}
