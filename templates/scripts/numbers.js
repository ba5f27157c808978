// Numbers and names as text.
const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

function esc(text) {
  return String(text).replace(/[&<>"]/g, character => ENTITIES[character]);
}

// Text as HTML, with the index of a symbol (γ_0) as the rest of a page writes it.
function indexed(text) {
  const symbol = /(^|[^\p{L}\d_])(\p{L}\p{M}*)_([\p{L}\d]{1,2})(?![\p{L}\d_])/gu;
  return esc(text).replace(symbol, "$1$2<sub>$3</sub>");
}

// A power of ten.
function raised(exponent) {
  if (exponent === 0) return "1";
  if (exponent === 1) return "10";
  const digits = [...String(exponent)].map(digit => (digit === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]));
  return `10${digits.join("")}`;
}

// Digits in groups of three.
function thousands(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, " ");
}

// As exactfed_core::words::readable writes it.
function readable(value, digits = 3) {
  if (Number.isNaN(value) || value === 0) return value === 0 ? "0" : "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const sign = value < 0 ? "−" : "";
  const [mantissa, power] = Math.abs(value)
    .toExponential(digits - 1)
    .split("e");
  const exponent = Number(power);
  const rounded = Number(`${mantissa}e${exponent}`);
  if (exponent >= 3 && exponent <= 5) return sign + thousands(Math.trunc(rounded));
  if (exponent >= -2 && exponent <= 2) {
    return sign + rounded.toFixed(Math.max(0, digits - 1 - exponent));
  }
  return `${sign}${mantissa}·${raised(exponent)}`;
}

function isCount(value) {
  return Number.isInteger(value) && value >= 0 && value < 1e6;
}

// As exactfed_core::words::number writes it: counts with all of their digits.
function number(value, digits = 3) {
  return isCount(value) ? thousands(value) : readable(value, digits);
}

// The number that a reader takes from what `number` writes.
function asRead(value, digits) {
  return isCount(value) ? value : Number(value.toExponential(digits - 1));
}

// A value along the x axis.
function across(value) {
  const isWhole = Number.isInteger(value) && Math.abs(value) < 1e7;
  return isWhole ? thousands(value) : readable(value, 4);
}

// A target with at most three digits, as manifests write it.
function placeText(value) {
  if (Number.isInteger(value) || value < 1e-4 || value >= 1e6) return number(value);
  return String(Number(value.toPrecision(3)));
}

// A number at a tick of an axis.
function plain(value) {
  const units = [
    [1e9, "G"],
    [1e6, "M"],
    [1e4, "k"],
  ];
  const unit = units.find(([size]) => Math.abs(value) >= size);
  if (unit) {
    // Thousands are written as such from ten thousand on.
    const [size, letter] = unit;
    return Number((value / (letter === "k" ? 1e3 : size)).toFixed(4)) + letter;
  }
  const isTiny = Math.abs(value) < 1e-3 && value !== 0;
  const rounded = Number(isTiny ? value.toPrecision(3) : value.toFixed(4));
  return String(rounded).replace("-", "−");
}

function ratioText(ratio) {
  return readable(ratio, ratio < 1.1 ? 3 : 2);
}

// Some numbers as the text of the smallest and that of the largest, or one text where these are the
// same.
function rangeText(list, text) {
  const low = text(Math.min(...list));
  const high = text(Math.max(...list));
  return low === high ? low : `${low} to ${high}`;
}

// Rounded to hundredths of a pixel.
function fixed(pixels) {
  return Math.round(pixels * 100) / 100;
}

function clamp(value, low, high) {
  return Math.max(low, Math.min(high, value));
}
