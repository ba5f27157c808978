// What is drawn of the cells in a view: panels of lines. A line has its points as columns.
function bareLine(x, y) {
  return { x, y, geometric: null, low: null, high: null, n: null };
}

function viewOf(figure, view) {
  return figure.views.find(one => one.panels === view.panels);
}

// The name of the x axis of a view.
function axisName(figure, view) {
  return figure.xs.find(([key]) => key === view.x)[1];
}

// Means with the ends of a band as the report computed them (evidence::measured).
function measuredPoints(figure, cell, axis, band) {
  const means = values(cell.mean);
  const x = values(cell.x[axis]).subarray(0, means.length);
  const y = means.subarray(0, x.length);
  const n = Array.isArray(cell.n) ? cell.n : Array(x.length).fill(cell.n);
  const geometric = cell.geometric && values(cell.geometric);
  const ends = cell.bands[figure.bands.indexOf(band)];
  if (!ends) return { ...bareLine(x, y), geometric, n };
  return { x, y, geometric, low: values(ends[0]), high: values(ends[1]), n };
}

// The points of several cells as one line, left to right.
function joined(parts) {
  const rows = parts.flatMap(part =>
    Array.from(part.x, (x, i) => [
      x,
      part.y[i],
      part.low ? part.low[i] : NaN,
      part.high ? part.high[i] : NaN,
      part.n ? part.n[i] : 0,
      part.geometric ? part.geometric[i] : NaN,
    ]),
  );
  rows.sort((a, b) => a[0] - b[0]);
  const column = i => rows.map(row => row[i]);
  const hasBand = parts.some(part => part.low);
  return {
    x: column(0),
    y: column(1),
    low: hasBand ? column(2) : null,
    high: hasBand ? column(3) : null,
    n: column(4),
    geometric: parts.some(part => part.geometric) ? column(5) : null,
  };
}

function measuredLine(figure, curve, places, points, runs) {
  const diverged = places.reduce((sum, place) => sum + figure.cells[place].diverged, 0);
  return { role: "measured", ...curve, places, ...points, runs, diverged };
}

// A prediction has the colour and the marker of its curve.
function predictedLine(curve, places, entry, points) {
  return {
    role: "theory",
    ...curve,
    label: `${entry.words} ${curve.label}`,
    words: entry.words,
    dash: entry.dash,
    places,
    ...points,
    flat: Array.from(points.y).every(y => y === points.y[0]),
    runs: [],
    diverged: 0,
  };
}

// The lines of a panel over rounds: one of each cell, and its predictions. `places` are the cells of
// the panel, by their places among those of the figure.
function linesOfRounds(figure, view, { curves, of }, places) {
  return places.flatMap(place => {
    const cell = figure.cells[place];
    const x = values(cell.x[view.x]);
    const lineOf = (y, rows) => {
      const xs = rows ? Array.from(rows, row => x[row]) : x;
      const count = Math.min(xs.length, y.length);
      return bareLine(xs.slice(0, count), y.slice(0, count));
    };
    const points = measuredPoints(figure, cell, view.x, view.band);
    const runs = cell.runs.map(run => lineOf(values(run)));
    const curve = curves[of[place]];
    const predictions = figure.theory.filter(entry => entry.cell === place);
    return [
      measuredLine(figure, curve, [place], points, runs),
      ...predictions.map(entry => {
        const line = lineOf(values(entry.y), entry.rows && values(entry.rows));
        return predictedLine(curve, [place], entry, line);
      }),
    ];
  });
}

// The lines of a panel over a setting: one of each curve, with a point of each of its cells.
function linesOfCells(figure, view, { curves, of }, places) {
  const xOf = cell => values(cell.x[view.x])[0];
  return curves.flatMap((curve, index) => {
    const own = places.filter(place => of[place] === index);
    if (!own.length) return [];
    const cells = own.map(place => figure.cells[place]);
    const runs = cells.flatMap(cell => {
      const ends = cell.runs.length ? Array.from(values(cell.runs[0])) : [];
      return ends.map(y => bareLine([xOf(cell)], [y]));
    });
    const points = cells.map(cell => measuredPoints(figure, cell, view.x, view.band));
    // A prediction of one cell alone is no line.
    const entries = figure.theory.filter(entry => own.includes(entry.cell));
    const predictions = unique(entries.map(entry => entry.words))
      .map(words => entries.filter(entry => entry.words === words))
      .filter(list => list.length > 1);
    return [
      measuredLine(figure, curve, own, joined(points), runs),
      ...predictions.map(list => {
        const parts = list.map(entry => {
          const cell = figure.cells[entry.cell];
          return bareLine([xOf(cell)], [values(entry.y)[0]]);
        });
        return predictedLine(curve, own, list[0], joined(parts));
      }),
    ];
  });
}

// Straight lines on logarithmic axes, through the first point of the first curve that has two. One
// that lies on a curve is left out (analysis::line_figure has the same rule).
function slopes(figure, lines) {
  const isPlaced = point => point.every(value => value > 0 && Number.isFinite(value));
  const pointsOf = line => Array.from(line.x, (x, i) => [x, line.y[i]]).filter(isPlaced);
  const curves = lines
    .filter(line => line.role === "measured")
    .map(pointsOf)
    .filter(points => points.length > 1);
  if (!curves.length) return [];
  const allX = lines.flatMap(pointsOf).map(([x]) => x);
  const low = Math.min(...allX);
  const high = Math.max(...allX);
  const [fromX, fromY] = curves[0][0];
  const slopeAt = (slope, x) => fromY * (x / fromX) ** slope;
  const isOn = (slope, points) => {
    const near = 0.02 + 0.01 * Math.abs(slope * Math.log10(high / low));
    return points.every(([x, y]) => Math.abs(Math.log10(y / slopeAt(slope, x))) <= near);
  };
  const drawn = low < high ? figure.references : [];
  return drawn
    .filter(slope => !curves.some(points => isOn(slope, points)))
    .map(slope => ({
      role: "reference",
      label: `slope ${String(slope).replace("-", "−")}`,
      color: -1,
      family: -1,
      dash: data.styles.thin_dashes.length - 1,
      mark: 0,
      places: [],
      runs: [],
      diverged: 0,
      ...bareLine(
        [low, high],
        [low, high].map(x => slopeAt(slope, x)),
      ),
    }));
}

// Rings around the values that were selected.
function ringsOf(figure, view, { curves, of }, places) {
  const selected = (figure.selected ?? []).filter(ring => places.includes(ring.cell));
  return selected.map(({ cell, label, x, y, ends: [low, high], n }) => {
    const curve = curves[of[cell]];
    const band = view.band === figure.band && { low: values(low), high: values(high) };
    return {
      ...curve,
      role: "selected",
      label,
      of: curve.label,
      places: [cell],
      runs: [],
      diverged: 0,
      ...bareLine(values(x), values(y)),
      ...band,
      n,
    };
  });
}

// Predictions have an entry each in a list of up to so many; otherwise each kind has one.
const FEW_ENTRIES = 7;

function oneOfEachLabel(lines) {
  return [...new Map(lines.map(line => [line.label, line])).values()];
}

// What the list of curves has: curves that are drawn, predictions or their kinds, and slopes.
function keysOf(figure, { curves, of }, lines) {
  const measured = lines.filter(line => line.role === "measured" && line.x.length);
  const drawn = new Set(measured.map(line => line.label));
  const keys = curves
    .map((curve, index) => ({
      role: "measured",
      ...curve,
      places: of.flatMap((curveOfCell, place) => (curveOfCell === index ? [place] : [])),
    }))
    .filter(key => drawn.has(key.label));
  const theory = oneOfEachLabel(lines.filter(line => line.role === "theory"));
  if (keys.length + theory.length <= FEW_ENTRIES) {
    for (const { role, label, color, family, dash, mark, flat } of theory) {
      keys.push({ role, label, color, family, dash, mark, flat });
    }
  } else {
    for (const [label, dash] of figure.kinds) {
      if (!theory.some(line => line.dash === dash)) continue;
      keys.push({ role: "theory", label, color: -1, family: -1, dash, mark: 0 });
    }
  }
  return [...keys, ...oneOfEachLabel(lines.filter(line => line.role === "reference"))];
}

// The panels of a view with their lines, and the entries of the list of curves.
function model(figure, view) {
  const shown = viewOf(figure, view);
  const linesOf = figure.rounds ? linesOfRounds : linesOfCells;
  const panels = shown.groups.map(([title, places]) => {
    const lines = linesOf(figure, view, shown, places);
    const rings = ringsOf(figure, view, shown, places);
    return { title, lines: [...lines, ...rings, ...slopes(figure, lines)] };
  });
  const lines = panels.flatMap(panel => panel.lines);
  return { panels, keys: keysOf(figure, shown, lines) };
}
