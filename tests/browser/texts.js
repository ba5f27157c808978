// What is wrong with the texts of the drawings of a page: each text that is cut or leaves its frame,
// and each pair of texts that touch.
const NEAR = 0.5;
const faults = [];

// Lines of text are higher than their letters: a fifth of the height is above and below them.
function lettersOf(box) {
  const lead = 0.2 * (box.bottom - box.top);
  return { left: box.left, right: box.right, top: box.top + lead, bottom: box.bottom - lead };
}

function touch(a, b) {
  const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  return across > NEAR && down > NEAR;
}

function isInside(a, b) {
  return a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
}

// `texts`: words, box, and the square of a map in which they stand.
function check(figure, texts, frameOf) {
  const letters = texts.map(text => lettersOf(text.box));
  texts.forEach(({ words, square }, i) => {
    if (!isInside(letters[i], frameOf(texts[i]))) faults.push(`${figure}: "${words}" leaves its frame`);
    if (words.endsWith("…")) faults.push(`${figure}: "${words}" is cut`);
    for (let j = 0; j < i; j++) {
      const isOther = !square || square !== texts[j].square;
      if (isOther && touch(letters[i], letters[j])) faults.push(`${figure}: "${words}" touches "${texts[j].words}"`);
    }
  });
}

function drawnTexts(svg) {
  const all = [...svg.querySelectorAll("text")].filter(text => text.textContent.trim());
  return all.map(text => ({ words: text.textContent.trim(), box: text.getBoundingClientRect() }));
}

// The lines of the visible texts of a square.
function linesOf(square) {
  const walker = document.createTreeWalker(square, NodeFilter.SHOW_TEXT), lines = [];
  while (walker.nextNode()) {
    const node = walker.currentNode, range = document.createRange();
    if (node.parentNode.closest(".unseen") || !node.textContent.trim()) continue;
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) lines.push({ words: node.textContent.trim(), box, square });
  }
  return lines;
}

for (const figure of document.querySelectorAll(".plot")) {
  for (const cell of figure.querySelectorAll(".cell")) {
    const title = cell.querySelector(".title"), plane = cell.querySelector(".plane");
    const isCut = title.scrollHeight > title.clientHeight + 2 || title.scrollWidth > title.clientWidth + 1;
    if (!title.hidden && isCut) faults.push(`${figure.id}: the title "${title.textContent}" is cut`);
    check(figure.id, drawnTexts(plane), () => plane.getBoundingClientRect());
  }
  for (const svg of figure.querySelectorAll(".chart > svg")) {
    check(figure.id, drawnTexts(svg), () => svg.getBoundingClientRect());
  }
  for (const table of figure.querySelectorAll(".squares")) {
    const lines = [...table.querySelectorAll("th, td")].flatMap(linesOf);
    check(figure.id, lines, ({ square }) => square.getBoundingClientRect());
  }
}
const drawn = document.querySelectorAll(".plot .plane text, .plot .chart > svg text, .plot .squares th").length;
return { faults, drawn };
