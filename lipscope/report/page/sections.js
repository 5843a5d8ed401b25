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
const byPlace = () => groupBy(state.view, (i) => `${get(i, "layer")} ${get(i, "head")}`);
const worst = (records) => best(records, (i) => num(i, "lower")) ?? records[0];
function worstOfView(view) {
  const whole = view.filter((i) => get(i, "head") === "all" && num(i, "lower") !== null);
  return worst(whole.length ? whole : view);
}

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

// ---- the first screen, in words

function howSure(i) {
  const [low, w, up] = [lowerLog(i), whpLog(i), upperLog(i)];
  const over = (log) =>
      (low === null ? "" : `, ${shown(10 ** Math.min(log - low, 300), 3)} times what was measured`);
  const delta = num(i, "delta");
  return [
    low !== null &&
        el("p", null, el("i", {class: "side below"}), el("b", null, `At least ${shownLog(low)}`),
           `: a change that does it was found and checked in f64${
               converged(i) ? "" : "; the search for a worse one was cut short"}.`),
    w !== null && (up === null || w < up) &&
        el("p", null, el("i", {class: "side whp"}), el("b", null, `At most ${shownLog(w)}`),
           `, but for a chance of ${shown(delta)} over the random start.`),
    up !== null &&
        el("p", null, el("i", {class: "side above"}), el("b", null, `At most ${shownLog(up)}`),
           `, proved${get(i, "upper_by") ? ` (${get(i, "upper_by")})` : ""}${over(up)}.`),
    w === null && up === null &&
        el("p", null, "Nothing was said from above: a worse change may exist at this input. ",
           el("code", null, "--enclose 1.05"), " says how much worse at most."),
  ];
}

function measuredWords(view) {
  const i = view[0];
  const layers = distinct(view, "layer").filter((l) => l !== null).length;
  const heads = distinct(view, "head").filter((h) => h !== "all").length;
  const n = view.map((k) => num(k, "n")).filter((x) => x !== null);
  const [least, most] =
      [n.reduce((a, b) => Math.min(a, b), Infinity), n.reduce((a, b) => Math.max(a, b), -Infinity)];
  const of = [
    layers && plural(layers, "layer"), heads && plural(heads, "head") + (layers ? " each" : "")
  ].filter(Boolean);
  const open = view.filter((k) => !converged(k)).length;
  return `${plural(view.length, "constant")} of ${of.length ? `${listed(of)} of ` : ""}${
             get(i, "model") ??
             "a model without a name"}, ${mapWords[get(i, "map")] ?? `map ${get(i, "map")}`}; ` +
      `${kindWords[get(i, "kind")] ?? get(i, "kind")}, ${maskWords(get(i, "mask"))}, norm ${
             get(i, "norm")}, ${scopeWords(get(i, "scope"))} of ` +
      `${least === most ? count(most) : `${count(least)} to ${count(most)}`} tokens. ` +
      (open ? `${count(open)} did not converge: their numbers hold, but worse may be found.` :
              "All converged.");
}

function measuredHero() {
  const i = worstOfView(state.view);
  const lower = num(i, "lower");
  const several = distinct(state.view.filter((k) => get(k, "head") === get(i, "head")), "layer").length > 1 ||
      distinct(state.view, "head").length > 1;
  const s = shares.get(i);
  const by = lower === null ? "by an unknown amount" : el("span", {class: "number"}, times(lower));
  return [
    el("h1", null,
       several ? `${capital(placeOf(i))} reacts most: a small change of its input can come out ` :
                 `${capital(placeOf(i))}: a small change of its input can come out `,
       by, lower === null ? "." : " as large."),
    el("p", {class: "lede"}, measuredWords(state.view)),
    el("dl", {class: "facts"},
       el("div", null, el("dt", null, "Where"),
          el("dd", null,
             el("p", null, el("b", null, capital(placeOf(i))),
                `, at sample ${get(i, "sample") ?? "–"} of ${plural(num(i, "n") ?? 0, "token")}.`),
             several && el("p", null, runnersUp(i)))),
       el("div", null, el("dt", null, "Which words"),
          el("dd", null,
             s ?
                 [
                   el("p", null, "The worst change goes in mostly through"),
                   el("ul", null, topWords(s, "input")), s.output && el("p", null, "and comes out mostly at"),
                   s.output && el("ul", null, topWords(s, "output")),
                   el("p", {class: "muted"}, el("a", {href: "#text"}, "See it in the text"))
                 ] :
                 el("p", {class: "muted"}, "Not recorded. ", el("code", null, "measure --tokens"),
                    " does."))),
       el("div", null, el("dt", null, "How sure"), el("dd", null, howSure(i)))),
  ];
}

function runnersUp(top) {
  const same = state.view.filter((i) => get(i, "head") === get(top, "head"));
  const groups =
      [...groupBy(same, (i) => get(i, "layer")).values()].map(worst).filter((i) => num(i, "lower") !== null);
  const rest = groups.sort((a, b) => num(b, "lower") - num(a, "lower")).slice(1, 3);
  const last = groups.at(-1);
  if (!rest.length) return null;
  return `Then ${listed(rest.map((i) => `${placeOf(i)} (${shown(num(i, "lower"), 3)})`))}` +
      (groups.length > 3 ? `; least, ${placeOf(last)} (${shown(num(last, "lower"), 3)}).` : ".");
}

// ---- the sections

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
      title: `${capital(placeOf(i))}: ${shown(num(i, "lower"))} at ${
          plural(num(i, "n") ?? 0, "token")}, sample ${get(i, "sample")}`
    });
  }
  return section(
      "map", "Layers and heads",
      el("p", null,
         "The largest constant measured for each, from below. Choose one to look at it in the figures that follow."),
      heatMap({
        label: "Largest measured constant by layer and head",
        layers,
        heads,
        cells,
        of: three,
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
        caption: "The numbers hold at these inputs and say nothing of others."
      }),
      bounds.length > 0 && el("p", null, boundWords(bounds)));
}
