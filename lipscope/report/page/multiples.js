// ---- multiples.js: a small chart for each head, all on one scale

// The heads of the layer that is looked at against the length; where there is one length, all heads against
// the layer.
function panelsOf(view, layer) {
  const heads = view.filter((i) => !isWhole(i) && lowerLog(i) !== null);
  const here = heads.filter((i) => get(i, "layer") === layer);
  const overLength = distinct(here.filter((i) => num(i, "n") > 0), "n").length > 1;
  const x = overLength ? (i) => Math.log10(num(i, "n")) : (i) => get(i, "layer");
  const of = overLength ? here.filter((i) => num(i, "n") > 0) :
                          heads.filter((i) => typeof get(i, "layer") === "number");
  const panels = [...groupBy(of, (i) => get(i, "head"))].map(
      ([head, records]) => ({
        head,
        points: records.map((i) => ({x: x(i), y: lowerLog(i), i})),
        // the largest at each place
        line: [...groupBy(records, x)]
                  .map(([at, all]) => ({x: at, y: lowerLog(worst(all))}))
                  .sort((a, b) => a.x - b.x)
      }));
  const order = inOrder(panels.map((p) => p.head));
  panels.sort((a, b) => order.indexOf(a.head) - order.indexOf(b.head));
  return {overLength, panels};
}

function drawPanel(panel, ends, label) {
  const [w, h, left, right, top, bottom] = [150, 92, 30, 6, 8, 8];
  const scale = ([low, high], from, to) => (v) =>
      (high > low ? from + (v - low) / (high - low) * (to - from) : (from + to) / 2);
  const [x, y] = [scale(ends.x, left, w - right), scale(ends.y, h - bottom, top)];
  const place = (p) => `${x(p.x).toFixed(1)},${y(p.y).toFixed(1)}`;
  const mark = (v) =>
      svg("text", {x: left - 4, y: y(v) + 3.5, "text-anchor": "end", "font-size": 10, fill: colour("muted")},
          shown(10 ** v, 2));
  return svg(
      "svg", {
        viewBox: `0 0 ${w} ${h}`,
        width: w,
        height: h,
        role: "img",
        "aria-label": label,
        "font-family": "sans-serif",
        class: "panel"
      },
      svg("path", {d: `M${left} ${top}V${h - bottom}H${w - right}`, fill: "none", stroke: colour("line")}),
      mark(ends.y[0]), ends.y[1] > ends.y[0] && mark(ends.y[1]), svg("polyline", {
        points: panel.line.map(place).join(" "),
        fill: "none",
        stroke: colour("below"),
        "stroke-width": 1.5
      }),
      thinned(panel.points, 200).map((p) => svg("circle", {
                                       cx: x(p.x).toFixed(1),
                                       cy: y(p.y).toFixed(1),
                                       r: 2.2,
                                       fill: colour("below"),
                                       "fill-opacity": 0.6
                                     })));
}

function multiplesSection(refresh) {
  const {overLength, panels} = panelsOf(state.view, state.layer);
  if (panels.length < 2 || panels.every((p) => p.line.length < 2)) return null;
  const all = panels.flatMap((p) => p.points);
  const range = (f) =>
      [all.reduce((m, p) => Math.min(m, f(p)), Infinity), all.reduce((m, p) => Math.max(m, f(p)), -Infinity)];
  const ends = {x: range((p) => p.x), y: range((p) => p.y)};
  const at = (v) => (overLength ? `n = ${count(Math.round(10 ** v))}` : `layer ${v}`);
  const name = (p) => (overLength ? place(state.layer, p.head, "the layer") : `head ${p.head}`);
  const told = (p) => `${capital(name(p))}: ${shown(10 ** p.line[0].y, 3)} at ${at(p.line[0].x)}${
      p.line.length > 1 ? `, ${shown(10 ** p.line.at(-1).y, 3)} at ${at(p.line.at(-1).x)}` : ""}`;
  const grid =
      el("div", {class: "multiples", id: "multiples"},
         panels.map(
             (p) =>
                 el("button", {
                   type: "button",
                   class: "multiple",
                   title: told(p),
                   "aria-label": told(p),
                   "aria-pressed": String(state.head === p.head),
                   on: {
                     click: () => {
                       const i = overLength ? null : worst(p.points.map((q) => q.i));
                       focus(i === null ? state.layer : get(i, "layer"), p.head);
                       refresh();
                     }
                   }
                 },
                    el("span", null, `head ${p.head}`), drawPanel(p, ends, told(p)))));
  return section(
      "heads", "Head by head",
      el("p", null,
         overLength ?
             `Each head of ${place(state.layer, "all", "the layer")} against the number of tokens, from ${
                 at(ends.x[0])} to ${
                 at(ends.x[1])}; the line joins the largest constants of each length. All have one scale.` :
             `Each head over the layers, from ${at(ends.x[0])} to ${
                 at(ends.x[1])}; the line joins the largest constants. All have one scale.`),
      overLength && layerControl(refresh),
      el("figure", null, grid, saveButton(() => gathered(grid), "heads"),
         asTable(
             ["head", overLength ? "tokens" : "layer", "largest, from below"],
             () => panels.flatMap(
                 (p) => p.line.map(
                     (q) =>
                         [String(p.head), overLength ? count(Math.round(10 ** q.x)) : String(q.x),
                          shown(10 ** q.y)])))));
}
