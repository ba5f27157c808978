// A panel as SVG: its axes, its lines and their labels.
// The stretches of a line that can be drawn, as pairs of first index and end.
function stretches(px, py, isDrawn = () => true) {
  const found = [];
  let from = -1;
  for (let i = 0; i <= px.length; i++) {
    const hasPoint = i < px.length && !Number.isNaN(px[i]) && !Number.isNaN(py[i]) && isDrawn(i);
    if (hasPoint && from < 0) from = i;
    if (!hasPoint && from >= 0) {
      found.push([from, i]);
      from = -1;
    }
  }
  return found;
}

function path(px, py, from, to) {
  const points = [];
  for (let i = from; i < to; i++) points.push(`${fixed(px[i])},${fixed(py[i])}`);
  return points.join(" ");
}

// The corners of a marker of a radius: of a star every second one lies inside.
function outline(mark, radius, x, y) {
  const isStar = mark.waist < 1;
  const count = mark.corners * (isStar ? 2 : 1);
  const corners = Array.from({ length: count }, (_, i) => {
    const angle = ((mark.turn + (360 * i) / count) * Math.PI) / 180;
    const reach = isStar && i % 2 ? radius * mark.waist : radius;
    return `${fixed(x + reach * Math.sin(angle))},${fixed(y - reach * Math.cos(angle))}`;
  });
  return corners.join(" ");
}

// --- lines ---
function drawBand(line, at, out, color) {
  if (!line.low) return;
  // An end that is out of range lies on the border.
  const clip = value => {
    const y = at.y(value);
    if (!Number.isNaN(y)) return y;
    return positionOf(at.scaleY, value) > at.frame.y[0] ? at.top : at.bottom;
  };
  const hasEnds = i => !Number.isNaN(line.low[i]) && !Number.isNaN(line.high[i]);
  const opacity = line.together > 2 ? fixed(0.32 / line.together) : 0.16;
  for (const [from, to] of stretches(line.px, line.py, hasEnds)) {
    if (to - from < 2) continue;
    let lower = "";
    let upper = "";
    for (let i = from; i < to; i++) {
      lower += `${fixed(line.px[i])},${fixed(clip(line.low[i]))} `;
      upper = `${fixed(line.px[i])},${fixed(clip(line.high[i]))} ${upper}`;
    }
    const points = (lower + upper).trimEnd();
    out.push(`<polygon class="band" points="${points}" fill="${color}" opacity="${opacity}"/>`);
  }
}

function drawRuns(line, at, out, color) {
  for (const run of line.runs) {
    const px = Array.from(run.x, at.x);
    const py = Array.from(run.y, at.y);
    for (const [from, to] of stretches(px, py)) {
      out.push(
        to - from > 1
          ? `<polyline class="run" points="${path(px, py, from, to)}" fill="none" stroke="${color}" stroke-width="0.8" opacity="0.45"/>`
          : `<circle class="run" cx="${fixed(px[from])}" cy="${fixed(py[from])}" r="1.6" fill="${color}" opacity="0.6"/>`,
      );
    }
  }
}

// Markers at some of the points, whose indices are `all`. Curves have them at different points, so
// that markers of curves that coincide are all seen.
function drawMarks(line, all, isBig, out, color) {
  const { most_markers, markers } = data.styles;
  const isMeasured = line.role === "measured";
  const most = isBig ? most_markers : 4;
  const every = all.length <= 2 * most ? 1 : Math.ceil(all.length / most);
  const shift = Math.floor(((line.mark % markers.length) * every) / markers.length);
  const first = every === 1 ? 0 : shift;
  const radius = isBig ? 3 : 2.4;
  const begin = isMeasured || every === 1 ? first : (first + Math.floor(every / 2)) % every;
  for (let i = begin; i < all.length; i += every) {
    const x = line.px[all[i]];
    const y = line.py[all[i]];
    const points = outline(markOf(line), isMeasured ? radius : radius - 0.4, x, y);
    out.push(`<polygon class="mark" points="${points}" fill="${color}"/>`);
    // Markers of predictions are hollow.
    if (!isMeasured) {
      const hole = outline(markOf(line), radius - 1.4, x, y);
      out.push(`<polygon class="hole" points="${hole}" fill="#ffffff"/>`);
    }
  }
}

function drawRings(line, isBig) {
  const radius = isBig ? 8 : 6;
  const rings = stretches(line.px, line.py).map(
    ([k]) =>
      `<circle cx="${fixed(line.px[k])}" cy="${fixed(line.py[k])}" r="${radius}" fill="none" stroke="${rgb(line.color)}" stroke-width="2"/>`,
  );
  return `<g class="series selected" data-label="${esc(line.label)}" data-color="${colorName(line.color)}">${rings.join("")}</g>`;
}

// The dashes of a curve above another (chart::panel has the same).
const ABOVE = "14 12";

// `line.wide`: it lies below another that coincides with it; `line.above`: it is the highest and has
// another colour, so that both are seen.
function drawLine(line, at, band, isBig) {
  if (line.role === "selected") return drawRings(line, isBig);
  const { px, py } = line;
  const color = rgb(line.color);
  const isMeasured = line.role === "measured";
  const width = isMeasured ? (isBig ? 2 : 1.6) + (line.wide ? 2.6 : 0) : 1.4;
  const dashes = line.above ? ` stroke-dasharray="${ABOVE}"` : "";
  const out = [];
  if (isMeasured && band === "runs") drawRuns(line, at, out, color);
  drawBand(line, at, out, color);
  const drawn = [];
  for (const [from, to] of stretches(px, py)) {
    for (let i = from; i < to; i++) drawn.push(i);
    out.push(
      to - from > 1
        ? `<polyline points="${path(px, py, from, to)}" fill="none" stroke="${color}" stroke-width="${width}" stroke-linejoin="round"${dashes}/>`
        : `<circle cx="${fixed(px[from])}" cy="${fixed(py[from])}" r="2" fill="${color}"/>`,
    );
  }
  if (line.role !== "reference" && !line.flat) drawMarks(line, drawn, isBig, out, color);
  const end = drawn.at(-1);
  if (line.diverged && end !== undefined) out.push(drawCross(px[end], py[end], color));
  return `<g class="series ${line.role}" data-label="${esc(line.label)}" data-color="${colorName(line.color)}" stroke-dasharray="${pattern(line)}">${out.join("")}</g>`;
}

// Where a run diverged.
function drawCross(x, y, color) {
  const [left, right, top, bottom] = [x - 4, x + 4, y - 4, y + 4].map(fixed);
  const strokes = `M${left} ${top}L${right} ${bottom}M${left} ${bottom}L${right} ${top}`;
  return `<path d="${strokes}" stroke="${color}" stroke-width="2" stroke-dasharray="none"/>`;
}

// --- axes ---
// Height of a line of the title of the x axis.
const TITLE_LINE = 12;

// The ticks whose texts do not overlap, powers of ten before others; `reach` is where a text begins
// and ends.
function apart(ticks, reach, gap) {
  const kept = [];
  const isPower = ([position]) => Number.isInteger(position);
  for (const tick of [...ticks].sort((a, b) => isPower(b) - isPower(a))) {
    const [from, to] = reach(tick);
    const isFree = kept.every(other => from >= other.to + gap || to <= other.from - gap);
    if (isFree) kept.push({ from, to, tick });
  }
  return ticks.filter(tick => kept.some(one => one.tick === tick));
}

function drawTickText(x, y, anchor, words) {
  return `<text x="${fixed(x)}" y="${fixed(y)}" text-anchor="${anchor}" font-size="11" fill="#59616b">${esc(words)}</text>`;
}

function drawRule(name, x1, y1, x2, y2, stroke) {
  const width = name === "axis" ? 0.8 : 0.6;
  return `<line class="${name}" x1="${fixed(x1)}" y1="${fixed(y1)}" x2="${fixed(x2)}" y2="${fixed(y2)}" stroke="${stroke}" stroke-width="${width}"/>`;
}

// The title of the x axis below the middle of the plotting area, moved where it would leave the panel.
function xTitle(at, size) {
  const { lines, size: letters } = size.titleX;
  const drawn = lines.map((words, i) => {
    const reach = widthOf(words, `${letters}px ${size.face}`) / 2 + 1;
    const x = Math.max(reach, Math.min(size.width - reach, at.left + at.wide / 2));
    const y = size.height - 4 - TITLE_LINE * (lines.length - 1 - i);
    return `<text x="${fixed(x)}" y="${fixed(y)}" text-anchor="middle" font-size="${fixed(letters)}" fill="#59616b">${esc(words)}</text>`;
  });
  return drawn.join("");
}

function drawAxes(at, size) {
  const font = `11px ${size.face}`;
  const right = at.left + at.wide;
  const out = [];
  // The first text and the last stay inside the panel.
  const middle = (x, words) => {
    const half = widthOf(words, font) / 2;
    return Math.min(Math.max(x, half + 1), size.width - half - 1);
  };
  const reachX = ([, words, x]) =>
    [-1, 1].map(side => middle(x, words) + (side * widthOf(words, font)) / 2);
  const ticksX = at.ticksX
    .map(([position, words]) => [position, words, at.x(valueAt(at.scaleX, position))])
    .filter(([, , x]) => !Number.isNaN(x));
  for (const [, words, x] of apart(ticksX, reachX, 6)) {
    out.push(drawRule("grid", x, at.top, x, at.bottom, "#e6e9ec"));
    out.push(drawTickText(middle(x, words), at.bottom + 14, "middle", words));
  }
  const ticksY = at.ticksY.map(([position, words]) => [
    position,
    words,
    at.y(valueAt(at.scaleY, position)),
  ]);
  for (const [, words, y] of apart(ticksY, ([, , y]) => [y - 6, y + 6], 1)) {
    if (Number.isNaN(y)) continue;
    out.push(drawRule("grid", at.left, y, right, y, "#e6e9ec"));
    if (size.ticksY) out.push(drawTickText(at.left - 6, y + 4, "end", words));
  }
  out.push(drawRule("axis", at.left, at.top, at.left, at.bottom, "#6c757f"));
  out.push(drawRule("axis", at.left, at.bottom, right, at.bottom, "#6c757f"));
  if (size.named) out.push(xTitle(at, size));
  if (size.above && size.ticksY) {
    out.push(drawTickText(1, 10, "start", cut(size.above, font, size.width - 2)));
  }
  return `<g class="axes">${out.join("")}</g>`;
}

// The room below the plotting area: texts of ticks and the lines of the title.
function belowAxis({ big, named, titleX }) {
  if (!big && !named) return 21;
  return (big ? 40 : 36) + (named ? TITLE_LINE * (titleX.lines.length - 1) : 0);
}

// The room on the left of the plotting area for the texts of ticks.
function leftOfAxis(ticksY, size) {
  if (!size.ticksY) return 8;
  const wide = ticksY.map(([, words]) => Math.ceil(widthOf(words, `11px ${size.face}`)));
  return 10 + Math.max(12, ...wide);
}

// A panel of a size: its SVG, and where things are in it. Labels need the pixels of values along the
// y axis, and the rest of the width is that of the x axis.
function drawPanel(figure, view, panel, frame, size, isVisible) {
  const at = {
    frame,
    scaleX: view.scaleX,
    scaleY: view.scaleY,
    top: size.above ? 22 : 8,
    bottom: size.height - belowAxis(size),
  };
  const about = clamp(Math.round((at.bottom - at.top) / 44), 2, 7);
  at.ticksY = ticks(view.scaleY, frame.y, about);
  at.left = leftOfAxis(at.ticksY, size);
  at.y = along(view.scaleY, frame.y, at.bottom, at.top);
  const shareOfX = along(view.scaleX, frame.x, 0, 1);
  const lines = panel.lines.map(line => ({ ...line, shown: isVisible(line) }));
  for (const line of lines) {
    line.py = new Float64Array(line.x.length);
    for (let i = 0; i < line.py.length; i++) line.py[i] = at.y(line.y[i]);
    [line.first, line.last] = drawnEnds(line, shareOfX);
  }
  const inside = lines.filter(line => line.last !== null);
  const labelled = inside.filter(line => line.shown);
  const labels = endLabels(labelled, at, size, figure, view);
  at.wide = Math.max(20, size.width - at.left - (labels.room ? labels.room + 14 : 12));
  at.ticksX = ticks(view.scaleX, frame.x, clamp(Math.floor(at.wide / 64), 2, 6));
  at.x = along(view.scaleX, frame.x, at.left, at.left + at.wide);
  for (const line of lines) line.px = Float64Array.from(line.x, at.x);
  const shown = lines.filter(line => line.shown);
  const drawn = shown.map(line => drawLine(line, at, view.band, size.big)).join("");
  const area = [at.left, at.top, at.wide, at.bottom - at.top].map(fixed).join(" ");
  const svg = `<g class="panel" data-area="${area}">${drawAxes(at, size)}${drawn}${drawLabels(labels, at, size)}</g>`;
  return { svg, at, isCut: labels.isCut, isLevel: labels.isLevel, lines: shown, inside };
}
