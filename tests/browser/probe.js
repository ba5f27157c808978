// What a figure shows: what the tests compare. A panel of the page and one of a static drawing
// have the same parts; points are in the pixels of the panel's plot area.
const round = v => Math.round(v * 100) / 100;
const pairs = text => text.trim().split(/\s+/).map(p => p.split(",").map(round));
// What draws curves and bands. Paths of a page are marks, those of a static drawing are curves.
const PAGE_SHAPES = { line: "polyline:not(.run)", band: "polygon.band" };
const DRAWING_SHAPES = { line: "path[stroke]", band: 'path[opacity="0.16"]' };
// The points of a shape of the page, or of the lines of a path of a static drawing, whose points
// after the first are relative.
function shapes(node) {
  if (node.hasAttribute("points")) return [pairs(node.getAttribute("points"))];
  return node.getAttribute("d").split("M").slice(1).map(line => {
    const steps = line.match(/-?\d+/g).map(Number), points = [];
    for (let i = 0, x = 0, y = 0; i < steps.length; i += 2) points.push([(x += steps[i]), (y += steps[i + 1])]);
    return points;
  });
}
function panelOf(node, title, shapesOf, place = point => point, scale = 1) {
  const texts = [...node.querySelectorAll(".axes text")].map(t => ({ words: t.textContent.trim(), x: round(t.getAttribute("x")), y: round(t.getAttribute("y")) }));
  const series = [...node.querySelectorAll(".series")].map(s => {
    const of = query => [...s.querySelectorAll(query)].flatMap(shapes).map(points => points.map(place));
    const first = s.querySelector(`${shapesOf.line}, circle:not(.run)`);
    return { label: s.dataset.label, role: ["measured", "theory", "reference"].find(role => s.classList.contains(role)), color: s.dataset.color,
      dash: (s.getAttribute("stroke-dasharray") ?? "").split(/[ ,]+/).filter(Boolean).map(length => scale * length),
      lines: of(shapesOf.line), runs: s.querySelectorAll(".run").length, bands: of(shapesOf.band).length, edges: of(shapesOf.band),
      wide: first ? Number(first.getAttribute("stroke-width")) : null, ink: first && getComputedStyle(first).stroke };
  });
  const labels = [...node.querySelectorAll(".labels [data-label]")].map(t => t.dataset.label);
  const words = [...node.querySelectorAll(".labels text")].map(t => t.textContent);
  return { title, area: (node.dataset.area ?? "").split(" ").map(Number), texts, series, labels, words };
}
function picture(id) {
  const chart = document.querySelector(`#${id} .chart`), cells = [...chart.querySelectorAll(".cell")];
  const panels = cells.map(cell => panelOf(cell.querySelector(".panel"), cell.querySelector(".title").textContent, PAGE_SHAPES));
  return { panels, by: chart.dataset.by, large: cells.findIndex(cell => cell.classList.contains("large")) };
}
// The same of the text of a static drawing.
function drawing(text) {
  const page = new DOMParser().parseFromString(text, "image/svg+xml");
  const title = panel => [...panel.querySelectorAll("text")].find(t => !t.closest(".axes, .labels, .series"))?.textContent.trim() ?? "";
  // Plotters' pixels are finer than those of the drawing.
  const place = panel => {
    const node = panel.querySelector("g[transform]");
    if (!node) return [];
    const [, x, y, scale] = /translate\((.*),(.*)\) scale\((.*)\)/.exec(node.getAttribute("transform")).map(Number);
    return [point => [x + scale * point[0], y + scale * point[1]], scale];
  };
  return { panels: [...page.querySelectorAll(".panel")].map(panel => panelOf(panel, title(panel), DRAWING_SHAPES, ...place(panel))) };
}
