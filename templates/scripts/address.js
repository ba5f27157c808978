// The address keeps what differs from the manifest's view: #figure.key=value&…; and the figures of
// the page begin with what it says.

// By class too, since a heading of the page may have the id of a figure.
function sectionOf(id) {
  return [...document.querySelectorAll(".plot")].find(node => node.id === id);
}

// Writes the views of all figures into the address.
function remember() {
  const state = new URLSearchParams();
  for (const plot of plots) addView(state, plot);
  const text = state.toString();
  history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
}

function addView(state, { figure, view }) {
  const usual = defaultView(figure);
  const add = (name, value) => state.append(`${figure.id}.${name}`, value);
  for (const [key, name] of Object.entries(SHORT)) {
    if (view[key] !== usual[key]) add(name, view[key]);
  }
  // A large panel is one of the panels that the manifest asks for.
  const usualLarge = view.panels === usual.panels ? usual.large : null;
  if (view.large !== usualLarge) add("large", view.large === null ? "none" : view.large + 1);
  if (view.zoom) add("zoom", view.zoom.map(shortened).join(".."));
  if (!view.theory) add("theory", "off");
  // A curve by its name here; a cell of a curve that is partly shown, by its own.
  const { curves, of } = viewOf(figure, view);
  curves.forEach((curve, index) => {
    const places = of.flatMap((curveOfCell, place) => (curveOfCell === index ? [place] : []));
    const hidden = places.filter(place => view.hidden.includes(place));
    const isWhole = hidden.length === places.length;
    const names = isWhole ? [curve.label] : hidden.map(place => figure.cells[place].name);
    for (const name of names) add("hide", name);
  });
  for (const kind of view.kinds) add("hide-theory", kind);
}

// A figure's view from the address; what is not there is passed over.
function viewFrom(state, { figure, selects }) {
  const view = defaultView(figure);
  const get = name => state.get(`${figure.id}.${name}`);
  for (const [key, name] of Object.entries(SHORT)) {
    const wanted = get(name);
    const options = [...(selects[key]?.options ?? [])].filter(option => !option.disabled);
    if (wanted !== null && options.some(option => option.value === wanted)) view[key] = wanted;
  }
  if (view.panels !== figure.views[0].panels) view.large = null;
  const large = get("large");
  if (large !== null) {
    const isPanel = Number.isInteger(Number(large)) && large >= 1;
    view.large = isPanel ? large - 1 : null;
  }
  const zoom = (get("zoom") ?? "").split("..").map(Number);
  const isPlaced = value => Number.isFinite(positionOf(view.scaleX, value));
  const isStretch = zoom.length === 2 && zoom[0] < zoom[1] && zoom.every(isPlaced);
  if (get("zoom") && isStretch) view.zoom = zoom;
  view.theory = get("theory") !== "off";
  const { curves, of } = viewOf(figure, view);
  const names = state.getAll(`${figure.id}.hide`);
  view.hidden = figure.cells.flatMap((cell, i) => {
    const isHidden = names.includes(curves[of[i]].label) || names.includes(cell.name);
    return isHidden ? [i] : [];
  });
  view.kinds = state.getAll(`${figure.id}.hide-theory`);
  return view;
}

// Draws all figures, as the address says.
function recall() {
  const start = performance.now();
  const hasState = location.hash.includes("=");
  const state = new URLSearchParams(hasState ? location.hash.slice(1) : "");
  for (const plot of plots) {
    if (hasState) plot.view = viewFrom(state, plot);
    plot.draw();
  }
  const isNamed = ({ figure }) => [...state.keys()].some(key => key.startsWith(`${figure.id}.`));
  plots.find(isNamed)?.node.scrollIntoView();
  performance.measure("exactfed-draw", { start, end: performance.now() });
}

// An embedded figure stands alone.
const alone = sectionOf(new URLSearchParams(location.search).get("embed"));
if (alone) {
  const address = `${location.pathname}#${alone.id}`;
  const link = el("a", { href: address, target: "_top" }, document.title);
  document.body.replaceChildren(el("main", { id: "main", class: "alone" }, alone));
  document.body.append(el("p", { class: "from" }, link));
}

const plots = data.figures
  .filter(figure => !alone || figure.id === alone.id)
  .map(figure => new Plot(figure, sectionOf(figure.id)));
addEventListener("hashchange", recall);
recall();
