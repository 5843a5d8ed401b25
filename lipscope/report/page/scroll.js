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

// A table of words; the first column is a heading where it names the row.
function table(head, rows, label) {
  return scrollBox(
      {tabindex: 0, role: "region", "aria-label": label},
      el("table", null, el("thead", null, el("tr", null, head.map((h) => el("th", {scope: "col"}, h)))),
         el("tbody", null, rows.map((row) => el("tr", null, row.map((c) => el("td", null, c)))))));
}
