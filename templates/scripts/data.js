// What a report holds for its figures: names and styles as the analysis has assigned them, and their
// numbers as two blocks of bytes.
const source = document.getElementById("data");
const data = { figures: [], maps: [], ...(source && JSON.parse(source.textContent)) };
const blocks = source
  ? [
      new Float32Array(decoded(data.numbers.singles)),
      new Float64Array(decoded(data.numbers.doubles)),
    ]
  : [];

function decoded(base64) {
  return Uint8Array.from(atob(base64), character => character.charCodeAt(0)).buffer;
}

// The numbers of a slice: which block it is of, where it begins, and how long it is.
function values([block, first, length]) {
  return blocks[block].subarray(first, first + length);
}

// Replicates of one length that follow one another are written as the first of them and their count.
for (const cell of data.figures.flatMap(figure => figure.cells)) {
  const [first, count] = cell.runs;
  if (typeof count === "number") {
    const [block, begin, length] = first;
    cell.runs = Array.from({ length: count }, (_, i) => [block, begin + i * length, length]);
  }
}
for (const curve of data.figures.flatMap(figure => figure.views).flatMap(view => view.curves)) {
  curve.label ??= [curve.algorithm, curve.settings].filter(Boolean).join(", ");
}

function unique(list) {
  return [...new Set(list)];
}

// --- colours, dashes and markers ---
// Attributes have the colours of light paper, so that a file needs no style sheet; figure.css
// replaces them on the page.
const NO_COLOR = [60, 60, 60];

function css(parts) {
  return `rgb(${parts.join(",")})`;
}

function rgb(color) {
  const { palette } = data.styles;
  return css(color < 0 ? NO_COLOR : palette[color % palette.length]);
}

// The colour of a text that names a curve: darker than the curve, where reading needs that.
function ink(color) {
  const { inks } = data.styles;
  return css(inks[color % inks.length]);
}

// What figure.css knows a colour by.
function colorName(color) {
  return color < 0 ? "none" : color % data.styles.palette.length;
}

function pattern(line) {
  const { dashes, thin_dashes } = data.styles;
  return line.role === "measured"
    ? dashes[line.dash % dashes.length]
    : thin_dashes[line.dash % thin_dashes.length];
}

function markOf(line) {
  const { markers } = data.styles;
  return markers[line.mark % markers.length];
}

// --- names of bands ---
const SHORT_BANDS = {
  none: "no band",
  std: "± sd",
  sem: "± se",
  ci95: "95 % interval",
  quantiles: "10–90 %",
  given: "95 % interval",
};
const BANDS = {
  none: "no band",
  std: "± standard deviation",
  sem: "± standard error",
  ci95: "95 % interval of the mean",
  quantiles: "10 % to 90 % quantile",
  given: "95 % interval of the mean",
};
// Without a band: each number of the samples by itself.
const RUNS = { run: "every run", instance: "every instance" };
const LONG_RUNS = {
  run: "every replicate",
  instance: "the mean of the runs on every instance",
};

function shortBand(figure, band) {
  return band === "runs" ? RUNS[figure.unit] : SHORT_BANDS[band];
}

function longBand(figure, band) {
  return band === "runs" ? LONG_RUNS[figure.unit] : BANDS[band];
}
