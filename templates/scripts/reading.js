// The reading position of a figure: a value of x in all panels, at the nearest points of each, by
// pointer or by keyboard; and stretches of x that are zoomed to.
// Rows of the tip, and cursors of a panel, at most.
const MOST_ROWS = 20;
const MOST_CURSORS = 30;
// Rows of the tip where there are more curves.
const NEAR_ROWS = 18;
// Curves of which a screen reader speaks at most.
const MOST_SPOKEN = 12;
// So many pixels make a movement a drag, and a drag a zoom.
const DRAG = 6;
const ZOOM = 8;

class Reader {
  constructor(plot) {
    this.plot = plot;
    this.tip = el("div", { class: "tip", hidden: true });
    this.reading = null;
  }

  // Follows the pointer and the keyboard on a panel.
  listen(slider, i) {
    slider.addEventListener("pointermove", event => this.move(event, i));
    slider.addEventListener("pointerdown", event => this.down(event, i));
    slider.addEventListener("pointerup", event => this.up(event, i));
    slider.addEventListener("pointercancel", () => {
      this.drag = null;
    });
    slider.addEventListener("pointerleave", event => {
      // A finger leaves as soon as it is lifted; what it has found stays.
      if (event.pointerType === "touch" || this.drag) return;
      if (document.activeElement === slider && this.byKey) return;
      this.read(null);
    });
    slider.addEventListener("dblclick", () => this.showAll());
    slider.addEventListener("keydown", event => this.key(event, i));
    slider.addEventListener("blur", () => {
      if (this.byKey) this.read(null);
    });
  }

  // After the panels were drawn again.
  refresh() {
    const { drawn } = this.plot;
    for (const i of drawn.keys()) this.say(i, null);
    const { reading } = this;
    this.read(null);
    if (reading && this.byKey && drawn[reading.panel]) this.read(reading);
  }

  // --- what is at a value of x ---
  // The values of x at which a panel has points: of measured curves, if there are any.
  stops(i) {
    const one = this.plot.drawn[i];
    if (!one.stops) {
      const own = stopsOf(one.lines.filter(line => line.role === "measured"));
      one.stops = own.length ? own : stopsOf(one.lines);
    }
    return one.stops;
  }

  // The curves of a panel at a value of x, from the largest value to the smallest.
  rows(i, x) {
    const { lines, at } = this.plot.drawn[i];
    const pixel = at.x(x);
    const found = [];
    for (const line of lines) {
      if (line.role === "selected") continue;
      const k = nearestPoint(line, x);
      if (k >= 0 && isNear(line, k, pixel)) found.push({ line, k, y: line.y[k] });
    }
    return found.sort((a, b) => b.y - a.y);
  }

  // The index of the nearest value of x at which a panel has points; -1 where it has none.
  nearest(i, x) {
    const stops = this.stops(i);
    const scale = this.plot.view.scaleX;
    const wanted = positionOf(scale, x);
    const distance = stop => Math.abs(positionOf(scale, stop) - wanted);
    let best = -1;
    stops.forEach((stop, k) => {
      if (best < 0 || distance(stop) < distance(stops[best])) best = k;
    });
    return best;
  }

  // The place under the pointer, in pixels of the drawing, and its value of x.
  under(event, i) {
    const { at, svg, size } = this.plot.drawn[i];
    const box = svg.getBoundingClientRect();
    const pixel = ((event.clientX - box.left) * size.width) / box.width;
    const share = clamp((pixel - at.left) / at.wide, 0, 1);
    const [low, high] = at.frame.x;
    return {
      px: at.left + share * at.wide,
      x: valueAt(at.scaleX, low + share * (high - low)),
      y: ((event.clientY - box.top) * size.height) / box.height,
    };
  }

  // --- the pointer ---
  move(event, i) {
    const { x, px, y } = this.under(event, i);
    if (this.drag && Math.abs(px - this.drag.px) > DRAG) {
      const { at, svg } = this.plot.drawn[i];
      const [from, to] = [px, this.drag.px].sort((a, b) => a - b);
      svg.querySelector(".cursor").innerHTML =
        `<rect class="stretch" x="${fixed(from)}" y="${at.top}" width="${fixed(to - from)}" height="${at.bottom - at.top}"/>`;
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
      this.plot.cells[i].slider.setPointerCapture(event.pointerId);
    }
    this.move(event, i);
  }

  up(event, i) {
    const from = this.drag;
    const to = this.under(event, i);
    this.drag = null;
    if (from && Math.abs(to.px - from.px) > ZOOM) {
      const ends = [from.x, to.x].sort((a, b) => a - b);
      this.plot.set({ zoom: ends.map(shortened) });
    }
  }

  // --- zoom ---
  showAll() {
    if (this.plot.view.zoom) this.plot.set({ zoom: null });
  }

  // Zooms by a factor around the reading position.
  zoom(factor, i) {
    const { plot } = this;
    const { at } = plot.drawn[i];
    const [from, to] = at.frame.x;
    const scale = plot.view.scaleX;
    const middle = this.reading ? positionOf(scale, this.reading.x) : (from + to) / 2;
    const whole = { ...plot.view, zoom: null };
    const [low, high] = frames(plot.figure, whole, plot.panels, () => true)[i].x;
    const ends = at.frame.x.map(end => clamp(middle + (end - middle) / factor, low, high));
    const isAll = ends[0] <= low && ends[1] >= high;
    this.plot.set({ zoom: isAll ? null : ends.map(end => shortened(valueAt(scale, end))) });
  }

  // --- the keyboard ---
  key(event, i) {
    const { plot } = this;
    const stops = this.stops(i);
    const last = stops.length - 1;
    const now = this.reading ? this.nearest(i, this.reading.x) : -1;
    const page = Math.max(1, Math.round(stops.length / 10));
    // Keys that move the position, those that change the panel, and others.
    const to = {
      ArrowLeft: now < 0 ? last : now - 1,
      ArrowRight: now + 1,
      PageUp: now + page,
      PageDown: (now < 0 ? stops.length : now) - page,
      Home: 0,
      End: last,
    }[event.key];
    const { large } = plot;
    const small = plot.cells.map((_, j) => j).filter(j => j !== large);
    const order = large === null ? small : [large, ...small];
    const turn = order.indexOf(i);
    const next = { ArrowUp: order[turn - 1] ?? -1, ArrowDown: order[turn + 1] ?? -1 }[event.key];
    const enlarge = () => {
      if (plot.panels.length > 1) plot.enlarge(i);
    };
    const act = {
      Escape: () => (this.reading ? this.read(null) : this.showAll()),
      0: () => this.showAll(),
      "+": () => this.zoom(2, i),
      "=": () => this.zoom(2, i),
      "-": () => this.zoom(0.5, i),
      Enter: enlarge,
      " ": enlarge,
    }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (to === undefined && next === undefined && !act) return;
    event.preventDefault();
    if (act) {
      this.byKey = true;
      act();
    } else if (next !== undefined) {
      if (plot.cells[next]) this.turnTo(next);
    } else {
      this.byKey = true;
      if (stops.length) this.read({ panel: i, x: stops[clamp(to, 0, last)] });
    }
  }

  // The other panel gets the focus, at the same value of x.
  turnTo(i) {
    const { reading } = this;
    const { cells } = this.plot;
    // Without this the panel that loses the focus would end the reading.
    this.byKey = false;
    cells.forEach(({ slider }, j) => {
      slider.tabIndex = j === i ? 0 : -1;
    });
    cells[i].slider.focus();
    this.byKey = true;
    const stops = this.stops(i);
    const k = this.nearest(i, reading ? reading.x : Infinity);
    if (k >= 0) this.read({ panel: i, x: stops[reading ? k : stops.length - 1] });
  }

  // --- what is shown of it ---
  // Shows a reading position, or none.
  read(reading) {
    this.reading = reading;
    this.tip.hidden = !reading;
    this.plot.drawn.forEach((one, i) => {
      const k = reading ? this.nearest(i, reading.x) : -1;
      one.svg.querySelector(".cursor").innerHTML = k < 0 ? "" : this.cursor(i, this.stops(i)[k]);
    });
    if (!reading) return;
    this.say(reading.panel, reading.x);
    this.tell(reading);
  }

  // A line at a value of x, with the points of curves.
  cursor(i, x) {
    const { at, size } = this.plot.drawn[i];
    const px = fixed(at.x(x));
    const line = `<line x1="${px}" x2="${px}" y1="${at.top}" y2="${at.bottom}" stroke="#59616b"/>`;
    const rows = this.rows(i, x);
    if (rows.length > MOST_CURSORS) return line;
    const dots = rows.map(
      ({ line, k }) =>
        `<g data-color="${colorName(line.color)}"><circle class="dot" cx="${fixed(line.px[k])}" cy="${fixed(line.py[k])}" r="${size.big ? 4 : 3}" fill="${rgb(line.color)}"/></g>`,
    );
    return line + dots.join("");
  }

  // What a screen reader says of a panel.
  say(i, x) {
    const { slider } = this.plot.cells[i];
    const stops = this.stops(i);
    const k = x === null ? stops.length - 1 : this.nearest(i, x);
    slider.setAttribute("aria-valuemax", Math.max(0, stops.length - 1));
    slider.setAttribute("aria-valuenow", Math.max(0, k));
    slider.setAttribute("aria-valuetext", k < 0 ? "nothing is drawn" : this.spoken(i, stops[k]));
  }

  spoken(i, x) {
    const { figure, view } = this.plot;
    const rows = this.rows(i, x);
    const few = rows.length > MOST_SPOKEN ? [...rows.slice(0, 3), ...rows.slice(-3)] : rows;
    const words = few.map(({ line, y }) => `${line.label} ${number(y)}`).join("; ");
    const left = rows.length - few.length;
    const more = left > 0 ? `; ${left} more between` : "";
    return `${axisName(figure, view)} ${across(x)}: ${words}${more}`;
  }

  // The tip: all curves of the panel in the order of their values.
  tell({ panel, x, y }) {
    const { figure, view, panels } = this.plot;
    const all = this.rows(panel, x);
    const own = all.filter(row => row.line.role === "measured");
    const rows = shownRows(all, y);
    const counts = unique(own.map(({ line, k }) => line.n?.[k]));
    const { isGeometric, level } = levels(figure, own);
    const isCompared = own.length > 1 && figure.labels.ranked;
    const least = own.reduce((a, row) => Math.min(a, level(row)), Infinity);
    const ratio = row => {
      if (row.line.role !== "measured" || !isCompared) return "";
      if (!(least > 0)) {
        return figure.labels.zero_below > 0 && level(row) === 0 ? "zero to rounding" : "";
      }
      return level(row) > least ? `${readable(level(row) / least)}×` : "lowest";
    };
    const units = figure.unit === "instance" ? " instances" : "";
    const notes = [
      panels[panel].title,
      counts.length === 1 && counts[0] ? `n = ${counts[0]}${units}` : "",
      own.some(row => bandText(row)) ? BANDS[view.band] : "",
      isGeometric && isCompared ? "ratios of geometric means" : "",
      rows.length < all.length ? `${rows.length} of ${all.length} curves` : "",
    ];
    const drawn = rows.map(row => tipRow(row, counts.length > 1, ratio(row)));
    this.tip.innerHTML = `<b>${esc(axisName(figure, view))} ${across(x)}</b> <span class="dim">${esc(notes.filter(Boolean).join("; "))}</span><table>${drawn.join("")}</table>`;
    this.tip.hidden = false;
    this.placeTip(panel, x);
  }

  // Beside the position, on the side that has room; below the panel of a small screen.
  placeTip(panel, x) {
    const { at, size, svg } = this.plot.drawn[panel];
    const box = svg.getBoundingClientRect();
    const out = this.plot.chart.getBoundingClientRect();
    const scale = box.width / size.width;
    const px = box.left - out.left + at.x(x) * scale;
    const wide = this.tip.offsetWidth;
    const isBelow = out.width < SMALL;
    const isRight = px + 16 + wide <= out.width || px < out.width / 2;
    const beside = isRight ? px + 16 : px - 16 - wide;
    const left = clamp(isBelow ? 0 : beside, 0, Math.max(0, out.width - wide));
    const top = isBelow ? box.bottom - out.top + 4 : box.top - out.top + 6;
    this.tip.style.left = `${left}px`;
    this.tip.style.top = `${top}px`;
  }
}

// Six digits are as many as an address needs.
function shortened(value) {
  return Number(value.toPrecision(6));
}

function isDrawn(line, k) {
  return !Number.isNaN(line.px[k]) && !Number.isNaN(line.py[k]);
}

// The values of x of all points that are drawn, in their order.
function stopsOf(lines) {
  const found = new Set();
  for (const line of lines) {
    for (let k = 0; k < line.x.length; k++) if (isDrawn(line, k)) found.add(line.x[k]);
  }
  return [...found].sort((a, b) => a - b);
}

// The index of the drawn point of a line that is nearest to a value of x; -1 where it has none.
function nearestPoint(line, x) {
  let best = -1;
  for (let k = 0; k < line.x.length; k++) {
    if (!isDrawn(line, k)) continue;
    if (best < 0 || Math.abs(line.x[k] - x) < Math.abs(line.x[best] - x)) best = k;
  }
  return best;
}

// A curve that has ended, or that has no point near, says nothing at a pixel.
function isNear(line, k, pixel) {
  const gaps = [line.px[k - 1], line.px[k + 1]]
    .map(other => Math.abs(other - line.px[k]))
    .filter(gap => !Number.isNaN(gap));
  const reach = Math.max(8, ...gaps.map(gap => gap / 2 + 0.5));
  return Math.abs(line.px[k] - pixel) <= reach;
}

// The rows of a tip. Of very many, those that are next to the pointer at a height y, or the lowest.
function shownRows(all, y) {
  if (all.length <= MOST_ROWS) return all;
  if (y === undefined) return all.slice(-NEAR_ROWS);
  const distance = ({ line, k }) => Math.abs(line.py[k] - y);
  const near = [...all].sort((a, b) => distance(a) - distance(b)).slice(0, NEAR_ROWS);
  return all.filter(row => near.includes(row));
}

function bandText({ line, k }) {
  if (!line.low || Number.isNaN(line.low[k])) return "";
  return `[${number(line.low[k])}, ${number(line.high[k])}]`;
}

function tipRow(row, hasCounts, ratio) {
  const { line, k, y } = row;
  const sample = `<svg width="${SAMPLE}" height="14" data-color="${colorName(line.color)}">${sampleOf(line)}</svg>`;
  const count = line.n?.[k] ? `n = ${line.n[k]}` : "";
  const cells = [
    `<td>${sample}${esc(line.label)}</td>`,
    `<td>${number(y)}</td>`,
    `<td class="dim">${bandText(row)}</td>`,
    hasCounts ? `<td class="dim">${count}</td>` : "",
    `<td class="dim">${ratio}</td>`,
  ];
  return `<tr>${cells.join("")}</tr>`;
}
