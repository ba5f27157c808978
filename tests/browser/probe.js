// What a figure shows, in pixels of its panels: what the tests compare. Plotters
// draws at four times the size.
const round = v => Math.round(v * 100) / 100;
const pairs = (text, by) => text.trim().split(/\s+/).map(p => p.split(",").map(v => round(v * by)));
function picture(id) {
  const chart = document.querySelector(`#${id} .chart`), svg = chart.querySelector("svg"), view = svg.viewBox.baseVal;
  const panels = [...svg.querySelectorAll(".panel")].map(panel => {
    const inner = panel.querySelector(":scope > g"), by = inner.getAttribute("transform").includes("scale") ? 0.25 : 1;
    const texts = [...inner.querySelectorAll(".axes text")].map(t => ({ words: t.textContent.trim(),
      x: round(t.getAttribute("x") * by), y: round(t.getAttribute("y") * by), upright: !t.getAttribute("transform") }));
    const series = [...inner.querySelectorAll(".series")].map(s => {
      const of = (tag, more = "") => [...s.querySelectorAll(tag + more)].map(n => pairs(n.getAttribute("points"), by));
      const first = s.querySelector("polyline, circle");
      return { label: s.dataset.label, role: s.classList[1], color: s.dataset.color,
        dash: s.getAttribute("stroke-dasharray").split(" ").filter(Boolean).map(v => v * by),
        lines: of("polyline:not(.run)"), runs: s.querySelectorAll(".run").length,
        bands: of('polygon[opacity="0.16"]'), marks: of('polygon:not([opacity="0.16"])').map(p => p[0]),
        ink: first && getComputedStyle(first).stroke, shown: s.getAttribute("visibility") !== "hidden" };
    });
    return { title: panel.querySelector("text").textContent.trim(), texts, series };
  });
  return { panels, by: chart.dataset.by, box: [view.x, view.y, view.width, view.height] };
}
