// Axes: where values stand, which range they have, and their ticks. A position is a value, or its
// decimal logarithm.
function positionOf(scale, value) {
  if (scale === "linear") return value;
  return value > 0 ? Math.log10(value) : NaN;
}

function valueAt(scale, position) {
  return scale === "linear" ? position : 10 ** position;
}

// Pixels of a value along an axis: NaN of what is out of range, but for single precision.
function along(scale, [low, high], from, to) {
  const step = (to - from) / (high - low);
  const slack = 1e-6 * (high - low);
  return value => {
    const position = positionOf(scale, value);
    const isInside = position >= low - slack && position <= high + slack;
    return isInside ? from + (position - low) * step : NaN;
  };
}

// --- ranges ---
// `beside` extends the range by at most a quarter at each end (chart::axis has the same rules).
function rangeOver(scale, lists, room, beside = []) {
  let low = Infinity;
  let high = -Infinity;
  for (const list of lists) {
    for (const value of list) {
      const position = positionOf(scale, value);
      if (!Number.isFinite(position)) continue;
      if (position < low) low = position;
      if (position > high) high = position;
    }
  }
  if (low > high) [low, high] = [0, 1];
  const reach = (high - low) / 4;
  const ends = beside.map(value => positionOf(scale, value)).filter(Number.isFinite);
  const lowest = ends.reduce((a, b) => Math.min(a, b), low);
  const highest = ends.reduce((a, b) => Math.max(a, b), high);
  low = Math.max(low - reach, lowest);
  high = Math.min(high + reach, highest);
  // A curve that is nearly level keeps a height that a reader can compare.
  const least = scale === "log" ? 0.04 : 1e-12 + 1e-3 * Math.abs(high);
  const pad = Math.max(room * (high - low), (least - (high - low)) / 2, 0);
  return [low - pad, high + pad];
}

function isWithin(zoom, x) {
  return !zoom || (x >= zoom[0] && x <= zoom[1]);
}

// Fractions that most points come near: what is far below them does not squash them (chart::panel has
// the same rule).
function withoutOutliers(lists) {
  const all = lists.flatMap(list => [...list]).sort((a, b) => a - b);
  const low = all[Math.floor(all.length / 10)];
  const reach = all.at(-1) - low;
  const isSquashed = all.length >= 20 && reach > 0 && 4 * reach < all.at(-1) - all[0];
  return isSquashed ? lists.map(list => list.filter(value => value >= low - reach / 4)) : lists;
}

// The range of the y axis. A diverging curve may leave the panel, and a prediction far below all that
// was measured does not squash the curves (chart::panel has the same rule).
function rangeY(view, lines, isFraction) {
  const isShown = x => isWithin(view.zoom, x) && Number.isFinite(positionOf(view.scaleX, x));
  const inside = list => list.y.filter((_, i) => isShown(list.x[i]));
  const kept = lines.map(line => ({ line, y: inside(line) }));
  let top = 0;
  for (const { line, y } of kept) {
    for (const value of line.diverged ? [] : y) {
      if (Number.isFinite(value) && value > top) top = value;
    }
    if (y.length && Number.isFinite(100 * line.y[0])) top = Math.max(top, 100 * line.y[0]);
  }
  const isMeasured = ({ line }) => line.role === "measured";
  const measured = kept.filter(isMeasured).map(({ y }) => y.filter(value => value <= top));
  const own = view.scaleY === "linear" && isFraction ? withoutOutliers(measured) : measured;
  let least = Infinity;
  for (const list of own) {
    for (const value of list) if (value > 0 && value < least) least = value;
  }
  const positive = run => inside(run).filter(value => value > 0 && value <= top);
  const runs = view.band === "runs" ? lines.flatMap(line => line.runs.map(positive)) : [];
  const isNear = value => value >= least / 30 && value <= top;
  const others = kept.filter(one => !isMeasured(one)).map(({ y }) => y.filter(isNear));
  const bands = kept.flatMap(({ line }) => {
    const isDrawn = (_, i) => isShown(line.x[i]) && line.y[i] <= top;
    return line.low ? [line.low, line.high].flatMap(ends => Array.from(ends).filter(isDrawn)) : [];
  });
  return rangeOver(view.scaleY, [...own, ...runs, ...others], 0.04, bands);
}

// The ranges of the axes of each panel. A panel without points in the stretch of x that is zoomed to
// shows all of its own.
function frames(figure, view, panels, isVisible) {
  const shown = panels.map(panel => panel.lines.filter(isVisible));
  const isFraction = figure.labels.at === "last" && !figure.labels.ranked;
  const hasPoint = line => line.role === "measured" && line.x.some(x => isWithin(view.zoom, x));
  const zoomed = shown.map(lines => view.zoom && lines.some(hasPoint));
  const compared = view.zoom ? shown.filter((_, i) => zoomed[i]) : shown;
  const common = view.range === "own" ? null : rangeY(view, compared.flat(), isFraction);
  return panels.map((panel, i) => {
    const isCommon = common && (zoomed[i] || !view.zoom);
    const ownView = { ...view, zoom: zoomed[i] ? view.zoom : null };
    const lists = panel.lines.map(line => line.x);
    return {
      y: isCommon ? common : rangeY(ownView, shown[i], isFraction),
      x: zoomed[i]
        ? view.zoom.map(value => positionOf(view.scaleX, value))
        : rangeOver(view.scaleX, lists, view.scaleX === "log" ? 0.02 : 0),
    };
  });
}

// --- ticks ---
// About so many values in a range, multiples of 1, 2 or 5 times a power of ten.
function roundValues(low, high, about) {
  const raw = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(Math.max(raw, 1e-300)));
  const factor = [1, 2, 5, 10].find(one => one * power >= raw * (1 - 1e-9));
  const step = power * (factor || 10);
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: count }, (_, i) => (first + i) * step);
}

// Pairs of a position and its text.
function ticks(scale, [low, high], about) {
  if (scale === "linear") {
    return roundValues(low, high, about).map(value => [value, plain(value)]);
  }
  // Less than a factor of three: what differs is a few per cent.
  if (high - low < 0.45) {
    const withoutZeros = text => text.replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
    const rounded = roundValues(10 ** low, 10 ** high, about);
    return rounded.map(value => [Math.log10(value), withoutZeros(number(value))]);
  }
  const first = Math.ceil(low);
  const last = Math.floor(high);
  if (high - low < 2) return ticksOfTwoDecades(low, high, first);
  const step = Math.max(1, Math.ceil((high - low) / about));
  const found = [];
  for (let exponent = first; exponent <= last; exponent += step) {
    found.push([exponent, raised(exponent)]);
  }
  return found;
}

// Within two powers of ten 1, 2 and 5 times each.
function ticksOfTwoDecades(low, high, first) {
  const found = [];
  for (let exponent = first - 1; exponent < first + 2; exponent++) {
    for (const factor of [1, 2, 5]) {
      const position = Math.log10(factor) + exponent;
      if (position < low || position > high) continue;
      const power = factor === 1 ? raised(exponent) : `${factor}·${raised(exponent)}`;
      const isPlain = exponent >= -3 && exponent <= 3;
      found.push([position, isPlain ? plain(Number(`${factor}e${exponent}`)) : power]);
    }
  }
  return found;
}
