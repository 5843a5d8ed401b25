// ---- scroll.js: tables that are wider than the screen say so

// A box that scrolls, with a line under it that shows while something is hidden to the right or to the left.
function scrollBox(attributes, ...children) {
  const box = el("div", {...attributes, class: `scroll ${attributes.class ?? ""}`.trim()}, ...children);
  const hint = el("p", {class: "scroll-hint", hidden: true}, "Wider than the screen: scroll sideways. →");
  const look = () => {
    const hidden = box.scrollWidth - box.clientWidth;
    box.classList.toggle("more-right", hidden > 1 && box.scrollLeft < hidden - 1);
    box.classList.toggle("more-left", hidden > 1 && box.scrollLeft > 1);
    hint.hidden = hidden <= 1;
  };
  box.addEventListener("scroll", look, {passive: true});
  // when it comes into the page, and when the window or the table changes its width
  const watch = new ResizeObserver(look);
  watch.observe(box);
  if (box.firstElementChild) watch.observe(box.firstElementChild);
  return [box, hint];
}

// A table: words to the left, numbers to the right. `rows` are lists of strings.
const isWords = (text) => /^[\p{L}“"]/u.test(text);
function plainTable(head, rows) {
  const words = head.map((_, k) => rows.length > 0 && rows.every((row) => isWords(row[k]) || row[k] === "–"));
  const cell = (tag, text, k) =>
      el(tag, {scope: tag === "th" ? "col" : null, class: words[k] ? "words" : null}, text);
  return el(
      "table", null, el("thead", null, el("tr", null, head.map((h, k) => cell("th", h, k)))),
      el("tbody", null, rows.map((row) => el("tr", null, row.map((c, k) => cell("td", c, k))))));
}
