// ---- heat.js: layers × heads, as a table that is its own figure

// cells: Map from "layer head" to {value, title, words, hue}: the larger the value, the stronger the colour,
// which is that of `hue` ("in" or "out") where there is one
function heatMap({id, label, layers, heads, cells, pressed, press}) {
  const values = [...cells.values()].map((c) => c.value);
  const most = values.reduce((a, b) => Math.max(a, b), 0);
  const least = values.reduce((a, b) => Math.min(a, b), most);
  const scale = (v) => (most > least ? (v - least) / (most - least) : 1);
  const whole = (head) => (head === "all" && heads.length > 1 ? "whole" : null);
  const cell = (layer, head) => {
    const c = cells.get(`${layer} ${head}`);
    if (!c) return el("td", null, el("span", {class: "muted"}, "–"));
    return el(
        "td", {class: whole(head)},
        el(press ? "button" : "span", {
          type: press && "button",
          class: `cell ${c.hue ?? ""}`.trim(),
          title: c.title,
          "aria-label": c.title,
          "aria-pressed": press && String(pressed === `${layer} ${head}`),
          vars: {"--heat": scale(c.value).toFixed(3)},
          on: {click: () => press?.(layer, head)}
        },
           c.words));
  };
  const grid =
      el("table", {class: "heat", "aria-label": label},
         el("thead", null,
            el("tr", null, el("th", null, heads.length > 1 ? "head" : ""),
               heads.map((h) => el("th", {scope: "col", class: whole(h)}, String(h))))),
         el("tbody", null,
            layers.map(
                (l) =>
                    el("tr", null, el("th", {scope: "row"}, l === null ? "layer" : `layer ${l}`),
                       heads.map((h) => cell(l, h))))));
  return el("figure", null, scrollBox({}, grid), saveButton(() => tableSvg(grid), id));
}
