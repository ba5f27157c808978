// Figures: hide and isolate curves, read values, and view the same cells in another way. The page
// first shows the drawing by plotters; other views are drawn here, into the same frame and by the
// same rules.
const source = document.getElementById("data");
const data = source ? JSON.parse(source.textContent) : { figures: [] };
const buffer = text => Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer;
const blocks = source
  ? [new Float32Array(buffer(data.numbers.singles)), new Float64Array(buffer(data.numbers.doubles))] : [];
const values = slice => Array.from(blocks[slice[0]].subarray(slice[1], slice[1] + slice[2]));
const esc = text => String(text).replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const unique = list => [...new Set(list)];
const rgb = color => `rgb(${(color < 0 ? [60, 60, 60] : data.styles.palette[color % data.styles.palette.length]).join(",")})`;
const colorName = color => color < 0 ? "none" : color % data.styles.palette.length;
const short = v => v === 0 ? "0" : Math.abs(v) >= 0.01 && Math.abs(v) < 1000 ? String(+v.toPrecision(3)) : v.toExponential(2);
const BANDS = { none: "no band", std: "standard deviation", sem: "standard error", ci95: "95 % interval of the mean",
  quantiles: "10 % to 90 % quantile", runs: "every replicate" };

// --- axes: places, ticks ---
const place = (scale, v) => scale === "linear" ? (Number.isFinite(v) ? v : null)
  : v > 0 && Number.isFinite(v) ? Math.log10(v) : null;

function over(scale, list, room) {
  let [low, high] = [Infinity, -Infinity];
  for (const v of list) {
    const p = place(scale, v);
    if (p !== null) { low = Math.min(low, p); high = Math.max(high, p); }
  }
  if (low > high) [low, high] = [0, 1];
  const least = scale === "log" ? 0.45 : 1e-12 + 1e-3 * Math.abs(high);
  const pad = Math.max(room * (high - low), room > 0 || high - low < least ? least / 2 : 0);
  return [low - pad, high + pad];
}

const raised = e => e === 0 ? "1" : e === 1 ? "10" : "10" + [...String(e)].map(c => c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]).join("");

function plain(v) {
  const unit = [[1e9, "G"], [1e6, "M"], [1e4, "k"]].find(([size]) => Math.abs(v) >= size);
  return unit ? +(v / (unit[1] === "k" ? 1e3 : unit[0])).toFixed(4) + unit[1]
    : String(Math.abs(v) < 1e-3 && v !== 0 ? +v.toPrecision(3) : +v.toFixed(4));
}

function ticks(scale, [low, high], about) {
  const out = [];
  if (scale === "linear") {
    const raw = (high - low) / about, power = 10 ** Math.floor(Math.log10(Math.max(raw, 1e-300)));
    const step = power * ([1, 2, 5, 10].find(s => s * power >= raw * (1 - 1e-9)) || 10);
    for (let i = Math.ceil(low / step - 1e-9); i <= Math.floor(high / step + 1e-9); i++) out.push([i * step, plain(i * step)]);
    return out;
  }
  const first = Math.ceil(low), last = Math.floor(high);
  if (last - first < 1) {
    for (let e = first - 1; e < first + 2; e++) for (const m of [1, 2, 5]) {
      const at = Math.log10(m) + e;
      if (at >= low && at <= high) out.push([at, e === 0 ? String(m) : e === 1 ? String(10 * m) : m === 1 ? raised(e) : `${m}·${raised(e)}`]);
    }
    return out;
  }
  const step = Math.max(1, Math.ceil((high - low) / about));
  for (let e = first; e <= last; e += step) out.push([e, raised(e)]);
  return out;
}

// --- what is drawn: panels of lines, from cells ---
function points(cell, x, band) {
  const [xs, mean, sd, low, high] = [cell.x[x], cell.mean, cell.sd, cell.low, cell.high].map(values);
  const half = { std: 1, sem: 1 / Math.sqrt(cell.n), ci95: cell.half }[band];
  // The interval of a positive mean is one of its logarithm, so that it stays positive.
  const end = (y, reach) => band === "ci95" && y > 0 ? y * Math.exp(reach / y) : y + reach;
  return mean.map((y, i) => ({ x: xs[i], y, n: cell.n,
    low: half ? end(y, -half * sd[i]) : band === "quantiles" ? low[i] : NaN,
    high: half ? end(y, half * sd[i]) : band === "quantiles" ? high[i] : NaN })).filter(p => p.x !== undefined);
}

// Names and styles are those that the analysis has assigned; none are assigned here.
const viewOf = (figure, view) => figure.views.find(v => v.panels === view.panels);

function model(figure, view) {
  const { groups, curves, of } = viewOf(figure, view);
  const bare = (x, y) => ({ x, y, low: NaN, high: NaN, n: 0 });
  const xs = cell => values(cell.x[view.x]), sorted = list => list.sort((a, b) => a.x - b.x);
  const measured = (curve, places, list, runs) => ({ role: "measured", ...curves[curve], places, points: list, runs,
    diverged: places.reduce((sum, place) => sum + figure.cells[place].diverged, 0) });
  const predicted = (curve, places, entry, list) => ({ role: "theory", ...curves[curve], label: `${entry.words} ${curves[curve].label}`,
    dash: entry.dash, places, points: list, runs: [], diverged: 0 });
  const panels = groups.map(([title, places]) => {
    const lines = [];
    if (figure.rounds) {
      for (const place of places) {
        const cell = figure.cells[place], across = xs(cell);
        const drawn = (list, rows) => list.map((y, i) => bare(across[rows ? rows[i] : i], y)).filter(p => p.x !== undefined);
        lines.push(measured(of[place], [place], points(cell, view.x, view.band), cell.runs.map(run => drawn(values(run)))));
        for (const entry of figure.theory.filter(t => t.cell === place)) {
          lines.push(predicted(of[place], [place], entry, drawn(values(entry.y), entry.rows && values(entry.rows))));
        }
      }
    } else {
      curves.forEach((_, curve) => {
        const mine = places.filter(place => of[place] === curve), cells = mine.map(place => figure.cells[place]);
        if (!mine.length) return;
        const runs = cells.flatMap(c => c.runs.length ? values(c.runs[0]).map(y => [bare(xs(c)[0], y)]) : []);
        lines.push(measured(curve, mine, sorted(cells.flatMap(c => points(c, view.x, view.band))), runs));
        const beside = figure.theory.filter(t => mine.includes(t.cell));
        for (const words of unique(beside.map(t => t.words))) {
          const entries = beside.filter(t => t.words === words);
          const list = sorted(entries.map(t => bare(xs(figure.cells[t.cell])[0], values(t.y)[0])));
          if (list.length > 1) lines.push(predicted(curve, mine, entries[0], list));
        }
      });
    }
    const placed = lines.flatMap(l => l.points).filter(p => [p.x, p.y].every(v => Number.isFinite(v) && v > 0));
    const [from] = placed, [low, high] = [Math.min(...placed.map(p => p.x)), Math.max(...placed.map(p => p.x))];
    for (const slope of low < high ? figure.references : []) {
      const at = x => bare(x, from.y * (x / from.x) ** slope);
      lines.push({ role: "reference", label: `slope ${slope}`, color: -1, dash: data.styles.thin_dashes.length - 1, mark: 0, places: [],
        points: [at(low), at(high)], runs: [], diverged: 0 });
    }
    return { title, lines };
  });
  const lines = panels.flatMap(p => p.lines), drawn = lines.filter(l => l.role === "measured" && l.points.length).map(l => l.label);
  const keys = curves.map((curve, i) => ({ role: "measured", ...curve, places: of.flatMap((c, place) => c === i ? [place] : []) }))
    .filter(key => drawn.includes(key.label));
  for (const [label, dash] of figure.kinds) {
    if (lines.some(l => l.role === "theory" && l.dash === dash)) keys.push({ role: "theory", label, color: -1, dash, mark: 0 });
  }
  const reference = lines.find(l => l.role === "reference");
  if (reference) keys.push(reference);
  return { panels, keys };
}

// The ends of the axes: a diverging curve may leave the panel, and a prediction far
// below all that was measured does not squash the curves.
function frames(figure, view, panels) {
  const lines = panels.flatMap(p => p.lines), measured = lines.filter(l => l.role === "measured");
  const ys = list => list.flatMap(l => l.points.map(p => p.y));
  const tops = [...lines.filter(l => l.points.length).map(l => 100 * l.points[0].y), ...ys(lines.filter(l => !l.diverged))];
  const top = tops.filter(Number.isFinite).reduce((a, b) => Math.max(a, b), 0);
  const drawn = ys(measured).filter(y => y <= top);
  const least = drawn.filter(y => y > 0).reduce((a, b) => Math.min(a, b), Infinity);
  const runs = view.band === "runs" ? measured.flatMap(l => l.runs.flatMap(r => r.map(p => p.y))).filter(y => y > 0 && y <= top) : [];
  const beside = ys(lines.filter(l => l.role !== "measured")).filter(y => y >= least / 30 && y <= top);
  const y = over(view.scaleY, [...drawn, ...runs, ...beside], 0.04);
  return panels.map(p => ({ y, x: over(view.scaleX, p.lines.flatMap(l => l.points.map(q => q.x)), view.scaleX === "log" ? 0.02 : 0) }));
}

// --- drawing ---
const fixed = v => +v.toFixed(2);

function scales(figure, view, frame, size) {
  const [left, top, right, bottom] = figure.layout.margins;
  const along = (scale, [low, high], from, to) => v => {
    const p = place(scale, v);
    return p === null || p < low - 1e-12 || p > high + 1e-12 ? null : from + (p - low) / (high - low) * (to - from);
  };
  const [wide, high] = size;
  const edge = v => v > 0 && (place(view.scaleY, v) ?? Infinity) > frame.y[0] ? top : high - bottom;
  const y = along(view.scaleY, frame.y, high - bottom, top);
  return { x: along(view.scaleX, frame.x, left, wide - right), y, clip: v => y(v) ?? edge(v), left, top, right: wide - right, bottom: high - bottom };
}

function stretches(list, at, keep = () => true) {
  const all = [[]];
  for (const p of list) {
    const px = at.x(p.x), py = at.y(p.y);
    if (px === null || py === null || !keep(p)) all.push([]); else all.at(-1).push({ ...p, px, py });
  }
  return all.filter(s => s.length);
}

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

function drawLine(line, at, band) {
  const color = rgb(line.color), out = [], path = list => list.map(p => `${fixed(p.px)},${fixed(p.py)}`).join(" ");
  const pieces = stretches(line.points, at), measured = line.role === "measured";
  if (measured && band === "runs") {
    for (const run of line.runs) for (const piece of stretches(run, at)) {
      out.push(piece.length > 1 ? `<polyline class="run" points="${path(piece)}" fill="none" stroke="${color}" stroke-width="0.8" opacity="0.45"/>`
        : `<circle class="run" cx="${fixed(piece[0].px)}" cy="${fixed(piece[0].py)}" r="1.6" fill="${color}" opacity="0.6"/>`);
    }
  }
  for (const piece of stretches(line.points, at, p => !Number.isNaN(p.low) && !Number.isNaN(p.high)).filter(s => s.length > 1)) {
    const side = (list, end) => list.map(p => `${fixed(p.px)},${fixed(at.clip(p[end]))}`).join(" ");
    out.push(`<polygon class="band" points="${side(piece, "low")} ${side([...piece].reverse(), "high")}" fill="${color}" opacity="0.16"/>`);
  }
  for (const piece of pieces) {
    out.push(piece.length > 1 ? `<polyline points="${path(piece)}" fill="none" stroke="${color}" stroke-width="${measured ? 2 : 1.5}"/>`
      : `<circle cx="${fixed(piece[0].px)}" cy="${fixed(piece[0].py)}" r="2" fill="${color}"/>`);
  }
  const flat = pieces.flat();
  if (line.role !== "reference") {
    const { most_markers: most, markers } = data.styles, every = flat.length <= 2 * most ? 1 : Math.ceil(flat.length / most);
    const first = every === 1 ? 0 : Math.floor(line.mark % markers.length * every / markers.length);
    const sizes = measured ? [[3, color]] : [[2.5, color], [1.5, "#FFFFFF"]];
    for (let i = measured || every === 1 ? first : (first + Math.floor(every / 2)) % every; i < flat.length; i += every) {
      for (const [radius, fill] of sizes) out.push(`<polygon points="${outline(markOf(line), radius, flat[i].px, flat[i].py)}" fill="${fill}"/>`);
    }
  }
  const end = flat.at(-1);
  if (line.diverged && end) {
    const [a, b, c, d] = [end.px - 4, end.px + 4, end.py - 4, end.py + 4].map(fixed);
    out.push(`<path d="M${a} ${c}L${b} ${d}M${a} ${d}L${b} ${c}" stroke="${color}" stroke-width="2" stroke-dasharray="none"/>`);
  }
  return `<g class="series ${line.role}" data-label="${esc(line.label)}" data-color="${colorName(line.color)}" stroke-dasharray="${pattern(line)}">${out.join("")}</g>`;
}

function drawPanel(figure, view, panel, frame, size, first) {
  const at = scales(figure, view, frame, size), out = [];
  const text = (x, y, anchor, words, more = "") => `<text x="${fixed(x)}" y="${fixed(y)}" text-anchor="${anchor}" font-size="11" fill="#3c3c3c"${more}>${esc(words)}</text>`;
  const line = (a, b, c, d, stroke) => `<line x1="${fixed(a)}" y1="${fixed(b)}" x2="${fixed(c)}" y2="${fixed(d)}" stroke="${stroke}" stroke-width="0.5"/>`;
  const unplace = (scale, v) => scale === "log" ? 10 ** v : v;
  for (const [v, words] of ticks(view.scaleX, frame.x, size[0] < 340 ? 4 : 5)) {
    const x = at.x(unplace(view.scaleX, v));
    if (x !== null) out.push(line(x, at.top, x, at.bottom, "#e1e1e1"), text(x, at.bottom + 14, "middle", words));
  }
  for (const [v, words] of ticks(view.scaleY, frame.y, 7)) {
    const y = at.y(unplace(view.scaleY, v));
    if (y !== null) out.push(line(at.left, y, at.right, y, "#e1e1e1"), text(at.left - 6, y + 4, "end", words));
  }
  out.push(line(at.left, at.top, at.left, at.bottom, "#787878"), line(at.left, at.bottom, at.right, at.bottom, "#787878"));
  const middle = (at.top + at.bottom) / 2;
  const name = figure.xs.find(([key]) => key === view.x)[1];
  out.push(text((at.left + at.right) / 2, size[1] - 8, "middle", name));
  if (first) out.push(text(16, middle, "middle", figure.y, ` transform="rotate(-90 16 ${fixed(middle)})"`));
  return `<g class="axes">${out.join("")}</g>${panel.lines.map(l => drawLine(l, at, view.band)).join("")}`;
}
