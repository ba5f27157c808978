// Labels at the ends of curves: what each says, and where it stands.
// Panels narrower than this have whole labels or none.
const NARROW_PANEL = 200;
// Heights of a label, with and without a value below its name, and of a label with some space.
const NAME_HEIGHT = 13.5;
const VALUE_HEIGHT = 31;
const SPACED_HEIGHT = 32;
// Ratios above this are those of rounding errors.
const MOST_RATIO = 1e6;
// More curves are not compared with one another, which would take long.
const MOST_COMPARED = 40;

// --- comparisons of curves ---
// The numbers by which points of curves are compared, each the index k of a line: over several
// instances geometric means, as in the ranking; 0 of what is zero to rounding. `isGeometric` says
// which they are (chart::label_values has the same rules).
function levels(figure, points) {
  const geometric = ({ line, k }) => (line.geometric ? line.geometric[k] : NaN);
  const isGeometric = points.length > 0 && points.every(point => geometric(point) > 0);
  const level = point => {
    const value = isGeometric ? geometric(point) : (point.line.y[point.k] ?? Infinity);
    return value < figure.labels.zero_below ? 0 : value;
  };
  return { isGeometric, level };
}

// The indices of the first and of the last point that is drawn; null where none is.
function drawnEnds(line, pixelOf) {
  const isDrawn = Array.from(
    line.x,
    (x, i) => !Number.isNaN(line.py[i]) && !Number.isNaN(pixelOf(x)),
  );
  if (!isDrawn.includes(true)) return [null, null];
  return [isDrawn.indexOf(true), isDrawn.lastIndexOf(true)];
}

// Whether two lines lie on one another wherever both are drawn.
function areOne(a, b) {
  if (a.x.length !== b.x.length || a.last !== b.last) return false;
  for (let i = 0; i < a.py.length; i++) {
    if (a.x[i] !== b.x[i]) return false;
    const isNear = Math.abs(a.py[i] - b.py[i]) <= 1.2;
    if (!isNear && !(Number.isNaN(a.py[i]) && Number.isNaN(b.py[i]))) return false;
  }
  return true;
}

// Groups of lines that lie on one another; the later ones are above.
function coinciding(lines) {
  const groups = [];
  for (const line of lines) {
    const group = groups.find(([first]) => areOne(first, line));
    if (group) {
      group.at(-1).wide = true;
      group.push(line);
    } else {
      groups.push([line]);
    }
  }
  for (const group of groups) {
    const highest = group.at(-1);
    const next = group.at(-2);
    highest.above = next && next.family !== highest.family;
    // Bands that lie on one another are not to add up to a dark one.
    for (const line of group) line.together = group.length;
  }
  return groups;
}

// --- names ---
// Gives short names: an algorithm that has one curve needs no settings, and settings do where there
// is one algorithm.
function namer(lines) {
  const count = new Map();
  for (const line of lines) count.set(line.algorithm, (count.get(line.algorithm) ?? 0) + 1);
  return line => {
    if (line.role === "reference") return line.label;
    if (count.get(line.algorithm) === 1) return line.algorithm;
    return count.size === 1 && line.settings ? line.settings : line.label;
  };
}

function labelFonts(size) {
  return { name: `640 ${size.big ? 13 : 11.5}px ${size.face}`, value: `11.5px ${size.face}` };
}

// The predictions, if they are few, that end far from every measured curve, with short names: the
// line, the text, and whether it stands for several.
const FEW_PREDICTIONS = 3;
const FAR = 20;

function apartFrom(curves, lines, size, fits) {
  const end = line => line.py[line.last];
  const isFar = line => curves.every(curve => Math.abs(end(curve) - end(line)) > FAR);
  const far = lines.filter(line => line.role === "theory" && isFar(line));
  if (size.width < NARROW_PANEL || far.length > FEW_PREDICTIONS) return [];
  const isOneAlgorithm = unique(curves.map(curve => curve.algorithm)).length === 1;
  const name = namer(lines.filter(line => line.role === "measured"));
  const ofWords = words => far.filter(line => line.words === words);
  // Of those that coincide the first stands for all.
  const alike = line => ofWords(line.words).filter(one => Math.abs(end(one) - end(line)) <= 3);
  return far
    .filter(line => alike(line)[0] === line)
    .flatMap(line => {
      const brief = line.words.replace(/^the /, "").replace(/ (for|of)$/, "");
      const whole = `${line.words} ${name(line)}`;
      const isAll = alike(line).length > 1;
      const isSole = isOneAlgorithm && ofWords(line.words).length === 1;
      const text = (isAll || isSole ? [brief] : [whole, brief]).find(fits);
      if (text === undefined) return [];
      return isAll ? [[{ ...line, family: -1 }, text, isAll]] : [[line, text]];
    });
}

function textOf({ names, tail }) {
  return names.map(part => part.text).join(" and ") + (tail ?? "");
}

// A label as short as its room, as one item or one for each of its names. Algorithms with the same
// settings name these once; where there are two algorithms, "both" does, and the settings alone in
// the colour of their algorithm. Of many curves that coincide there is the number.
function shorten(one, font, room, hasTwoAlgorithms, curves) {
  const lines = one.names.map(part => part.line);
  const [first] = lines;
  const { settings } = first;
  const fits = text => widthOf(text, font) <= room;
  const forAll = (line, text) => ({ ...one, names: [{ line, text, all: true }], tail: "" });
  const hasSameSettings = settings && lines.every(line => line.settings === settings);
  const hasLabels = one.names.every(part => part.text === part.line.label);
  if (lines.length > 1 && hasSameSettings && hasLabels) {
    for (const part of one.names) part.text = part.line.algorithm;
    one.tail = `, ${settings}`;
    if (hasTwoAlgorithms && !fits(textOf(one))) {
      one.names = [{ line: first, text: "both", all: true }];
    }
    if (!fits(textOf(one)) && fits(settings)) return [forAll({ ...first, family: -1 }, settings)];
  }
  if (fits(textOf(one))) return [one];
  const curvesOf = algorithm => curves.filter(curve => curve.algorithm === algorithm).length;
  // An algorithm that has one curve here is named rather than its settings.
  if (lines.length === 1 && first.role === "measured" && settings) {
    const { algorithm } = first;
    const short = curvesOf(algorithm) > 1 ? settings : algorithm;
    if (short === algorithm || fits(short)) one.names[0].text = short;
    if (fits(short)) return [one];
  }
  const sole = first.algorithm;
  const isOfSole = line => line.role === "measured" && line.algorithm === sole;
  if (lines.length > 1 && lines.every(isOfSole)) {
    const text = curvesOf(sole) === lines.length ? sole : `${sole}, ${lines.length} curves`;
    if (fits(text)) return [forAll(first, text)];
  }
  if (lines.length > 3) {
    const text = `${lines.length === curves.length ? "all " : ""}${lines.length} curves`;
    return [{ ...one, names: [{ line: { ...first, family: -1 }, text, all: true }] }];
  }
  return one.names.flatMap((name, i) =>
    shortenName(one, name, i + 1 === one.names.length, font, fits),
  );
}

// One of the names of a label, on lines of its own.
function shortenName(one, name, isLast, font, fits) {
  const value = isLast ? one.value : "";
  const after = isLast ? (one.tail ?? "") : " and";
  const whole = name.text + after;
  if (fits(whole)) return [{ ...one, names: [name], tail: after, value }];
  if (!isLast && fits(name.text)) return [{ ...one, names: [name], tail: "", value }];
  // Half a name says nothing: it takes two lines, or the list of curves alone has it.
  const lines = halves(isLast ? whole : name.text, /(?<= )/, font);
  if (lines.length < 2 || !lines.every(fits)) return [{ ...one, hasNoRoom: true }];
  const [upper, lower] = lines;
  return [
    { ...one, names: [{ ...name, text: upper }], tail: "", value: "", isLong: true },
    {
      ...one,
      names: [{ ...name, text: lower, all: true }],
      tail: "",
      value,
      isLong: true,
      continues: true,
    },
  ];
}

// Places as near as possible to `at`, from top to bottom, each with its own height: neighbours that
// overlap are centred together.
function spread(items, top, bottom) {
  const blockOf = list => {
    let high = 0;
    let sum = 0;
    for (const item of list) {
      sum += item.at - high;
      high += item.high;
    }
    return { list, high, start: Math.max(top, Math.min(bottom - high, sum / list.length)) };
  };
  const doOverlap = (above, below) => above.start + above.high > below.start;
  const blocks = [];
  for (const item of [...items].sort((a, b) => a.at - b.at)) {
    blocks.push(blockOf([item]));
    while (blocks.length > 1 && doOverlap(blocks.at(-2), blocks.at(-1))) {
      const [above, below] = blocks.splice(-2);
      blocks.push(blockOf([...above.list, ...below.list]));
    }
  }
  for (const { list, start } of blocks) {
    let y = start;
    for (const item of list) {
      item.place = y;
      y += item.high;
    }
  }
}

// What the labels of a panel say. The point whose value a label says is the last, or the smallest
// target of a frontier, or what was selected (chart::labels has the same rules).
class EndLabels {
  constructor(lines, at, size, figure, view) {
    Object.assign(this, { lines, at, size, figure, view });
    this.curves = lines.filter(line => line.role === "measured");
    this.fonts = labelFonts(size);
    this.high = at.bottom - at.top;
    this.most = size.width * (size.big ? 0.34 : 0.4);
    this.isTight = figure.labels.at === "tightest";
    this.isTuned = figure.labels.at === "selected";
    this.isBest = figure.labels.at === "best";
    const { curves } = this;
    const coincide =
      curves.length <= MOST_COMPARED ? coinciding(curves) : curves.map(line => [line]);
    this.groups = coincide.flatMap(group => this.bySpot(group));
    const ofView = viewOf(figure, view).curves.map(curve => ({ ...curve, role: "measured" }));
    this.name = namer(size.big ? ofView : curves);
    this.nameHere = namer(curves);
    this.calm = curves.filter(line => !line.diverged && line.y[this.spot(line)] !== undefined);
    const points = this.calm.map(line => ({ line, k: this.spot(line) }));
    const { isGeometric, level } = levels(figure, points);
    this.isGeometric = isGeometric;
    this.levelOfPoint = level;
    this.tightest = Math.min(...curves.map(line => this.placeOf(line)));
    this.lowest = this.least(this.atTightest(curves));
    this.calmLowest = this.least(this.atTightest(this.calm));
    this.digits = this.fewestDigits();
    // Where a reader has put all panels into one, the lowest curve is the only reference.
    this.isUsual = view.panels !== "" || figure.views[0].panels === "";
  }

  // How many labels of a height there is room for.
  fits(height) {
    return Math.floor(this.high / height);
  }

  // The ring around what was selected of a curve.
  ring(line) {
    return this.lines.find(one => one.role === "selected" && one.of === line.label);
  }

  // The index of the point whose value a label says.
  spot(line) {
    if (this.isTuned) return Array.from(line.x).indexOf(this.ring(line)?.x[0]);
    return this.isTight || this.isBest ? line.first : line.last;
  }

  // Curves that coincide, apart where their labels are of different points.
  bySpot(group) {
    const spots = unique(group.map(line => this.spot(line)));
    return spots.map(spot => group.filter(line => this.spot(line) === spot));
  }

  value(line) {
    return line.y[this.spot(line)] ?? Infinity;
  }

  placeOf(line) {
    return line.x[this.spot(line)];
  }

  level(line) {
    return this.levelOfPoint({ line, k: this.spot(line) });
  }

  least(list) {
    return list.reduce((a, b) => (a && this.level(a) <= this.level(b) ? a : b), null);
  }

  atTightest(list) {
    return this.isTight ? list.filter(line => this.placeOf(line) === this.tightest) : list;
  }

  // As many digits as show that no value is less than the lowest.
  fewestDigits() {
    if (!this.calmLowest) return 3;
    const lowest = this.value(this.calmLowest);
    const isHonest = (value, digits) =>
      value < lowest || asRead(value, digits) >= asRead(lowest, digits);
    const values = this.calm.map(line => this.value(line));
    return [3, 4, 5].find(digits => values.every(value => isHonest(value, digits))) ?? 6;
  }

  // A curve is compared with those of other algorithms under its settings; without them with all, in
  // either case at the same place across.
  compared(line) {
    const comparable = this.calm.filter(one => this.placeOf(one) === this.placeOf(line));
    const alike = comparable.filter(one => one.settings === line.settings);
    const isAlike = alike.some(one => one.algorithm !== line.algorithm);
    return { other: this.least(isAlike ? alike : comparable), isAlike };
  }

  // That curves which coincide are lowest, or which of them is, or by which mean.
  lowestText(group) {
    const read = line => asRead(this.value(line), this.digits);
    const isSame = group.every(line => read(line) === read(group[0]));
    const isOne = !isSame && group.includes(this.calmLowest);
    const hasLower = this.calm.some(
      line => !group.includes(line) && read(line) < read(this.calmLowest),
    );
    const mean = this.isGeometric && hasLower ? " geometric mean" : "";
    return `, ${isOne ? `${this.nameHere(this.calmLowest)} ` : ""}lowest${mean}`;
  }

  // How many times larger the values of curves that coincide are than another one.
  ratio(group, isNamed) {
    const { figure, isUsual, calmLowest: all } = this;
    const [line] = group;
    const { other, isAlike } = isUsual ? this.compared(line) : { other: all, isAlike: false };
    const calmGroups = this.groups.filter(([first]) => !first.diverged);
    if (!figure.labels.ranked || !all || calmGroups.length < 2) return "";
    if (!(this.level(all) > 0)) {
      const isZero = figure.labels.zero_below > 0 && group.every(one => this.level(one) === 0);
      return isZero ? ", zero to rounding" : "";
    }
    if (!other) return "";
    const ratios = group.map(one => this.level(one) / this.level(other));
    if (group.includes(all) || (ratios[0] === 1 && other === all)) return this.lowestText(group);
    const isOutOfReach = ratios.some(ratio => ratio > MOST_RATIO);
    const isElsewhere = this.placeOf(other) !== this.placeOf(line);
    if (group.includes(other) || isOutOfReach || isElsewhere) return "";
    const than = isAlike ? other.algorithm : this.nameHere(other);
    const named = isUsual && than.length < 20 ? than : "the lowest";
    return `, ${rangeText(ratios, ratioText)}×${isNamed ? ` ${named}` : ""}`;
  }

  // The longest text that has room.
  says(group) {
    const { figure, size, view } = this;
    const [line] = group;
    if (line.diverged && figure.labels.at === "last") {
      return `diverged in ${line.diverged === 1 ? "1 run" : `${line.diverged} runs`}`;
    }
    if (this.isTuned && !this.ring(line)) return "none selected";
    // Where algorithms tie, each is counted, so that the shares exceed a whole.
    if (this.isBest) return `best or tied on ${number(100 * this.value(line), 2)} %`;
    const values = rangeText(
      group.map(one => this.value(one)),
      value => number(value, this.digits),
    );
    const hasPlace = this.isTight || this.isTuned;
    const place = hasPlace
      ? ` at ${axisName(figure, view)} = ${placeText(this.placeOf(line))}`
      : "";
    const counts = ["", "", " (both)"];
    const first = values + place + (counts[group.length] ?? ` (all ${group.length})`);
    const texts = [
      first + this.ratio(group, size.big),
      first + this.ratio(group, false),
      first,
      values + place,
      values,
    ];
    return texts.find(text => widthOf(text, this.fonts.value) <= this.most + 24) ?? "";
  }

  // A label: its names, its value, where it would stand, and the point that it begins at.
  item(group, words) {
    const [line] = group;
    const y = line.py[line.last];
    return {
      names: group.map(one => ({ line: one, text: this.name(one) })),
      value: words ?? "",
      at: y,
      from: [line.x[line.last], y],
    };
  }

  // Of more curves than can be labelled: each algorithm once, and the lowest and the highest curve.
  summary() {
    const { curves, size } = this;
    const algorithms = unique(curves.map(line => line.algorithm));
    const lastValue = line => line.y[line.last];
    const highest = curves.reduce((a, b) => (lastValue(a) >= lastValue(b) ? a : b));
    const ends = unique([this.lowest, highest]);
    const room = this.fits(NAME_HEIGHT) - (size.values ? 5 : 0);
    const each = algorithms.length > 1 && algorithms.length <= room ? algorithms : [];
    const ofAlgorithm = algorithm => {
      const own = curves.filter(line => line.algorithm === algorithm);
      own.sort((a, b) => lastValue(a) - lastValue(b));
      const middle = own[Math.floor(own.length / 2)];
      const text = own.length > 1 ? `${algorithm}, ${own.length} curves` : algorithm;
      return { ...this.item([middle]), names: [{ line: middle, text, all: true }] };
    };
    const ofEnds =
      size.values || !each.length
        ? ends.map(line => this.item([line], size.values ? this.says([line]) : ""))
        : [];
    return [...ofEnds, ...each.map(ofAlgorithm)];
  }

  // The labels before they are shortened, and those of predictions and slopes where there is room.
  chosen() {
    const { curves, groups, lines, size, fonts, most } = this;
    const isFull = size.values && groups.length <= this.fits(SPACED_HEIGHT);
    const chosen =
      isFull || groups.length <= this.fits(NAME_HEIGHT)
        ? groups.map(group => this.item(group, isFull ? this.says(group) : ""))
        : this.summary();
    const predictions = apartFrom(curves, lines, size, text => widthOf(text, fonts.name) <= most);
    const references = lines.filter(line => line.role === "reference");
    const others = [...predictions, ...references.map(line => [line, line.label])];
    const room = this.fits(isFull ? SPACED_HEIGHT : NAME_HEIGHT) - chosen.length;
    for (const [line, text, all] of others.slice(0, Math.max(0, room))) {
      chosen.push({ ...this.item([line]), names: [{ line, text, all }] });
    }
    return chosen;
  }

  // The labels in their places and the room that they take, whether a label had to be cut, and
  // whether all curves end at one place, where labels say nothing.
  placed() {
    const { curves, fonts, most, high, at } = this;
    const hasTwoAlgorithms = new Set(curves.map(line => line.algorithm)).size === 2;
    const all = this.chosen().flatMap(one =>
      shorten(one, fonts.name, most, hasTwoAlgorithms, curves),
    );
    const isCut = all.some(one => one.isLong || one.hasNoRoom);
    const areMany = NAME_HEIGHT * all.length > high;
    const items = all.filter(one => !one.hasNoRoom && !(areMany && one.isLong));
    for (const one of items) one.high = one.value ? VALUE_HEIGHT : NAME_HEIGHT;
    if (items.reduce((sum, one) => sum + one.high, 0) > high) {
      for (const one of items) {
        one.value = "";
        one.high = NAME_HEIGHT;
      }
    }
    spread(items, at.top + 5, at.bottom + 10);
    const ends = curves.map(line => line.py[line.last]);
    const isLevel = curves.length > 1 && Math.max(...ends) - Math.min(...ends) <= 4;
    if (this.size.quiet) return { items: [], fonts, room: 0, isCut: false, isLevel };
    const widthOfItem = one =>
      Math.max(widthOf(textOf(one), fonts.name), one.value ? widthOf(one.value, fonts.value) : 0);
    const widest = Math.max(...items.map(widthOfItem));
    const room = items.length ? Math.ceil(Math.min(most + 24, widest)) : 0;
    return { isLevel, isCut, items, fonts, room };
  }
}

function endLabels(lines, at, size, figure, view) {
  return new EndLabels(lines, at, size, figure, view).placed();
}

// --- drawing ---
// A line from the end of a curve to its label. From a curve that ends early it is dotted, so that it
// does not look like a curve.
function leader(x, y, fromX, fromY) {
  const isFar = x - fromX > 24;
  if (!isFar && !(Math.abs(y - fromY) > 3)) return "";
  const start = isFar ? fromX + 5 : fromX + 3;
  const end = isFar ? x - 13 : Math.max(fromX + 3, x - 13);
  const line = `d="M${fixed(start)} ${fixed(fromY)}L${fixed(end)} ${fixed(y)}" fill="none" stroke="#6c757f"`;
  return isFar
    ? `<path class="lead far" ${line} stroke-width="1" stroke-dasharray="1 4" opacity="0.8"/>`
    : `<path class="lead" ${line} stroke-width="0.7" opacity="0.7"/>`;
}

// A name has the colour of its curve, darker where text needs that.
function drawName({ line, text, all }) {
  const key = all ? `data-group="${esc(text)}"` : `data-label="${esc(line.label)}"`;
  const isPlain = line.family < 0 || line.color < 0 || text === "both";
  const color = isPlain ? "" : ` data-color="${colorName(line.color)}" fill="${ink(line.color)}"`;
  return `<tspan ${key}${color}>${esc(text)}</tspan>`;
}

function drawLabels({ items, room }, at, size) {
  const x = at.left + at.wide + 10;
  const out = [];
  for (const { names, tail, value, place: y, from, continues } of items) {
    const fromX = continues ? x : at.x(from[0]);
    const fromY = continues ? y : from[1];
    out.push(leader(x, y, fromX, fromY));
    const { color } = names[0].line;
    if (!continues) {
      const dash = `<path d="M${fixed(x - 10)} ${fixed(y)}h7" fill="none" stroke="${rgb(color)}" stroke-width="3"/>`;
      out.push(`<g data-color="${colorName(color)}">${dash}</g>`);
    }
    const words = names.map(drawName).join(" and ") + esc(tail ?? "");
    out.push(
      `<text class="name" x="${fixed(x)}" y="${fixed(y + 4)}" font-size="${size.big ? 13 : 11.5}" font-weight="640" fill="#59616b">${words}</text>`,
    );
    if (value) {
      out.push(
        `<text class="value" x="${fixed(x)}" y="${fixed(y + 19)}" font-size="11.5" fill="#59616b">${esc(value)}</text>`,
      );
    }
  }
  return room ? `<g class="labels">${out.join("")}</g>` : "";
}
