// ---- heat.js: layers × heads, as a table that is its own figure

// cells: Map from "layer head" to {value, title}; `of` turns a value into its words
function heatMap({label, layers, heads, cells, of, pressed, press}) {
  const values = [...cells.values()].map((c) => c.value);
  const most = values.reduce((a, b) => Math.max(a, b), 0);
  const least = values.reduce((a, b) => Math.min(a, b), most);
  const scale = (v) => (most > least ? (v - least) / (most - least) : 1);
  const cell = (layer, head) => {
    const c = cells.get(`${layer} ${head}`);
    if (!c) return el("td", null, el("span", {class: "muted"}, "–"));
    return el(
        "td", {class: head === "all" && heads.length > 1 ? "whole" : null},
        el(press ? "button" : "span", {
          type: press && "button",
          class: "cell",
          title: c.title,
          "aria-label": c.title,
          "aria-pressed": press && String(pressed === `${layer} ${head}`),
          vars: {"--heat": scale(c.value).toFixed(3)},
          on: {click: () => press?.(layer, head)}
        },
           of(c.value)));
  };
  return el(
      "div", {class: "scroll"},
      el("table", {class: "heat", "aria-label": label},
         el("thead", null,
            el("tr", null, el("th", null, heads.length > 1 ? "head" : ""),
               heads.map(
                   (h) =>
                       el("th", {scope: "col", class: h === "all" && heads.length > 1 ? "whole" : null},
                          String(h))))),
         el("tbody", null,
            layers.map(
                (l) =>
                    el("tr", null, el("th", {scope: "row"}, l === null ? "layer" : `layer ${l}`),
                       heads.map((h) => cell(l, h)))))));
}
