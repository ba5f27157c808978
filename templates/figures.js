// Figures: what is drawn of the cells in a view, where, and as which SVG. plots.js adds what a
// reader can do with it. Names and styles are those that the analysis has assigned.
const source = document.getElementById("data");
const data = { figures: [], maps: [], ...source && JSON.parse(source.textContent) };
const buffer = text => Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer;
const blocks = source
  ? [new Float32Array(buffer(data.numbers.singles)), new Float64Array(buffer(data.numbers.doubles))] : [];
const values = slice => blocks[slice[0]].subarray(slice[1], slice[1] + slice[2]);
// Replicates of one length that follow one another are the first of them and their count.
for (const cell of data.figures.flatMap(figure => figure.cells)) {
  const [first, count] = cell.runs;
  if (typeof count === "number") cell.runs = Array.from({ length: count }, (_, i) => [first[0], first[1] + i * first[2], first[2]]);
}
for (const curve of data.figures.flatMap(figure => figure.views).flatMap(view => view.curves)) {
  curve.label ??= [curve.algorithm, curve.settings].filter(Boolean).join(", ");
}
const esc = text => String(text).replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
// The index of a symbol, as the rest of a page writes it.
const indexed = text => esc(text).replace(/(^|[^\p{L}\d_])(\p{L}\p{M}*)_([\p{L}\d]{1,2})(?![\p{L}\d_])/gu, "$1$2<sub>$3</sub>");
const unique = list => [...new Set(list)];
const css = parts => `rgb(${parts.join(",")})`;
// Attributes have the colours of light paper, so that a file needs no style sheet; figure.css
// replaces them on the page.
const rgb = color => css(color < 0 ? [60, 60, 60] : data.styles.palette[color % data.styles.palette.length]);
const ink = color => css(data.styles.inks[color % data.styles.inks.length]);
const colorName = color => color < 0 ? "none" : color % data.styles.palette.length;
// Panels narrower than this have whole labels or none.
const NARROW_PANEL = 200;
const SHORT_BANDS = { none: "no band", std: "± sd", sem: "± se", ci95: "95 % interval", quantiles: "10–90 %", given: "95 % interval" };
const BANDS = { none: "no band", std: "± standard deviation", sem: "± standard error", ci95: "95 % interval of the mean",
  quantiles: "10 % to 90 % quantile", given: "95 % interval of the mean" };
// Without a band: each number of the samples by itself.
const RUNS = { run: "every run", instance: "every instance" }, LONG_RUNS = { run: "every replicate", instance: "the mean of the runs on every instance" };
const shortBand = (figure, band) => band === "runs" ? RUNS[figure.unit] : SHORT_BANDS[band];
const longBand = (figure, band) => band === "runs" ? LONG_RUNS[figure.unit] : BANDS[band];

// --- numbers as text ---
const raised = e => e === 0 ? "1" : e === 1 ? "10" : "10" + [...String(e)].map(c => c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]).join("");
const thousands = v => String(v).replace(/\B(?=(\d{3})+$)/g, " ");

// As exactfed_core::words::readable writes it.
function readable(v, digits = 3) {
  if (Number.isNaN(v) || v === 0) return v === 0 ? "0" : "–";
  if (!Number.isFinite(v)) return v > 0 ? "∞" : "−∞";
  const sign = v < 0 ? "−" : "", [mantissa, power] = Math.abs(v).toExponential(digits - 1).split("e"), e = Number(power);
  const rounded = Number(`${mantissa}e${e}`);
  return sign + (e >= 3 && e <= 5 ? thousands(Math.trunc(rounded))
    : e >= -2 && e <= 2 ? rounded.toFixed(Math.max(0, digits - 1 - e)) : `${mantissa}·${raised(e)}`);
}

// As exactfed_core::words::number writes it: counts with all of their digits.
const number = (v, digits = 3) => Number.isInteger(v) && v >= 0 && v < 1e6 ? thousands(v) : readable(v, digits);
const across = v => Number.isInteger(v) && Math.abs(v) < 1e7 ? thousands(v) : readable(v, 4);
// A target with at most three digits, as manifests write it.
const placeText = v => Number.isInteger(v) || v < 1e-4 || v >= 1e6 ? number(v) : String(+v.toPrecision(3));

// --- axes: a position is a value, or its decimal logarithm ---
const place = (scale, v) => scale === "linear" ? v : v > 0 ? Math.log10(v) : NaN;
const unplace = (scale, p) => scale === "linear" ? p : 10 ** p;

// `beside` extends the range by at most a quarter at each end (chart::axis has the same rules).
function over(scale, lists, room, beside = []) {
  let [low, high] = [Infinity, -Infinity];
  for (const list of lists) for (const v of list) {
    const p = place(scale, v);
    if (Number.isFinite(p)) { if (p < low) low = p; if (p > high) high = p; }
  }
  if (low > high) [low, high] = [0, 1];
  const reach = (high - low) / 4, ends = beside.map(v => place(scale, v)).filter(Number.isFinite);
  [low, high] = [Math.max(low - reach, ends.reduce((a, b) => Math.min(a, b), low)), Math.min(high + reach, ends.reduce((a, b) => Math.max(a, b), high))];
  const least = scale === "log" ? 0.04 : 1e-12 + 1e-3 * Math.abs(high), pad = Math.max(room * (high - low), (least - (high - low)) / 2, 0);
  return [low - pad, high + pad];
}

function plain(v) {
  const unit = [[1e9, "G"], [1e6, "M"], [1e4, "k"]].find(([size]) => Math.abs(v) >= size);
  return unit ? +(v / (unit[1] === "k" ? 1e3 : unit[0])).toFixed(4) + unit[1]
    : String(Math.abs(v) < 1e-3 && v !== 0 ? +v.toPrecision(3) : +v.toFixed(4)).replace("-", "−");
}

// About so many values in a range, multiples of 1, 2 or 5 times a power of ten.
function roundValues(low, high, about) {
  const raw = (high - low) / about, power = 10 ** Math.floor(Math.log10(Math.max(raw, 1e-300)));
  const step = power * ([1, 2, 5, 10].find(s => s * power >= raw * (1 - 1e-9)) || 10), first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, i) => (first + i) * step);
}

function ticks(scale, [low, high], about) {
  const out = [];
  if (scale === "linear") return roundValues(low, high, about).map(v => [v, plain(v)]);
  // Less than a factor of three: what differs is a few per cent.
  if (high - low < 0.45) return roundValues(10 ** low, 10 ** high, about).map(v => [Math.log10(v), number(v).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "")]);
  const first = Math.ceil(low), last = Math.floor(high);
  if (high - low < 2) {
    for (let e = first - 1; e < first + 2; e++) for (const m of [1, 2, 5]) {
      const at = Math.log10(m) + e;
      if (at >= low && at <= high) out.push([at, e >= -3 && e <= 3 ? plain(+`${m}e${e}`) : m === 1 ? raised(e) : `${m}·${raised(e)}`]);
    }
    return out;
  }
  const step = Math.max(1, Math.ceil((high - low) / about));
  for (let e = first; e <= last; e += step) out.push([e, raised(e)]);
  return out;
}

// --- what is drawn: panels of lines, from cells. A line has its points as columns. ---
const bare = (x, y) => ({ x, y, geometric: null, low: null, high: null, n: null });

// Means with the ends of a band as the report computed them (evidence::measured).
function measuredPoints(figure, cell, axis, band) {
  const all = values(cell.mean), x = values(cell.x[axis]).subarray(0, all.length), y = all.subarray(0, x.length), n = Array.isArray(cell.n) ? cell.n : Array(x.length).fill(cell.n);
  const ends = cell.bands[figure.bands.indexOf(band)], geometric = cell.geometric && values(cell.geometric);
  return ends ? { x, y, geometric, low: values(ends[0]), high: values(ends[1]), n } : { ...bare(x, y), geometric, n };
}

// The points of several cells as one line, left to right.
function joined(parts) {
  const rows = parts.flatMap(p => Array.from(p.x, (x, i) => [x, p.y[i], p.low ? p.low[i] : NaN, p.high ? p.high[i] : NaN, p.n ? p.n[i] : 0, p.geometric ? p.geometric[i] : NaN]));
  rows.sort((a, b) => a[0] - b[0]);
  const column = i => rows.map(row => row[i]), banded = parts.some(p => p.low);
  return { x: column(0), y: column(1), low: banded ? column(2) : null, high: banded ? column(3) : null, n: column(4), geometric: parts.some(p => p.geometric) ? column(5) : null };
}

const viewOf = (figure, view) => figure.views.find(v => v.panels === view.panels);

function linesOfRounds(figure, view, { curves, of }, places) {
  return places.flatMap(place => {
    const cell = figure.cells[place], x = values(cell.x[view.x]);
    const drawn = (y, rows) => {
      const xs = rows ? Array.from(rows, row => x[row]) : x, count = Math.min(xs.length, y.length);
      return bare(xs.slice(0, count), y.slice(0, count));
    };
    const predictions = figure.theory.filter(t => t.cell === place);
    return [measured(figure, curves[of[place]], [place], measuredPoints(figure, cell, view.x, view.band), cell.runs.map(run => drawn(values(run)))),
      ...predictions.map(t => predicted(curves[of[place]], [place], t, drawn(values(t.y), t.rows && values(t.rows))))];
  });
}

function linesOfCells(figure, view, { curves, of }, places) {
  return curves.flatMap((curve, index) => {
    const mine = places.filter(place => of[place] === index), cells = mine.map(place => figure.cells[place]);
    if (!mine.length) return [];
    const at = cell => values(cell.x[view.x])[0];
    const runs = cells.flatMap(cell => cell.runs.length ? Array.from(values(cell.runs[0]), y => bare([at(cell)], [y])) : []);
    const beside = figure.theory.filter(t => mine.includes(t.cell));
    const predictions = unique(beside.map(t => t.words)).map(words => beside.filter(t => t.words === words)).filter(list => list.length > 1);
    return [measured(figure, curve, mine, joined(cells.map(cell => measuredPoints(figure, cell, view.x, view.band))), runs),
      ...predictions.map(list => predicted(curve, mine, list[0], joined(list.map(t => bare([at(figure.cells[t.cell])], [values(t.y)[0]])))))];
  });
}

const measured = (figure, curve, places, points, runs) => ({ role: "measured", ...curve, places, ...points, runs,
  diverged: places.reduce((sum, place) => sum + figure.cells[place].diverged, 0) });
// A prediction has the colour and the marker of its curve.
const predicted = (curve, places, entry, points) => ({ role: "theory", ...curve, label: `${entry.words} ${curve.label}`, words: entry.words,
  dash: entry.dash, places, ...points, flat: Array.from(points.y).every(y => y === points.y[0]), runs: [], diverged: 0 });

// Straight lines on logarithmic axes, through the first point of the first curve that has two. One
// that lies on a curve is left out (analysis::line_figure has the same rule).
function slopes(figure, lines) {
  const placed = line => Array.from(line.x, (x, i) => [x, line.y[i]]).filter(p => p.every(v => v > 0 && Number.isFinite(v)));
  const curves = lines.filter(l => l.role === "measured").map(placed).filter(points => points.length > 1), across = lines.flatMap(placed).map(p => p[0]);
  if (!curves.length) return [];
  const [low, high] = [Math.min(...across), Math.max(...across)], from = curves[0][0];
  const at = slope => x => from[1] * (x / from[0]) ** slope;
  const near = slope => 0.02 + 0.01 * Math.abs(slope * Math.log10(high / low));
  return (low < high ? figure.references : []).filter(slope => !curves.some(points => points.every(([x, y]) => Math.abs(Math.log10(y / at(slope)(x))) <= near(slope))))
    .map(slope => ({ role: "reference", label: `slope ${String(slope).replace("-", "−")}`, color: -1, family: -1,
      dash: data.styles.thin_dashes.length - 1, mark: 0, places: [], runs: [], diverged: 0, ...bare([low, high], [low, high].map(at(slope))) }));
}

// Predictions have an entry each in a list of up to so many; otherwise each kind has one.
const FEW_ENTRIES = 7;

function model(figure, view) {
  const shown = viewOf(figure, view), { groups, curves, of } = shown;
  const panels = groups.map(([title, places]) => {
    const lines = (figure.rounds ? linesOfRounds : linesOfCells)(figure, view, shown, places);
    const rings = (figure.selected ?? []).filter(ring => places.includes(ring.cell)).map(({ cell, label, x, y, ends: [low, high], n }) =>
      ({ ...curves[of[cell]], role: "selected", label, of: curves[of[cell]].label, places: [cell], runs: [], diverged: 0, ...bare(values(x), values(y)), ...view.band === figure.band && { low: values(low), high: values(high) }, n }));
    return { title, lines: [...lines, ...rings, ...slopes(figure, lines)] };
  });
  const lines = panels.flatMap(p => p.lines), drawn = new Set(lines.filter(l => l.role === "measured" && l.x.length).map(l => l.label));
  const keys = curves.map((curve, i) => ({ role: "measured", ...curve, places: of.flatMap((c, place) => c === i ? [place] : []) }))
    .filter(key => drawn.has(key.label));
  const theory = [...new Map(lines.filter(l => l.role === "theory").map(l => [l.label, l])).values()];
  if (keys.length + theory.length <= FEW_ENTRIES) keys.push(...theory.map(({ role, label, color, family, dash, mark, flat }) => ({ role, label, color, family, dash, mark, flat })));
  else for (const [label, dash] of figure.kinds) {
    if (theory.some(l => l.dash === dash)) keys.push({ role: "theory", label, color: -1, family: -1, dash, mark: 0 });
  }
  return { panels, keys: [...keys, ...new Map(lines.filter(l => l.role === "reference").map(l => [l.label, l])).values()] };
}

// --- the ends of the axes ---
// A diverging curve may leave the panel, and a prediction far below all that was measured does not
// squash the curves (chart::panel has the same rule).
function rangeY(view, lines, isFraction) {
  const inside = list => list.y.filter((_, i) => within(view.zoom, list.x[i]) && Number.isFinite(place(view.scaleX, list.x[i])));
  const kept = lines.map(line => ({ line, y: inside(line) }));
  let top = 0;
  for (const { line, y } of kept) {
    for (const v of line.diverged ? [] : y) if (Number.isFinite(v) && v > top) top = v;
    if (y.length && Number.isFinite(100 * line.y[0])) top = Math.max(top, 100 * line.y[0]);
  }
  const own = kept.filter(k => k.line.role === "measured").map(k => k.y.filter(v => v <= top));
  // Fractions that most points come near (chart::panel has the same rule).
  if (view.scaleY === "linear" && isFraction) {
    const all = own.flatMap(list => [...list]).sort((a, b) => a - b), low = all[Math.floor(all.length / 10)], reach = all.at(-1) - low;
    if (all.length >= 20 && reach > 0 && 4 * reach < all.at(-1) - all[0]) own.forEach((list, i) => { own[i] = list.filter(v => v >= low - reach / 4); });
  }
  let least = Infinity;
  for (const list of own) for (const v of list) if (v > 0 && v < least) least = v;
  const runs = view.band === "runs" ? lines.flatMap(l => l.runs.map(run => inside(run).filter(v => v > 0 && v <= top))) : [];
  const beside = kept.filter(k => k.line.role !== "measured").map(k => k.y.filter(v => v >= least / 30 && v <= top));
  const bands = kept.flatMap(({ line }) => line.low ? [line.low, line.high].flatMap(ends => Array.from(ends).filter((_, i) => within(view.zoom, line.x[i]) && Number.isFinite(place(view.scaleX, line.x[i])) && line.y[i] <= top)) : []);
  return over(view.scaleY, [...own, ...runs, ...beside], 0.04, bands);
}

const within = (zoom, x) => !zoom || x >= zoom[0] && x <= zoom[1];

// A panel without points in the stretch of x that is zoomed to shows all of its own.
function frames(figure, view, panels, visible) {
  const shown = panels.map(p => p.lines.filter(visible)), isFraction = figure.labels.at === "last" && !figure.labels.ranked;
  const zoomed = shown.map(lines => view.zoom && lines.some(l => l.role === "measured" && l.x.some(x => within(view.zoom, x))));
  const common = view.range === "own" ? null : rangeY(view, (view.zoom ? shown.filter((_, i) => zoomed[i]) : shown).flat(), isFraction);
  return panels.map((panel, i) => ({
    y: common && (zoomed[i] || !view.zoom) ? common : rangeY({ ...view, zoom: zoomed[i] ? view.zoom : null }, shown[i], isFraction),
    x: zoomed[i] ? view.zoom.map(v => place(view.scaleX, v))
      : over(view.scaleX, panel.lines.map(l => l.x), view.scaleX === "log" ? 0.02 : 0),
  }));
}

// --- drawing ---
const fixed = v => Math.round(v * 100) / 100;

// Pixels of a value along an axis: NaN of what is out of range, but for single precision.
const along = (scale, [low, high], from, to) => {
  const by = (to - from) / (high - low), slack = 1e-6 * (high - low);
  return v => { const p = place(scale, v); return p >= low - slack && p <= high + slack ? from + (p - low) * by : NaN; };
};

// The stretches of a line that can be drawn, as pairs of first index and end.
function stretches(px, py, also = () => true) {
  const out = [];
  let from = -1;
  for (let i = 0; i <= px.length; i++) {
    const there = i < px.length && px[i] === px[i] && py[i] === py[i] && also(i);
    if (there && from < 0) from = i;
    if (!there && from >= 0) { out.push([from, i]); from = -1; }
  }
  return out;
}

const path = (px, py, from, to) => {
  let out = "";
  for (let i = from; i < to; i++) out += `${i > from ? " " : ""}${fixed(px[i])},${fixed(py[i])}`;
  return out;
};

function outline(mark, r, x, y) {
  const star = mark.waist < 1 ? 2 : 1, all = mark.corners * star;
  return Array.from({ length: all }, (_, i) => {
    const a = (mark.turn + 360 * i / all) * Math.PI / 180, q = star === 2 && i % 2 ? r * mark.waist : r;
    return `${fixed(x + q * Math.sin(a))},${fixed(y - q * Math.cos(a))}`;
  }).join(" ");
}

const pattern = line => line.role === "measured" ? data.styles.dashes[line.dash % data.styles.dashes.length]
  : data.styles.thin_dashes[line.dash % data.styles.thin_dashes.length];
const markOf = line => data.styles.markers[line.mark % data.styles.markers.length];

function drawBand(line, at, out, color) {
  if (!line.low) return;
  const clip = v => { const y = at.y(v); return y === y ? y : place(at.scaleY, v) > at.frame.y[0] ? at.top : at.bottom; };
  for (const [from, to] of stretches(line.px, line.py, i => line.low[i] === line.low[i] && line.high[i] === line.high[i])) {
    if (to - from < 2) continue;
    let [lower, upper] = ["", ""];
    for (let i = from; i < to; i++) {
      lower += `${fixed(line.px[i])},${fixed(clip(line.low[i]))} `;
      upper = `${fixed(line.px[i])},${fixed(clip(line.high[i]))} ${upper}`;
    }
    out.push(`<polygon class="band" points="${(lower + upper).trimEnd()}" fill="${color}" opacity="${line.together > 2 ? fixed(0.32 / line.together) : 0.16}"/>`);
  }
}

function drawRuns(line, at, out, color) {
  for (const run of line.runs) {
    const px = Array.from(run.x, at.x), py = Array.from(run.y, at.y);
    for (const [from, to] of stretches(px, py)) {
      out.push(to - from > 1 ? `<polyline class="run" points="${path(px, py, from, to)}" fill="none" stroke="${color}" stroke-width="0.8" opacity="0.45"/>`
        : `<circle class="run" cx="${fixed(px[from])}" cy="${fixed(py[from])}" r="1.6" fill="${color}" opacity="0.6"/>`);
    }
  }
}

function drawMarks(line, all, big, out, color) {
  const is = line.role === "measured", { most_markers, markers } = data.styles, most = big ? most_markers : 4;
  const every = all.length <= 2 * most ? 1 : Math.ceil(all.length / most);
  const first = every === 1 ? 0 : Math.floor(line.mark % markers.length * every / markers.length);
  const radius = big ? 3 : 2.4;
  for (let i = is || every === 1 ? first : (first + Math.floor(every / 2)) % every; i < all.length; i += every) {
    const [x, y] = [line.px[all[i]], line.py[all[i]]];
    out.push(`<polygon class="mark" points="${outline(markOf(line), is ? radius : radius - 0.4, x, y)}" fill="${color}"/>`);
    if (!is) out.push(`<polygon class="hole" points="${outline(markOf(line), radius - 1.4, x, y)}" fill="#ffffff"/>`);
  }
}

// The dashes of a curve above another (chart::panel has the same).
const ABOVE = "14 12";

// `line.wide`: it lies below another that coincides with it; `line.above`: it is the highest and has
// another colour, so that both are seen.
function drawLine(line, at, band, big) {
  if (line.role === "selected") {
    const rings = stretches(line.px, line.py).map(([k]) => `<circle cx="${fixed(line.px[k])}" cy="${fixed(line.py[k])}" r="${big ? 8 : 6}" fill="none" stroke="${rgb(line.color)}" stroke-width="2"/>`);
    return `<g class="series selected" data-label="${esc(line.label)}" data-color="${colorName(line.color)}">${rings.join("")}</g>`;
  }
  const color = rgb(line.color), out = [], is = line.role === "measured", { px, py } = line;
  if (is && band === "runs") drawRuns(line, at, out, color);
  drawBand(line, at, out, color);
  const pieces = stretches(px, py), all = [];
  for (const [from, to] of pieces) {
    for (let i = from; i < to; i++) all.push(i);
    const width = is ? (big ? 2 : 1.6) + (line.wide ? 2.6 : 0) : 1.4;
    out.push(to - from > 1 ? `<polyline points="${path(px, py, from, to)}" fill="none" stroke="${color}" stroke-width="${width}" stroke-linejoin="round"${line.above ? ` stroke-dasharray="${ABOVE}"` : ""}/>`
      : `<circle cx="${fixed(px[from])}" cy="${fixed(py[from])}" r="2" fill="${color}"/>`);
  }
  if (line.role !== "reference" && !line.flat) drawMarks(line, all, big, out, color);
  const end = all.at(-1);
  if (line.diverged && end !== undefined) {
    const [a, b, c, d] = [px[end] - 4, px[end] + 4, py[end] - 4, py[end] + 4].map(fixed);
    out.push(`<path d="M${a} ${c}L${b} ${d}M${a} ${d}L${b} ${c}" stroke="${color}" stroke-width="2" stroke-dasharray="none"/>`);
  }
  return `<g class="series ${line.role}" data-label="${esc(line.label)}" data-color="${colorName(line.color)}" stroke-dasharray="${pattern(line)}">${out.join("")}</g>`;
}

const ruler = document.createElement("canvas").getContext("2d");
const widths = new Map();
function widthOf(text, font) {
  const key = `${font}|${text}`;
  if (!widths.has(key)) { ruler.font = font; widths.set(key, ruler.measureText(text).width); }
  return widths.get(key);
}

// The ticks whose texts do not overlap, powers of ten before others; `reach` is where a text begins
// and ends.
function apart(ticks, reach, gap) {
  const kept = [];
  for (const tick of [...ticks].sort((a, b) => Number.isInteger(b[0]) - Number.isInteger(a[0]))) {
    const [from, to] = reach(tick);
    if (kept.every(other => from >= other[1] + gap || to <= other[0] - gap)) kept.push([from, to, tick]);
  }
  return ticks.filter(tick => kept.some(k => k[2] === tick));
}

// Height of a line of the title of the x axis.
const TITLE_LINE = 12;

// The title of the x axis below the middle of the plotting area, moved where it would leave the panel.
function xTitle(at, size) {
  const { lines, size: letters } = size.titleX;
  return lines.map((words, i) => {
    const reach = widthOf(words, `${letters}px ${size.face}`) / 2 + 1;
    const x = Math.max(reach, Math.min(size.width - reach, at.left + at.wide / 2));
    const y = size.height - 4 - TITLE_LINE * (lines.length - 1 - i);
    return `<text x="${fixed(x)}" y="${fixed(y)}" text-anchor="middle" font-size="${fixed(letters)}" fill="#59616b">${esc(words)}</text>`;
  }).join("");
}

function drawAxes(at, size) {
  const out = [], right = at.left + at.wide;
  const text = (x, y, anchor, words) => `<text x="${fixed(x)}" y="${fixed(y)}" text-anchor="${anchor}" font-size="11" fill="#59616b">${esc(words)}</text>`;
  const line = (name, a, b, c, d, stroke) => `<line class="${name}" x1="${fixed(a)}" y1="${fixed(b)}" x2="${fixed(c)}" y2="${fixed(d)}" stroke="${stroke}" stroke-width="${name === "axis" ? 0.8 : 0.6}"/>`;
  const wide = words => widthOf(words, `11px ${size.face}`);
  // The first and the last stay inside the panel.
  const middle = (x, words) => Math.min(Math.max(x, wide(words) / 2 + 1), size.width - wide(words) / 2 - 1);
  const there = at.ticksX.map(([p, words]) => [p, words, at.x(unplace(at.scaleX, p))]).filter(tick => tick[2] === tick[2]);
  for (const [, words, x] of apart(there, ([, words, x]) => [-1, 1].map(side => middle(x, words) + side * wide(words) / 2), 6)) {
    out.push(line("grid", x, at.top, x, at.bottom, "#e6e9ec"), text(middle(x, words), at.bottom + 14, "middle", words));
  }
  for (const [p, words, y] of apart(at.ticksY.map(([p, words]) => [p, words, at.y(unplace(at.scaleY, p))]), ([,, y]) => [y - 6, y + 6], 1)) {
    if (y === y) out.push(line("grid", at.left, y, right, y, "#e6e9ec"), size.ticksY ? text(at.left - 6, y + 4, "end", words) : "");
  }
  out.push(line("axis", at.left, at.top, at.left, at.bottom, "#6c757f"), line("axis", at.left, at.bottom, right, at.bottom, "#6c757f"));
  if (size.named) out.push(xTitle(at, size));
  if (size.above && size.ticksY) out.push(text(1, 10, "start", cut(size.above, `11px ${size.face}`, size.width - 2)));
  return `<g class="axes">${out.join("")}</g>`;
}

// The room below the plotting area: texts of ticks and the lines of the title.
function belowAxis({ big, named, titleX }) {
  if (!big && !named) return 21;
  return (big ? 40 : 36) + (named ? TITLE_LINE * (titleX.lines.length - 1) : 0);
}

// A panel of a size: its SVG, and where things are in it.
function drawPanel(figure, view, panel, frame, size, visible) {
  const at = { frame, scaleX: view.scaleX, scaleY: view.scaleY, top: size.above ? 22 : 8, bottom: size.height - belowAxis(size) };
  const about = Math.max(2, Math.min(7, Math.round((at.bottom - at.top) / 44)));
  at.ticksY = ticks(view.scaleY, frame.y, about);
  at.left = size.ticksY ? 10 + Math.max(12, ...at.ticksY.map(([, words]) => Math.ceil(widthOf(words, `11px ${size.face}`)))) : 8;
  at.y = along(view.scaleY, frame.y, at.bottom, at.top);
  const place0 = along(view.scaleX, frame.x, 0, 1);
  const lines = panel.lines.map(line => ({ ...line, shown: visible(line) }));
  for (const line of lines) {
    line.py = new Float64Array(line.x.length);
    for (let i = 0; i < line.py.length; i++) line.py[i] = at.y(line.y[i]);
    [line.first, line.last] = drawnEnds(line, place0);
  }
  const labels = endLabels(lines.filter(l => l.shown && l.last !== null), at, size, figure, view);
  at.wide = Math.max(20, size.width - at.left - (labels.room ? labels.room + 14 : 12));
  at.ticksX = ticks(view.scaleX, frame.x, Math.max(2, Math.min(6, Math.floor(at.wide / 64))));
  at.x = along(view.scaleX, frame.x, at.left, at.left + at.wide);
  for (const line of lines) line.px = Float64Array.from(line.x, at.x);
  const drawn = lines.filter(l => l.shown).map(line => drawLine(line, at, view.band, size.big)).join("");
  const area = [at.left, at.top, at.wide, at.bottom - at.top].map(fixed).join(" ");
  const svg = `<g class="panel" data-area="${area}">${drawAxes(at, size)}${drawn}${drawLabels(labels, at, size)}</g>`;
  return { svg, at, isCut: labels.isCut, isLevel: labels.isLevel, lines: lines.filter(l => l.shown), inside: lines.filter(l => l.last !== null) };
}

// How a text is made to fit: by smaller letters, then by a second line, which begins after a separator
// (chart::FittedText has the same rules).
const PANEL_TITLE = { weight: 640, smallest: 9.5, largest: 13, separator: /(?<=, )/ };
const X_TITLE = { weight: 400, smallest: 9, largest: 11, separator: /(?<= )/ };

// A text in lines that have this room, as equal as they can be, and the size of their letters.
function fitted(text, room, face, { weight, smallest, largest, separator }) {
  const font = `${weight} ${largest}px ${face}`;
  const long = widthOf(text, font) / largest;
  const size = Math.max(smallest, Math.min(largest, room / long));
  if (long * size <= room) return { lines: [text], size };
  return { lines: halves(text, separator, font), size };
}

// A text in two lines that are as equal as they can be, the second of which begins after a separator;
// in one where it has none.
function halves(text, separator, font) {
  const parts = text.split(separator);
  if (parts.length < 2) return [text];
  const both = n => [parts.slice(0, n), parts.slice(n)].map(list => list.join("").trim());
  const longest = n => Math.max(...both(n).map(line => widthOf(line, font)));
  const cuts = parts.slice(1).map((_, i) => i + 1);
  return both(cuts.reduce((a, b) => longest(b) < longest(a) ? b : a));
}

// --- comparisons of curves ---
// The numbers by which points of curves are compared, each the index k of a line: over several
// instances geometric means, as in the ranking; 0 of what is zero to rounding. `isGeometric` says
// which they are (chart::label_values has the same rules).
function levels(figure, points) {
  const geometric = ({ line, k }) => line.geometric ? line.geometric[k] : NaN, isGeometric = points.length > 0 && points.every(point => geometric(point) > 0);
  const level = point => {
    const v = isGeometric ? geometric(point) : point.line.y[point.k] ?? Infinity;
    return v < figure.labels.zero_below ? 0 : v;
  };
  return { isGeometric, level };
}

const ratioText = ratio => readable(ratio, ratio < 1.1 ? 3 : 2);
// A number as `number` writes it.
const asRead = (v, digits) => Number.isInteger(v) && v >= 0 && v < 1e6 ? v : Number(v.toExponential(digits - 1));

// Some numbers as the text of the smallest and that of the largest, or one text where these are the same.
function rangeText(list, text) {
  const [low, high] = [text(Math.min(...list)), text(Math.max(...list))];
  return low === high ? low : `${low} to ${high}`;
}

// --- labels at the ends of curves ---
// The indices of the first and of the last point that is drawn; null where none is.
function drawnEnds(line, at) {
  const drawn = Array.from(line.x, (x, i) => line.py[i] === line.py[i] && !Number.isNaN(at(x)));
  return drawn.includes(true) ? [drawn.indexOf(true), drawn.lastIndexOf(true)] : [null, null];
}

// Groups of lines that lie on one another wherever both are drawn; the later ones are above.
function coinciding(lines) {
  const groups = [];
  const one = (a, b) => {
    if (a.x.length !== b.x.length || a.last !== b.last) return false;
    for (let i = 0; i < a.py.length; i++) if (a.x[i] !== b.x[i] || !(Math.abs(a.py[i] - b.py[i]) <= 1.2 || (a.py[i] !== a.py[i] && b.py[i] !== b.py[i]))) return false;
    return true;
  };
  for (const line of lines) {
    const group = groups.find(g => one(g[0], line));
    if (group) { group.at(-1).wide = true; group.push(line); } else groups.push([line]);
  }
  for (const group of groups) group.at(-1).above = group.at(-2) && group.at(-2).family !== group.at(-1).family;
  // Bands that lie on one another are not to add up to a dark one.
  for (const group of groups) for (const line of group) line.together = group.length;
  return groups;
}

// Places as near as possible to `at`, from top to bottom, each with its own height: neighbours that
// overlap are centred together.
function spread(items, top, bottom) {
  const blocks = [];
  const block = list => {
    let [high, sum] = [0, 0];
    for (const item of list) { sum += item.at - high; high += item.high; }
    return { list, high, start: Math.max(top, Math.min(bottom - high, sum / list.length)) };
  };
  for (const item of [...items].sort((a, b) => a.at - b.at)) {
    blocks.push(block([item]));
    while (blocks.length > 1 && blocks.at(-2).start + blocks.at(-2).high > blocks.at(-1).start) {
      const [above, below] = blocks.splice(-2);
      blocks.push(block([...above.list, ...below.list]));
    }
  }
  for (const { list, start } of blocks) list.reduce((y, item) => { item.place = y; return y + item.high; }, start);
}

// Short names: an algorithm that has one curve needs no settings, and settings do where there is
// one algorithm.
function namer(lines) {
  const count = new Map();
  for (const line of lines) count.set(line.algorithm, (count.get(line.algorithm) ?? 0) + 1);
  return line => line.role === "reference" ? line.label : count.get(line.algorithm) === 1 ? line.algorithm
    : count.size === 1 && line.settings ? line.settings : line.label;
}

function cut(text, font, room) {
  if (widthOf(text, font) <= room) return text;
  if (room < 12) return "";
  let end = text.length - 1;
  while (end > 3 && widthOf(`${text.slice(0, end)}…`, font) > room) end--;
  return `${text.slice(0, end).trimEnd()}…`;
}

function endLabels(lines, at, size, figure, view) {
  const curves = lines.filter(l => l.role === "measured");
  const high = at.bottom - at.top, fits = gap => Math.floor(high / gap), fonts = labelFonts(size);
  // The point whose value a label says: the last, or the smallest target of a frontier (chart::labels
  // has the same rules).
  const isTight = figure.labels.at === "tightest", isTuned = figure.labels.at === "selected", isBest = figure.labels.at === "best";
  const ring = line => lines.find(l => l.role === "selected" && l.of === line.label);
  const spot = line => isTuned ? Array.from(line.x).indexOf(ring(line)?.x[0]) : isTight || isBest ? line.first : line.last;
  const coincide = curves.length <= 40 ? coinciding(curves) : curves.map(l => [l]);
  const groups = coincide.flatMap(group => unique(group.map(spot)).map(at => group.filter(l => spot(l) === at)));
  const value = line => line.y[spot(line)] ?? Infinity, placeOf = line => line.x[spot(line)], name = namer(size.big ? viewOf(figure, view).curves.map(c => ({ ...c, role: "measured" })) : curves);
  const calm = curves.filter(l => !l.diverged && l.y[spot(l)] !== undefined), { isGeometric, level: levelAt } = levels(figure, calm.map(line => ({ line, k: spot(line) })));
  const level = line => levelAt({ line, k: spot(line) }), least = list => list.reduce((a, b) => a && level(a) <= level(b) ? a : b, null);
  const tightest = Math.min(...curves.map(placeOf)), atTightest = list => isTight ? list.filter(l => placeOf(l) === tightest) : list;
  const lowest = least(atTightest(curves)), calmLowest = least(atTightest(calm));
  // As many digits as show that no value is less than the lowest.
  const digits = [3, 4, 5].find(d => !calmLowest || calm.every(l => value(l) < value(calmLowest) || asRead(value(l), d) >= asRead(value(calmLowest), d))) ?? 6;
  // A curve is compared with those of other algorithms under its settings; without them with all,
  // in either case at the same place across. Ratios above this are those of rounding errors.
  const MOST_RATIO = 1e6;
  const compared = ([line]) => {
    const comparable = calm.filter(l => placeOf(l) === placeOf(line));
    const alike = comparable.filter(l => l.settings === line.settings), isAlike = alike.some(l => l.algorithm !== line.algorithm);
    return { other: least(isAlike ? alike : comparable), isAlike };
  };
  // Where a reader has put all panels into one, the lowest curve is the only reference.
  const isUsual = view.panels !== "" || figure.views[0].panels === "";
  // That curves which coincide are lowest, or which of them is, or by which mean.
  const lowestText = group => {
    const read = line => asRead(value(line), digits), isSame = group.every(l => read(l) === read(group[0])), isOne = !isSame && group.includes(calmLowest);
    const mean = isGeometric && calm.some(l => !group.includes(l) && read(l) < read(calmLowest)) ? " geometric mean" : "";
    return `, ${isOne ? `${namer(curves)(calmLowest)} ` : ""}lowest${mean}`;
  };
  const ratio = (group, isNamed) => {
    const [line] = group, all = calmLowest, { other, isAlike } = isUsual ? compared(group) : { other: all, isAlike: false };
    if (!figure.labels.ranked || !all || groups.filter(([first]) => !first.diverged).length < 2) return "";
    if (!(level(all) > 0)) return figure.labels.zero_below > 0 && group.every(l => level(l) === 0) ? ", zero to rounding" : "";
    if (!other) return "";
    const ratios = group.map(l => level(l) / level(other));
    if (group.includes(all) || ratios[0] === 1 && other === all) return lowestText(group);
    const than = isAlike ? other.algorithm : namer(curves)(other);
    return group.includes(other) || ratios.some(by => by > MOST_RATIO) || placeOf(other) !== placeOf(line) ? "" : `, ${rangeText(ratios, ratioText)}×${isNamed ? ` ${isUsual && than.length < 20 ? than : "the lowest"}` : ""}`;
  };
  const most = size.width * (size.big ? 0.34 : 0.4), axis = figure.xs.find(([key]) => key === view.x)[1];
  // The longest text that has room.
  const says = group => {
    const [line] = group;
    if (line.diverged && figure.labels.at === "last") return `diverged in ${line.diverged === 1 ? "1 run" : `${line.diverged} runs`}`;
    if (isTuned && !ring(line)) return "none selected";
    // Where algorithms tie, each is counted, so that the shares exceed a whole.
    if (isBest) return `best or tied on ${number(100 * value(line), 2)} %`;
    const values = rangeText(group.map(value), v => number(v, digits)), counts = ["", "", " (both)"];
    const place = isTight || isTuned ? ` at ${axis} = ${placeText(placeOf(line))}` : "";
    const first = values + place + (counts[group.length] ?? ` (all ${group.length})`);
    const texts = [first + ratio(group, size.big), first + ratio(group, false), first, values + place, values];
    return texts.find(text => widthOf(text, fonts.value) <= most + 24) ?? "";
  };
  const item = (group, words) => ({ names: group.map(line => ({ line, text: name(line) })), value: words ?? "", at: group[0].py[group[0].last],
    from: [group[0].x[group[0].last], group[0].py[group[0].last]] });
  const full = size.values && groups.length <= fits(32);
  let chosen = full || groups.length <= fits(13.5) ? groups.map(g => item(g, full ? says(g) : "")) : summary(curves, lowest, item, says, size, fits);
  const others = [...apartFrom(curves, lines, size, text => widthOf(text, fonts.name) <= most), ...lines.filter(l => l.role === "reference").map(line => [line, line.label])];
  for (const [line, text, all] of others.slice(0, Math.max(0, fits(full ? 32 : 13.5) - chosen.length))) chosen.push({ ...item([line]), names: [{ line, text, all }] });
  const both = new Set(curves.map(l => l.algorithm)).size === 2;
  chosen = chosen.flatMap(one => shorten(one, fonts.name, most, both, curves));
  const isCut = chosen.some(one => one.isLong || one.hasNoRoom), areMany = 13.5 * chosen.length > high;
  chosen = chosen.filter(one => !one.hasNoRoom && !(areMany && one.isLong));
  for (const one of chosen) one.high = one.value ? 31 : 13.5;
  if (chosen.reduce((sum, one) => sum + one.high, 0) > high) for (const one of chosen) [one.value, one.high] = ["", 13.5];
  spread(chosen, at.top + 5, at.bottom + 10);
  const wide = one => Math.max(widthOf(textOf(one), fonts.name), one.value ? widthOf(one.value, fonts.value) : 0);
  // Whether all curves end at one place, where labels say nothing.
  const ends = curves.map(l => l.py[l.last]), isLevel = curves.length > 1 && Math.max(...ends) - Math.min(...ends) <= 4;
  if (size.quiet) return { items: [], fonts, room: 0, isCut: false, isLevel };
  return { isLevel, isCut, items: chosen, fonts, room: chosen.length ? Math.ceil(Math.min(most + 24, Math.max(...chosen.map(wide)))) : 0 };
}

// The predictions, if they are few, that end far from every measured curve, with short names.
const FEW_PREDICTIONS = 3, FAR = 20;

function apartFrom(curves, lines, size, fits) {
  const end = line => line.py[line.last], far = lines.filter(l => l.role === "theory" && curves.every(c => Math.abs(end(c) - end(l)) > FAR));
  if (size.width < NARROW_PANEL || far.length > FEW_PREDICTIONS) return [];
  const one = unique(curves.map(l => l.algorithm)).length === 1, name = namer(lines.filter(l => l.role === "measured"));
  // Of those that coincide the first stands for all.
  const alike = line => far.filter(l => l.words === line.words && Math.abs(end(l) - end(line)) <= 3);
  return far.filter(line => alike(line)[0] === line).flatMap(line => {
    const brief = line.words.replace(/^the /, "").replace(/ (for|of)$/, ""), whole = `${line.words} ${name(line)}`, all = alike(line).length > 1;
    const texts = all || one && far.filter(l => l.words === line.words).length === 1 ? [brief] : [whole, brief];
    return texts.filter(fits).slice(0, 1).map(text => all ? [{ ...line, family: -1 }, text, all] : [line, text]);
  });
}

const textOf = ({ names, tail }) => names.map(part => part.text).join(" and ") + (tail ?? "");

// A label as short as its room, as one item or one for each of its names. Algorithms with the same
// settings name these once; where there are two algorithms, "both" does, and the settings alone in
// the colour of their algorithm. Of many curves that coincide there is the number.
function shorten(one, font, room, both, curves) {
  const lines = one.names.map(part => part.line), [{ settings }] = lines;
  if (lines.length > 1 && settings && lines.every(l => l.settings === settings) && one.names.every(part => part.text === part.line.label)) {
    one.names.forEach(part => { part.text = part.line.algorithm; });
    one.tail = `, ${settings}`;
    if (both && widthOf(textOf(one), font) > room) one.names = [{ line: lines[0], text: "both", all: true }];
    if (widthOf(textOf(one), font) > room && widthOf(settings, font) <= room) return [{ ...one, names: [{ line: { ...lines[0], family: -1 }, text: settings, all: true }], tail: "" }];
  }
  if (widthOf(textOf(one), font) <= room) return [one];
  // An algorithm that has one curve here is named rather than its settings.
  if (lines.length === 1 && lines[0].role === "measured" && settings) {
    const { algorithm } = lines[0], short = curves.filter(c => c.algorithm === algorithm).length > 1 ? settings : algorithm;
    if (short === algorithm || widthOf(short, font) <= room) one.names[0].text = short;
    if (widthOf(short, font) <= room) return [one];
  }
  const [{ algorithm: sole }] = lines;
  if (lines.length > 1 && lines.every(l => l.role === "measured" && l.algorithm === sole)) {
    const text = curves.filter(c => c.algorithm === sole).length === lines.length ? sole : `${sole}, ${lines.length} curves`;
    if (widthOf(text, font) <= room) return [{ ...one, names: [{ line: lines[0], text, all: true }], tail: "" }];
  }
  if (lines.length > 3) return [{ ...one, names: [{ line: { ...lines[0], family: -1 }, text: `${lines.length === curves.length ? "all " : ""}${lines.length} curves`, all: true }] }];
  return one.names.flatMap((name, i) => {
    const isLast = i + 1 === one.names.length, value = isLast ? one.value : "", after = isLast ? one.tail ?? "" : " and";
    const whole = name.text + after;
    if (widthOf(whole, font) <= room) return [{ ...one, names: [name], tail: after, value }];
    if (!isLast && widthOf(name.text, font) <= room) return [{ ...one, names: [name], tail: "", value }];
    // Half a name says nothing: it takes two lines, or the list of curves alone has it.
    const lines = halves(isLast ? whole : name.text, /(?<= )/, font);
    if (lines.length < 2 || lines.some(line => widthOf(line, font) > room)) return [{ ...one, hasNoRoom: true }];
    return [{ ...one, names: [{ ...name, text: lines[0] }], tail: "", value: "", isLong: true },
      { ...one, names: [{ ...name, text: lines[1], all: true }], tail: "", value, isLong: true, continues: true }];
  });
}

// Of more curves than can be labelled: each algorithm once, and the lowest and the highest curve.
function summary(curves, lowest, item, says, size, fits) {
  const algorithms = unique(curves.map(l => l.algorithm)), value = line => line.y[line.last];
  const ends = unique([lowest, curves.reduce((a, b) => value(a) >= value(b) ? a : b)]);
  const room = fits(13.5) - (size.values ? 5 : 0), each = algorithms.length > 1 && algorithms.length <= room ? algorithms : [];
  const group = algorithm => {
    const mine = curves.filter(l => l.algorithm === algorithm), middle = mine.sort((a, b) => value(a) - value(b))[Math.floor(mine.length / 2)];
    const one = item([middle]);
    one.names = [{ line: middle, text: mine.length > 1 ? `${algorithm}, ${mine.length} curves` : algorithm, all: true }];
    return one;
  };
  return [...(size.values || !each.length ? ends.map(line => item([line], size.values ? says([line]) : "")) : []), ...each.map(group)];
}

const labelFonts = size => ({ name: `640 ${size.big ? 13 : 11.5}px ${size.face}`, value: `11.5px ${size.face}` });

function drawLabels({ items, room }, at, size) {
  const x = at.left + at.wide + 10, out = [];
  for (const { names, tail, value, place: y, from, continues } of items) {
    const [fx, fy] = continues ? [x, y] : [at.x(from[0]), from[1]];
    // From a curve that ends early a leader is dotted, so that it does not look like a curve.
    if (x - fx > 24) out.push(`<path class="lead far" d="M${fixed(fx + 5)} ${fixed(fy)}L${fixed(x - 13)} ${fixed(y)}" fill="none" stroke="#6c757f" stroke-width="1" stroke-dasharray="1 4" opacity="0.8"/>`);
    else if (Math.abs(y - fy) > 3) out.push(`<path class="lead" d="M${fixed(fx + 3)} ${fixed(fy)}L${fixed(Math.max(fx + 3, x - 13))} ${fixed(y)}" fill="none" stroke="#6c757f" stroke-width="0.7" opacity="0.7"/>`);
    // The names have the colours of their curves, darker where text needs that.
    const { color } = names[0].line;
    if (!continues) out.push(`<g data-color="${colorName(color)}"><path d="M${fixed(x - 10)} ${fixed(y)}h7" fill="none" stroke="${rgb(color)}" stroke-width="3"/></g>`);
    const part = ({ line, text, all }) => `<tspan ${all ? "data-group" : "data-label"}="${esc(all ? text : line.label)}"${line.family < 0 || line.color < 0 || text === "both" ? "" : ` data-color="${colorName(line.color)}" fill="${ink(line.color)}"`}>${esc(text)}</tspan>`;
    out.push(`<text class="name" x="${fixed(x)}" y="${fixed(y + 4)}" font-size="${size.big ? 13 : 11.5}" font-weight="640" fill="#59616b">${names.map(part).join(" and ")}${esc(tail ?? "")}</text>`);
    if (value) out.push(`<text class="value" x="${fixed(x)}" y="${fixed(y + 19)}" font-size="11.5" fill="#59616b">${esc(value)}</text>`);
  }
  return room ? `<g class="labels">${out.join("")}</g>` : "";
}
