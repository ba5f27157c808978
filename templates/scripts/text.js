// Texts of a width: how wide they are, and how they are made to fit.
const ruler = document.createElement("canvas").getContext("2d");
const widths = new Map();

function widthOf(text, font) {
  const key = `${font}|${text}`;
  if (!widths.has(key)) {
    ruler.font = font;
    widths.set(key, ruler.measureText(text).width);
  }
  return widths.get(key);
}

// A text that is cut where it has no room.
function cut(text, font, room) {
  if (widthOf(text, font) <= room) return text;
  if (room < 12) return "";
  let end = text.length - 1;
  while (end > 3 && widthOf(`${text.slice(0, end)}…`, font) > room) end--;
  return `${text.slice(0, end).trimEnd()}…`;
}

// How a text is made to fit: by smaller letters, then by a second line, which begins after a
// separator (chart::FittedText has the same rules).
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
  const both = count =>
    [parts.slice(0, count), parts.slice(count)].map(list => list.join("").trim());
  const longest = count => Math.max(...both(count).map(line => widthOf(line, font)));
  const counts = parts.slice(1).map((_, i) => i + 1);
  return both(counts.reduce((best, count) => (longest(count) < longest(best) ? count : best)));
}
