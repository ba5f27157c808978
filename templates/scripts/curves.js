// The list of curves below a figure, which hides and shows them.
// Length of the sample of a line.
const SAMPLE = 40;
// Longer lists fold, and have an entry for each algorithm.
const MOST_OPEN = 10;
// Entries of more algorithms fold too: one line of them stays open.
const MOST_GROUPS_OPEN = 8;

// A line with its marker, as beside its name.
function sampleOf(key) {
  const isMeasured = key.role === "measured";
  const color = rgb(key.color);
  const hasMark = !(key.role === "reference" || key.color < 0 || key.flat);
  const corners = radius => outline(markOf(key), radius, SAMPLE / 2, 7);
  const mark = hasMark
    ? `<polygon class="mark" points="${corners(isMeasured ? 4 : 3.4)}" fill="${color}"/>`
    : "";
  const hole =
    hasMark && key.role === "theory"
      ? `<polygon class="hole" points="${corners(2)}" fill="#ffffff"/>`
      : "";
  return `<line x1="0" y1="7" x2="${SAMPLE}" y2="7" stroke="${color}" stroke-width="${isMeasured ? 2 : 1.4}" stroke-dasharray="${pattern(key)}"/>${mark}${hole}`;
}

class CurveList {
  constructor(plot) {
    this.plot = plot;
    this.node = el("div", { class: "curves" });
    this.keys = [];
    this.groups = [];
  }

  // Shows these entries. They are made anew only where they differ, so that the focus stays.
  show(keys) {
    this.keys = keys;
    const styleOf = ({ label, color, dash, mark, places }) =>
      [label, color, dash, mark, places].join();
    const styles = keys.map(styleOf).join("\n");
    if (this.styles !== styles) this.rebuild();
    this.styles = styles;
    const press = (query, entries) => {
      this.node.querySelectorAll(query).forEach((button, i) => {
        button.setAttribute("aria-pressed", this.pressed(entries[i]));
      });
    };
    press(".legend:not(.groups) button", this.keys);
    press(".groups button", this.groups);
  }

  rebuild() {
    const { keys } = this;
    const own = keys.filter(key => key.role === "measured");
    const algorithms = unique(own.map(key => key.algorithm));
    const hasGroups = own.length > MOST_OPEN && algorithms.length > 1;
    this.groups = hasGroups ? algorithms.map(algorithm => this.groupOf(algorithm, own)) : [];
    const list = this.listOf(keys, "legend", "Curves: click hides, double click shows only this");
    const groupsName = "Algorithms: click hides, double click shows only this";
    const groups = hasGroups ? [this.listOf(this.groups, "legend groups", groupsName)] : [];
    const open = !!this.node.querySelector("details[open]");
    const doGroupsFold = algorithms.length > MOST_GROUPS_OPEN;
    const above = doGroupsFold ? [] : groups;
    const inside = doGroupsFold ? groups : [];
    const summary = el("summary", {}, `All ${keys.length} curves: hide or show`);
    const all = keys.length > MOST_OPEN ? el("details", { open }, summary, ...inside, list) : list;
    this.node.replaceChildren(...above, all);
  }

  // All curves of an algorithm as one entry.
  groupOf(algorithm, own) {
    const curves = own.filter(key => key.algorithm === algorithm);
    const [first] = curves;
    return {
      ...first,
      label: `${algorithm}, ${curves.length} curves`,
      // Six colours are of one family, from strong to pale.
      color: first.family * 6,
      dash: first.dash,
      places: curves.flatMap(key => key.places),
    };
  }

  listOf(keys, name, label) {
    const items = keys.map(key => el("li", {}, this.entry(key)));
    return el("ul", { class: name, "aria-label": label }, ...items);
  }

  // Of a curve that has a hidden cell and one that is shown: mixed.
  pressed(key) {
    if (this.plot.isOff(key)) return "false";
    const { hidden } = this.plot.view;
    const hasHidden = key.role === "measured" && key.places.some(place => hidden.includes(place));
    return hasHidden ? "mixed" : "true";
  }

  entry(key) {
    const button = el("button", {
      type: "button",
      "data-label": key.label,
      title: "click: hide or show; double click or Shift+Enter: only this",
    });
    button.innerHTML = `<svg width="${SAMPLE}" height="14" aria-hidden="true" data-color="${colorName(key.color)}">${sampleOf(key)}</svg> ${esc(key.label)}`;
    button.addEventListener("click", event => {
      if (event.shiftKey) this.isolate(key, this.plot.view);
      // The second click of a double click is none of its own.
      else if (event.detail < 2) this.toggle(key);
    });
    button.addEventListener("dblclick", () => this.isolate(key, this.before));
    return button;
  }

  toggle(key) {
    const { hidden, kinds } = this.plot.view;
    // What was hidden before the first click of a double click.
    this.before = { hidden, kinds };
    if (key.role === "measured") {
      const others = hidden.filter(place => !key.places.includes(place));
      const isShown = this.pressed(key) === "true";
      this.plot.set({ hidden: isShown ? [...others, ...key.places] : others });
    } else {
      const own = [key.label, this.plot.kind(key)];
      const isOff = this.plot.isOff(key);
      const left = isOff ? kinds.filter(kind => !own.includes(kind)) : [...kinds, key.label];
      this.plot.set({ kinds: left, theory: true });
    }
  }

  // Only this curve; if it is the only one, all of them again.
  isolate(key, { hidden, kinds }) {
    const areSame = (a, b) => a.length === b.length && a.every(value => b.includes(value));
    if (key.role === "measured") {
      const places = this.plot.figure.cells.map((_, place) => place);
      const others = places.filter(place => !key.places.includes(place));
      this.plot.set({ hidden: areSame(others, hidden) ? [] : others });
    } else {
      const isOther = one => one.role !== "measured" && one.label !== key.label;
      const others = this.keys.filter(isOther).map(one => one.label);
      this.plot.set({ kinds: areSame(others, kinds) ? [] : others });
    }
  }
}
