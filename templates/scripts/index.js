// Words, verdicts (or classes) and choices filter cards, claims and errata; the address keeps what is
// chosen.
class Finder {
  constructor(node, items) {
    Object.assign(this, { node, items });
    this.words = node.querySelector("input");
    this.status = node.querySelector("[role=status]");
    this.clear = node.querySelector(".clear");
    this.verdicts = [...node.querySelectorAll("[aria-pressed]")];
    this.selects = [...node.querySelectorAll("select")];
    // What the buttons choose: verdicts, or classes of errata.
    this.kind = this.verdicts[0]?.name ?? "verdict";
    const textOfItem = item => `${item.textContent} ${item.dataset.words}`.toLowerCase();
    this.texts = new Map(items.map(item => [item, textOfItem(item)]));
    node.hidden = false;
    this.listen();
    this.restore();
  }

  listen() {
    this.words.addEventListener("input", () => this.keep());
    for (const select of this.selects) select.addEventListener("change", () => this.keep());
    for (const button of this.verdicts) {
      button.addEventListener("click", () => {
        button.ariaPressed = String(!isPressed(button));
        this.keep();
      });
    }
    this.clear.addEventListener("click", () => {
      this.words.value = "";
      for (const button of this.verdicts) button.ariaPressed = "false";
      for (const select of this.selects) select.value = "";
      this.keep();
      this.words.focus();
    });
    addEventListener("hashchange", () => this.restore());
  }

  // Shows what is chosen.
  apply() {
    const wanted = this.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const pressed = this.verdicts.filter(isPressed).map(button => button.value);
    const chosen = this.selects.filter(select => select.value);
    for (const item of this.items) {
      const text = this.texts.get(item);
      const isShown =
        wanted.every(word => text.includes(word)) &&
        (!pressed.length || pressed.some(value => hasValue(item, this.kind, value))) &&
        chosen.every(select => hasValue(item, select.name, select.value));
      item.hidden = !isShown;
    }
    for (const group of document.querySelectorAll("[data-group]")) {
      const count = group.querySelectorAll("[data-words]:not([hidden])").length;
      const number = group.querySelector("h2 small");
      group.hidden = !count;
      if (number) number.textContent = count;
    }
    const shown = this.items.filter(item => !item.hidden).length;
    const hasChoice = wanted.length || pressed.length || chosen.length;
    const words = `${shown} of ${this.items.length} ${this.node.dataset.several}`;
    this.clear.hidden = !hasChoice;
    document.querySelector(".none").hidden = shown > 0;
    this.status.textContent = hasChoice ? words : "";
    return { pressed, chosen };
  }

  // Shows what is chosen, and keeps it in the address.
  keep() {
    const { pressed, chosen } = this.apply();
    const state = new URLSearchParams();
    const words = this.words.value.trim();
    if (words) state.set("q", words);
    for (const verdict of pressed) state.append(this.kind, verdict);
    for (const select of chosen) state.set(select.name, select.value);
    const without = location.pathname + location.search;
    history.replaceState(null, "", this.clear.hidden ? without : `#${state}`);
  }

  // Chooses what the address says. A fragment that names no filter is a place on the page.
  restore() {
    const state = new URLSearchParams(location.hash.slice(1));
    const names = ["q", this.kind, ...this.selects.map(select => select.name)];
    if (location.hash && !names.some(name => state.has(name))) return;
    this.words.value = state.get("q") ?? "";
    const pressed = state.getAll(this.kind);
    for (const button of this.verdicts) button.ariaPressed = String(pressed.includes(button.value));
    for (const select of this.selects) {
      select.value = state.get(select.name) ?? "";
      if (select.selectedIndex < 0) select.value = "";
    }
    this.apply();
  }
}

function isPressed(button) {
  return button.ariaPressed === "true";
}

// Whether a list of an item, as of the sources of a claim, has a value.
function hasValue(item, name, value) {
  return item.dataset[name].split(" ").includes(value);
}

const finder = document.querySelector(".finder");
const found = [...document.querySelectorAll("main [data-words]")];
if (finder && found.length > 1) new Finder(finder, found);
