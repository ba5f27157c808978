// What figures ask of the browser: elements, files and the clipboard.
function el(tag, attributes = {}, ...inside) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...inside);
  return node;
}

// Lets the reader save a text as a file.
function save(name, type, text) {
  const link = el("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Copies a text, and says so on the button for a moment.
function copy(button, text) {
  const confirm = words => {
    const before = button.textContent;
    button.textContent = words;
    setTimeout(() => {
      button.textContent = before;
    }, 1500);
  };
  // Pages that are opened as files may have no access to the clipboard.
  const copyBySelection = () => {
    const area = el("textarea", { "aria-hidden": "true" }, text);
    document.body.append(area);
    area.select();
    const isDone = document.execCommand("copy");
    area.remove();
    confirm(isDone ? "copied" : "press Ctrl+C");
  };
  if (navigator.clipboard) {
    navigator.clipboard.writeText(text).then(() => confirm("copied"), copyBySelection);
  } else {
    copyBySelection();
  }
}
