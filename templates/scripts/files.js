// What a reader takes from a figure: the numbers as a table or as CSV, the view as SVG, and an
// element for another page.

// --- the numbers as a table ---
const TABLE_ROWS = 25;

// A table of each panel: the curves at so many values of x at most, evenly chosen.
function numberTables(plot) {
  return plot.drawn.map((one, i) => numberTable(plot, one.lines, i));
}

function numberTable(plot, lines, i) {
  const { figure, panels, reader } = plot;
  const panelTitle = panels[i].title;
  const isNumbered = line => line.x.length && !["reference", "selected"].includes(line.role);
  const own = lines.filter(isNumbered);
  const stops = reader.stops(i);
  const step = Math.max(1, (stops.length - 1) / (TABLE_ROWS - 1));
  const count = Math.min(TABLE_ROWS, stops.length);
  const rows = unique(Array.from({ length: count }, (_, k) => stops[Math.round(k * step)]));
  const isPart = rows.length < stops.length;
  const title = panelTitle ? `${panelTitle}: ` : "";
  const part = isPart ? `, ${rows.length} of ${stops.length} rows; the CSV has all` : "";
  const head = own.map(line => `<th scope="col">${esc(line.label)}</th>`).join("");
  const body = rows.map(x => {
    const found = new Map(reader.rows(i, x).map(({ line, k }) => [line, k]));
    const cells = own.map(line => numberCell(line, found.get(line))).join("");
    return `<tr><th scope="row">${across(x)}</th>${cells}</tr>`;
  });
  const node = el("div", {
    class: "scroll",
    tabindex: 0,
    role: "region",
    "aria-label": `Table: ${figure.title}, ${panelTitle || "numbers"}`,
  });
  const caption = `<caption>${indexed(`${title}${figure.y}${part}`)}</caption>`;
  const axis = indexed(axisName(figure, plot.view));
  const columns = `<thead><tr><th scope="col">${axis}</th>${head}</tr></thead>`;
  node.innerHTML = `<table>${caption}${columns}<tbody>${body.join("")}</tbody></table>`;
  return node;
}

// The number of a curve at its point k, with its band; nothing where it has no point.
function numberCell(line, k) {
  if (k === undefined) return "<td></td>";
  const hasBand = line.low && !Number.isNaN(line.low[k]);
  const band = hasBand ? ` [${number(line.low[k])}, ${number(line.high[k])}]` : "";
  return `<td>${number(line.y[k])}${band}</td>`;
}

// --- an element of another page ---
// This figure alone.
function embeddedFrame(figure) {
  const url = new URL(location.href);
  url.searchParams.set("embed", figure.id);
  return `<iframe src="${esc(url.href)}" title="${esc(figure.title)}" width="800" height="620" style="border: 0"></iframe>`;
}

// --- SVG ---
// The room above the panels for the title of the figure.
const SVG_TOP = 46;
const SVG_FACE = "sans-serif";

// The view as a file of its own: as on light paper, with plain colours.
function svgFile(plot) {
  const { figure } = plot;
  const origin = plot.grid.getBoundingClientRect();
  const parts = plot.drawn.map((one, i) => svgPanel(plot, one, i, origin));
  const wide = Math.ceil(plot.wide);
  const begin = Math.max(...parts.map(part => part.bottom)) + 14;
  const { legend, y } = svgLegend(plot, wide, begin);
  // What the figure answers and where it is from.
  const from = [
    data.question,
    data.origin && `Source: ${data.origin}`,
    data.experiment && `exactfed, ${data.experiment}`,
  ].filter(Boolean);
  const lines = from.map((words, i) => {
    const text = esc(cut(words, `11px ${SVG_FACE}`, wide - 8));
    return `<text class="from" x="4" y="${fixed(y + 34 + 15 * i)}" font-size="11" fill="#59616b">${text}</text>`;
  });
  const high = Math.ceil(y + 24 + 15 * from.length);
  const title = esc(cut(figure.title, `640 14px ${SVG_FACE}`, wide - 8));
  const panels = parts.map(part => part.svg).join("\n");
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${wide} ${high}" width="${wide}" height="${high}" font-family="${SVG_FACE}"><title>${esc(figure.title)}</title>` +
    `<rect class="paper" width="${wide}" height="${high}" fill="#ffffff"/><text x="4" y="15" font-size="14" font-weight="640" fill="#15181c">${title}</text><text x="4" y="33" font-size="12" fill="#59616b">${esc(plot.what.textContent)}</text>` +
    `${panels}<g class="legend">${legend}</g>${lines.join("")}</svg>\n`
  );
}

// A panel where it is on the page, without its cursor, and with its title.
function svgPanel(plot, { svg, size }, i, origin) {
  const box = svg.getBoundingClientRect();
  const x = box.left - origin.left;
  const y = box.top - origin.top + SVG_TOP;
  const drawing = svg.cloneNode(true);
  drawing.querySelector(".cursor").remove();
  const { lines, size: letters } = fitted(plot.panels[i].title, size.width, SVG_FACE, PANEL_TITLE);
  const inTwo = lines.map(
    (words, k) => `<tspan x="${fixed(x)}" y="${fixed(y - 14 + 10 * k)}">${esc(words)}</tspan>`,
  );
  const words = lines.length < 2 ? esc(lines[0]) : inTwo.join("");
  const title =
    plot.panels.length > 1
      ? `<text x="${fixed(x)}" y="${fixed(y - 7)}" font-size="${fixed(letters)}" font-weight="640" fill="#15181c">${words}</text>`
      : "";
  const place = `translate(${fixed(x)},${fixed(y)})`;
  return {
    bottom: y + size.height,
    svg: `${title}<g transform="${place}">${drawing.innerHTML}</g>`,
  };
}

// The entries of the list of curves that are shown, in rows, and where the last row is.
function svgLegend(plot, wide, begin) {
  const entries = [];
  let x = 4;
  let y = begin;
  for (const key of plot.curves.keys.filter(one => !plot.isOff(one))) {
    const long = SAMPLE + 24 + widthOf(key.label, `12px ${SVG_FACE}`);
    if (x > 4 && x + long > wide) {
      x = 4;
      y += 18;
    }
    const name = `<text x="${SAMPLE + 6}" y="11" font-size="12" fill="#15181c">${esc(key.label)}</text>`;
    entries.push(
      `<g class="key" data-label="${esc(key.label)}" transform="translate(${fixed(x)},${fixed(y)})">${sampleOf(key)}${name}</g>`,
    );
    x += long;
  }
  return { legend: entries.join(""), y };
}

// --- CSV ---
const CSV_HEAD = ["panel", "curve", "role"];

// What a spreadsheet would take for a formula is made a text, and what has a comma is quoted.
function csvCell(value) {
  const text = String(value);
  const isFormula = /^[-=+@\t\r']/.test(text) && Number.isNaN(Number(text));
  const inert = isFormula ? `'${text}` : text;
  return /[",\n\r]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
}

function csvNumber(value) {
  return value === undefined || Number.isNaN(value) ? "" : String(Number(value.toPrecision(8)));
}

function csvFile(plot) {
  const { view } = plot;
  const rows = [[...CSV_HEAD, view.x, "y", "low", "high", "n", "band"]];
  for (const panel of plot.panels) {
    for (const line of panel.lines) {
      if (!plot.isVisible(line)) continue;
      rows.push(...csvRowsOfPoints(panel, line, view));
      if (view.band === "runs") rows.push(...csvRowsOfRuns(panel, line, plot.figure));
    }
  }
  const lines = rows.map(row => row.map(csvCell).join(","));
  return `${lines.join("\n")}\n`;
}

function csvRowsOfPoints(panel, line, view) {
  const isMeasured = line.role === "measured";
  return Array.from(line.x, (x, i) => {
    // A measured point without runs is a mean that is known exactly.
    const role = isMeasured && line.n && !line.n[i] ? "exact" : line.role;
    const numbers = [x, line.y[i], line.low?.[i], line.high?.[i]].map(csvNumber);
    const band = isMeasured ? view.band : "";
    return [panel.title, line.label, role, ...numbers, line.n?.[i] || "", band];
  });
}

function csvRowsOfRuns(panel, line, figure) {
  const unit = figure.unit === "instance" ? "instance" : "replicate";
  return line.runs.flatMap((run, r) =>
    Array.from(run.x, (x, i) => {
      const numbers = [x, run.y[i]].map(csvNumber);
      return [panel.title, line.label, `${unit} ${r}`, ...numbers, "", "", 1, ""];
    }),
  );
}
