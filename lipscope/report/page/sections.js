// ---- sections.js: what a measurement of layers and heads has to say

const section = (id, title, ...children) =>
    el("section", {id, "aria-labelledby": `${id}-title`}, el("h2", {id: `${id}-title`}, title), ...children);

// What is looked at. Whole layers come before heads: a reader asks for the layer first.
const state = {
  view: views[0] ?? [],
  layer: null,
  head: null,
  record: null
};
const at = (layer, head) => state.view.filter((i) => get(i, "layer") === layer && get(i, "head") === head);
const byPlace = () => groupBy(state.view, placeKey);

function look(view) {
  state.view = view;
  const i = worstOfView(view);
  focus(get(i, "layer"), get(i, "head"));
}
function focus(layer, head) {
  const there = at(layer, head).length ?
      head :
      get(state.view.find((i) => get(i, "layer") === layer) ?? state.view[0], "head");
  [state.layer, state.head] = [layer, there];
  const here = at(layer, there);
  state.record = worst(here.filter((i) => shares.has(i)).length ? here.filter((i) => shares.has(i)) : here);
}

// ---- the sections

// The layer alone.
function layerControl(refresh) {
  const layers = inOrder(distinct(state.view, "layer"));
  return layers.length > 1 &&
      el("div", {class: "controls"},
         selection("Layer", layers.map((l) => ({name: `layer ${l}`, value: l})), state.layer, (l) => {
           focus(l, state.head);
           refresh();
         }));
}

function focusControls(refresh, more = []) {
  const layers = inOrder(distinct(state.view, "layer"));
  const heads = inOrder(distinct(state.view.filter((i) => get(i, "layer") === state.layer), "head"));
  const choose = (layer, head) => {
    focus(layer, head);
    refresh();
  };
  return el(
      "div", {class: "controls"},
      layers.length > 1 &&
          selection(
              "Layer", layers.map((l) => ({name: `layer ${l}`, value: l})), state.layer,
              (l) => choose(l, state.head)),
      heads.length > 1 &&
          selection(
              "Head", heads.map((h) => ({name: h === "all" ? "all heads" : `head ${h}`, value: h})),
              state.head, (h) => choose(state.layer, h)),
      more);
}

function heatSection(refresh) {
  const heads = inOrder(distinct(state.view, "head"));
  const layers = inOrder(distinct(state.view, "layer"));
  if (heads.length * layers.length < 2) return null;
  const cells = new Map();
  for (const [key, records] of byPlace()) {
    const i = worst(records);
    if (num(i, "lower") === null) continue;
    cells.set(key, {
      value: num(i, "lower"),
      words: three(num(i, "lower")),
      title: `${capital(placeOf(i))}: ${shown(num(i, "lower"))} at ${
          plural(num(i, "n") ?? 0, "token")}, sample ${get(i, "sample")}`
    });
  }
  return section(
      "map", "Layers and heads",
      el("p", null,
         "The largest constant measured for each, from below. Choose one to look at it in the figures that follow."),
      heatMap({
        id: "map",
        label: "Largest measured constant by layer and head",
        layers,
        heads,
        cells,
        pressed: `${state.layer} ${state.head}`,
        press: (l, h) => {
          focus(l, h);
          refresh();
        }
      }));
}

function textSection(refresh) {
  if (!state.view.some((i) => shares.has(i))) return null;
  const here = at(state.layer, state.head)
                   .filter((i) => shares.has(i))
                   .sort((a, b) => num(b, "lower") - num(a, "lower"));
  const name = (i) =>
      `${shown(num(i, "lower"), 3)} times: ${plural(num(i, "n"), "token")}, sample ${get(i, "sample")}`;
  const left = data.shares_of - data.shares.length;
  return section(
      "text", "The text",
      el("p", null,
         `What ${
             place(
                 state.layer, state.head,
                 "the layer")} reacts to. The worst small change is spread over the tokens of a sequence: the stronger the colour, the more of it (of its squared length) sits there.${
             firstTokenWords(here)}`),
      focusControls(
          refresh,
          here.length > 1 &&
              selection(
                  "Sequence, the worst first", here.map((i) => ({name: name(i), value: i})), state.record,
                  (i) => {
                    state.record = i;
                    refresh();
                  })),
      here.length ? passages(state.record) : el("p", null, "The tokens were not recorded here."),
      here.length > 0 && (flowFigure(state.record) ?? flowMissing(here)),
      left > 0 &&
          el("p", null,
             `The page holds the tokens of ${count(data.shares.length)} of ${
                 count(
                     data.shares_of)} measurements, those with the largest constants of each layer and head.`));
}

// Whole layers, then the heads of the layer that is looked at.
function rowsToShow(keyed) {
  const whole = keyed.filter((k) => k.head === "all" || k.head === null);
  const heads = keyed.filter((k) => k.layer === state.layer && k.head !== "all" && k.head !== null);
  return [...whole, ...heads].length ? [...whole, ...heads] : keyed;
}

function growthSection(refresh) {
  if (distinct(state.view, "n").length < 2) return null;
  const fits = fitsOf(state.view);
  const fit = fits.filter((g) => (g.layer ?? null) === state.layer && g.head === state.head).at(-1);
  const last = new Map(fits.map((g) => [`${g.layer} ${g.head}`, g]));
  const chosen = rowsToShow([...last.values()]).slice(0, 60);
  return section(
      "length", "Growth with the length",
      el("p", null,
         `How the constants of ${
             place(state.layer, state.head, "the layer")} change with the number of tokens.`),
      focusControls(refresh), growthFigure(at(state.layer, state.head), fit),
      chosen.length > 0 && el("h3", null, "Exponents beside the rates of the papers"),
      chosen.length > 0 && exponentFigure(chosen, ratesOf(state.view[0])));
}

// The best bound over a ball or everywhere for the same map, from the records of `bound`.
function bestBound(i) {
  const fields = ["file", "model", "layer", "head", "map", "kind", "mask", "norm"];
  const same = allRecords.filter(
      (k) => get(k, "command") === "bound" && upperLog(k) !== null &&
          (num(k, "n") ?? 0) >= (num(i, "n") ?? 0) && fields.every((f) => get(k, f) === get(i, f)));
  return best(same, (k) => -upperLog(k));
}

function boundWords(bounds) {
  const sorted = [...bounds].sort((a, b) => upperLog(a) - upperLog(b));
  const one = (k) => `${shownLog(upperLog(k), 3)} for ${placeOf(k)}`;
  const between = sorted.length > 1 ? `from ${one(sorted[0])} to ${one(sorted.at(-1))}` : one(sorted[0]);
  return `Over all inputs that long, at the radii of the bounds below, the constant is at most ${between}.`;
}

function gapSection() {
  const groups = [...byPlace().values()].map((records) => {
    const i = worst(records);
    return {i, layer: get(i, "layer"), head: get(i, "head")};
  });
  const rows = rowsToShow(groups)
                   .filter((g) => lowerLog(g.i) !== null || upperLog(g.i) !== null)
                   .map((g) => rangeRow(g.i, capital(placeOf(g.i))));
  if (!rows.length) return null;
  const silent = rows.every((r) => r.whp === null && r.upper === null);
  const bounds =
      rows.length <= 60 ? rowsToShow(groups).map((g) => bestBound(g.i)).filter((k) => k !== null) : [];
  return section(
      "gap", "From below and from above",
      el("p", null,
         silent ?
             "Only measured, from below: nothing was said from above." :
             "At the worst sequence of each: what was measured, and what it cannot exceed there. The shorter the line between, the more is known."),
      rangeFigure({
        id: "gap-chart",
        label: "Constants from below and from above by layer",
        rows,
        caption:
            "The numbers hold at these inputs and say nothing of others. Ratios are above / below, at least 1."
      }),
      bounds.length > 0 && el("p", null, boundWords(bounds)));
}
