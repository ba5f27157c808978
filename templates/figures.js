// Figures: hide, isolate, read, and look at the same cells in another way. What is
// drawn at first is plotters' drawing; another view is drawn here, into the same
// frame and by the same rules.
const source = document.getElementById("data");
const data = source ? JSON.parse(source.textContent) : { figures: [] };
const buffer = text => Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer;
const blocks = source
  ? [new Float32Array(buffer(data.numbers.singles)), new Float64Array(buffer(data.numbers.doubles))] : [];
const values = slice => Array.from(blocks[slice[0]].subarray(slice[1], slice[1] + slice[2]));
const esc = text => String(text).replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const unique = list => [...new Set(list)];
const rgb = color => `rgb(${(color < 0 ? [60, 60, 60] : data.look.palette[color % data.look.palette.length]).join(",")})`;
const colorName = color => color < 0 ? "none" : color % data.look.palette.length;
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
const nameOf = (cell, known) => [cell.label, ...cell.details.filter(([axis]) => !known.includes(axis)).map(d => d[1])].join(", ");

function groups(figure, axes) {
  let all = [[]];
  for (const axis of axes) {
    const found = unique(figure.cells.map(c => c.settings[axis]).filter(v => v !== undefined));
    all = all.flatMap(head => found.map(v => [...head, v]));
  }
  const fits = (cell, wanted) => axes.every((axis, i) => cell.settings[axis] === undefined || cell.settings[axis] === wanted[i]);
  const group = wanted => ({ title: wanted.join(", "), cells: figure.cells.filter(c => fits(c, wanted)) });
  return all.map(group).filter(g => g.cells.length);
}

function points(cell, x, band) {
  const [xs, mean, sd, low, high] = [cell.x[x], cell.mean, cell.sd, cell.low, cell.high].map(values);
  const half = { std: 1, sem: 1 / Math.sqrt(cell.n), ci95: cell.half }[band];
  // The interval of a positive mean is one of its logarithm, so that it stays positive.
  const end = (y, reach) => band === "ci95" && y > 0 ? y * Math.exp(reach / y) : y + reach;
  return mean.map((y, i) => ({ x: xs[i], y, n: cell.n,
    low: half ? end(y, -half * sd[i]) : band === "quantiles" ? low[i] : NaN,
    high: half ? end(y, half * sd[i]) : band === "quantiles" ? high[i] : NaN })).filter(p => p.x !== undefined);
}

function model(figure, view) {
  const axes = view.panels === "" ? [] : view.panels.split(",");
  const known = figure.rounds ? axes : [...axes, figure.x, ...(figure.x === "path-length" ? ["step-size"] : [])];
  const labels = unique(figure.cells.map(c => c.label)), names = unique(figure.cells.map(c => nameOf(c, known)));
  const variant = cell => nameOf({ ...cell, label: "" }, known);
  const variants = unique(figure.cells.map(variant)).filter(v => v !== "");
  const style = cell => {
    if (!figure.rounds) return { color: names.indexOf(nameOf(cell, known)), dash: names.indexOf(nameOf(cell, known)) };
    const label = labels.indexOf(cell.label);
    return { color: variants.length ? Math.max(0, variants.indexOf(variant(cell))) : label, dash: label };
  };
  const bare = (x, y) => ({ x, y, low: NaN, high: NaN, n: 0 });
  const asTheory = (of, entry, list) => ({ role: "theory", of, kind: entry.kind, label: `${entry.words} ${of}`,
    color: entry.grey ? -1 : null, dash: entry.dash, points: list, runs: [], diverged: 0 });
  const panels = groups(figure, axes).map(group => {
    const lines = [];
    if (figure.rounds) {
      for (const cell of group.cells) {
        const at = style(cell), label = nameOf(cell, known), xs = values(cell.x[view.x]);
        lines.push({ role: "measured", of: label, label, ...at, points: points(cell, view.x, view.band), diverged: cell.diverged,
          runs: cell.runs.map(run => values(run).map((y, i) => bare(xs[i], y)).filter(p => p.x !== undefined)) });
        for (const entry of figure.theory.filter(t => figure.cells[t.cell] === cell)) {
          const rows = entry.rows && values(entry.rows);
          const list = values(entry.y).map((y, i) => bare(xs[rows ? rows[i] : i], y)).filter(p => p.x !== undefined);
          const line = asTheory(label, entry, list);
          lines.push({ ...line, color: line.color === null ? at.color : -1 });
        }
      }
    } else {
      for (const name of names) {
        const cells = group.cells.filter(c => nameOf(c, known) === name);
        if (!cells.length) continue;
        const at = style(cells[0]), sorted = list => list.sort((a, b) => a.x - b.x);
        const runs = cells.flatMap(c => c.runs.length ? values(c.runs[0]).map(y => [bare(values(c.x[view.x])[0], y)]) : []);
        lines.push({ role: "measured", of: name, label: name, ...at, runs, diverged: cells.reduce((s, c) => s + c.diverged, 0),
          points: sorted(cells.flatMap(c => points(c, view.x, view.band))) });
        const mine = figure.theory.filter(t => cells.includes(figure.cells[t.cell]));
        for (const words of unique(mine.map(t => t.words))) {
          const entries = mine.filter(t => t.words === words);
          const list = sorted(entries.map(t => bare(values(figure.cells[t.cell].x[view.x])[0], values(t.y)[0])));
          const line = asTheory(name, entries[0], list);
          if (list.length > 1) lines.push({ ...line, color: line.color === null ? at.color : -1 });
        }
      }
    }
    const from = lines.map(l => l.points[0]).find(p => p);
    for (const slope of from ? figure.references : []) {
      const xs = lines.flatMap(l => l.points.map(p => p.x));
      const at = x => bare(x, from.y * (x / from.x) ** slope);
      lines.push({ role: "reference", of: `slope ${slope}`, kind: `slope ${slope}`, label: `slope ${slope}`, color: -1, dash: 0,
        points: [at(Math.min(...xs)), at(Math.max(...xs))], runs: [], diverged: 0 });
    }
    return { title: group.title, lines };
  });
  const lines = panels.flatMap(p => p.lines), keys = [];
  const add = key => { if (!keys.some(k => k.label === key.label)) keys.push(key); };
  lines.filter(l => l.role === "measured").forEach(l => add({ label: l.label, role: l.role, color: l.color, dash: l.dash }));
  lines.filter(l => l.role !== "measured").forEach(l => add({ label: l.kind, role: l.role, color: -1, dash: l.dash }));
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

const pattern = line => line.role === "measured" ? data.look.dashes[line.dash % data.look.dashes.length]
  : line.role === "theory" ? data.look.faint[line.dash % data.look.faint.length] : data.look.faint[0];
const markOf = line => data.look.marks[line.color % data.look.marks.length];

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
  if (measured) {
    const most = data.look.most_marks, every = flat.length <= 2 * most ? 1 : Math.ceil(flat.length / most);
    const first = every === 1 ? 0 : Math.floor(line.color % data.look.marks.length * every / data.look.marks.length);
    for (let i = first; i < flat.length; i += every) out.push(`<polygon points="${outline(markOf(line), 3, flat[i].px, flat[i].py)}" fill="${color}"/>`);
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
