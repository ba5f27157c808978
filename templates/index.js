// Words, verdicts (or classes) and choices filter cards, claims and errata; the address keeps what is chosen.
const finder = document.querySelector(".finder"), found = [...document.querySelectorAll("main [data-words]")];
if (finder && found.length > 1) {
  const [words, status, clear] = ["input", "[role=status]", ".clear"].map(query => finder.querySelector(query));
  const verdicts = [...finder.querySelectorAll("[aria-pressed]")], selects = [...finder.querySelectorAll("select")];
  const kind = verdicts[0]?.name ?? "verdict";
  const texts = new Map(found.map(item => [item, `${item.textContent} ${item.dataset.words}`.toLowerCase()]));
  const isPressed = button => button.ariaPressed === "true";
  const apply = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const pressed = verdicts.filter(isPressed).map(button => button.value), chosen = selects.filter(select => select.value);
    const has = (item, name, value) => item.dataset[name].split(" ").includes(value);
    for (const item of found) {
      item.hidden = !wanted.every(word => texts.get(item).includes(word))
        || pressed.length > 0 && !pressed.some(verdict => has(item, kind, verdict))
        || !chosen.every(select => has(item, select.name, select.value));
    }
    for (const group of document.querySelectorAll("[data-group]")) {
      const count = group.querySelectorAll("[data-words]:not([hidden])").length, number = group.querySelector("h2 small");
      group.hidden = !count;
      if (number) number.textContent = count;
    }
    const shown = found.filter(item => !item.hidden).length;
    clear.hidden = !(wanted.length || pressed.length || chosen.length);
    document.querySelector(".none").hidden = shown > 0;
    status.textContent = clear.hidden ? "" : `${shown} of ${found.length} ${finder.dataset.several}`;
    return { pressed, chosen };
  };
  const keep = () => {
    const { pressed, chosen } = apply(), state = new URLSearchParams();
    if (words.value.trim()) state.set("q", words.value.trim());
    for (const verdict of pressed) state.append(kind, verdict);
    for (const select of chosen) state.set(select.name, select.value);
    history.replaceState(null, "", clear.hidden ? location.pathname + location.search : `#${state}`);
  };
  // A fragment that names no filter is a place on the page.
  const restore = () => {
    const state = new URLSearchParams(location.hash.slice(1)), names = ["q", kind, ...selects.map(select => select.name)];
    if (location.hash && !names.some(name => state.has(name))) return;
    words.value = state.get("q") ?? "";
    for (const button of verdicts) button.ariaPressed = String(state.getAll(kind).includes(button.value));
    for (const select of selects) {
      select.value = state.get(select.name) ?? "";
      if (select.selectedIndex < 0) select.value = "";
    }
    apply();
  };
  finder.hidden = false;
  words.addEventListener("input", keep);
  for (const select of selects) select.addEventListener("change", keep);
  for (const button of verdicts) button.addEventListener("click", () => { button.ariaPressed = String(!isPressed(button)); keep(); });
  clear.addEventListener("click", () => {
    words.value = "";
    for (const button of verdicts) button.ariaPressed = "false";
    for (const select of selects) select.value = "";
    keep();
    words.focus();
  });
  addEventListener("hashchange", restore);
  restore();
}
