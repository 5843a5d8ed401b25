// ---- others.js: the figures of the other commands

// One of several groups at a time, chosen from a list.
function chooser(title, groups, nameOf, draw) {
  const keys = [...groups.keys()];
  let chosen = keys[0];
  const holder = el("div");
  const refresh = () => {
    holder.replaceChildren(...[draw(groups.get(chosen))].flat().filter(Boolean));
    drawWaiting();
  };
  waiting.push(refresh);
  return [
    keys.length > 1 &&
        el("div", {class: "controls"},
           selection(
               title, keys.map((k) => ({name: nameOf(groups.get(k)[0]), value: k})), chosen,
               (k) => {
                 chosen = k;
                 refresh();
               })),
    holder,
  ];
}

const questionFields = ["file", "model", "layer", "head", "map", "kind", "mask", "norm", "scope"];
const questionKey = (i, more = []) => JSON.stringify([...questionFields, ...more].map((f) => get(i, f)));
const radiusWords = (i) =>
    (num(i, "radius_max") === null ? "" : `, radius ${shown(num(i, "radius_max"), 3)}`);
const questionWords = (i) => `${placeOf(i)}, ${kindWords[get(i, "kind")] ?? get(i, "kind")}, norm ${
    get(i, "norm")}, n = ${get(i, "n") ?? "any"}${radiusWords(i)}`;

function boundSection(records) {
  const groups = groupBy(
      records.filter((i) => upperLog(i) !== null),
      (i) => questionKey(i, ["n"]).concat(num(i, "radius_max") === null ? "" : get(i, "radius_max")));
  // bounds that hold everywhere stand beside those over a ball
  const merged = groupBy([...groups.values()].flat(), (i) => JSON.stringify([
    "file", "model", "layer", "head", "map", "kind", "mask", "norm", "n"
  ].map((f) => get(i, f))));
  if (!merged.size) return witnessSection(records);
  return section(
      "bounds", "Bounds from above",
      el("p", null,
         "What the constant can never exceed, for any input in the scope of the bound. Each bar is a theorem; the shortest is the best."),
      chooser("Of", merged, questionWords, (all) => {
        const sorted = [...all].sort((a, b) => upperLog(a) - upperLog(b)).slice(0, 60);
        const bars = sorted.map(
            (i, k) => ({
              name: `${get(i, "upper_by") ?? "bound"}${
                  distinct(all, "radius_max").length > 1 && num(i, "radius_max") !== null ?
                      `, R = ${shown(num(i, "radius_max"), 3)}` :
                      ""}`,
              log: upperLog(i),
              best: k === 0,
              note:
                  [scopeWords(get(i, "scope")), detail(i, "regime") && `regime ${plain(detail(i, "regime"))}`]
                      .filter(Boolean)
                      .join(", "),
            }));
        return barFigure({
          id: "bounds-chart",
          label: `Bounds by name, best ${bars[0].name}`,
          bars,
          caption:
              `${capital(questionWords(all[0]))}. Best: ${bars[0].name}, at most ${shownLog(bars[0].log)}.`
        });
      }));
}

// Where no bound exists: a family of inputs along which the constant grows, over its parameter t.
function witnessSection(records) {
  const families = groupBy(
      records.filter((i) => lowerLog(i) !== null && log10Of(parameter(i, "t")) !== null),
      (i) => questionKey(i, ["n"]));
  if (!families.size) return null;
  const curves = [...families.values()].slice(0, 8).map(
      (all) => ({
        name: questionWords(all[0]).replace(radiusWords(all[0]), ""),
        points: all.map((i) => ({x: log10Of(parameter(i, "t")), y: lowerLog(i), i}))
      }));
  return section(
      "witness", "No bound exists",
      el("p", null,
         "Nothing bounds this map over all inputs. Along a family of inputs, the constant grows with the size t of its tokens:"),
      curveFigure({
        id: "witness-chart",
        label: "Constants from below along a family of inputs",
        curves,
        x: {log: true, title: "t (log scale)"},
        y: {log: true, title: "constant, from below (log scale)"},
        head: ["", "t", "from below"],
        rows: () => curves.flatMap((c) => c.points.map((p) => [c.name, shownLog(p.x), shownLog(p.y)]))
      }));
}

// What each start of a search came from and to: as its last record lists them, or one for each record.
function startsOf(all) {
  const listed = all.map((i) => detail(i, "starts")).findLast((s) => Array.isArray(s) && s.length);
  const number = (v) => (typeof v === "number" ? log10Of(v) : null);
  if (listed)
    return listed.map(
        (s) => ({name: plain(s?.start ?? null), before: number(s?.before), after: number(s?.value)}));
  return all.map((i) => ({name: get(i, "lower_by") ?? "–", before: null, after: lowerLog(i)}));
}

function searchSection(records) {
  const groups = groupBy(records, (i) => questionKey(i, ["n", "radius_max"]));
  return section(
      "search", "Search for the worst input",
      el("p", null,
         "Each start climbs to an input that reacts more strongly; the best is a constant that is reached, hence from below. Nothing in the scope exceeds the line from above."),
      chooser("Of", groups, questionWords, (all) => {
        const starts = startsOf(all);
        const over = (side) => starts.map((s, k) => ({x: k + 1, y: s[side], s})).filter((p) => p.y !== null);
        const [points, before] = [over("after"), over("before")];
        let top = -Infinity;
        const running = points.map((p) => ({x: p.x, y: (top = Math.max(top, p.y))}));
        const ups = all.map(upperLog).filter((u) => u !== null);
        const up = ups.length ? ups.reduce((a, b) => Math.min(a, b)) : null;
        const found = best(all, lowerLog);
        const curves = [
          {name: "where a start climbed to", points, line: false, dots: 4, colourName: "below"},
          {name: "best so far", points: running, dots: 0, stepped: "before", colourName: "below"}
        ];
        if (before.length)
          curves.push({name: "where it began", points: before, line: false, dots: 3, colourName: "muted"});
        if (up !== null && points.length)
          curves.push({
            name: "at most",
            points: [{x: points[0].x, y: up}, {x: points.at(-1).x, y: up}],
            dots: 0,
            dashed: true,
            colourName: "above"
          });
        return [
          found !== null &&
              el("p", null,
                 `The worst input found reacts ${times(num(found, "lower"))}${
                     get(found, "lower_by") ? ` (${get(found, "lower_by")})` : ""}` +
                     (up !== null ? `; none can react more than ${shownLog(up)} times: ${
                                        shown(10 ** Math.min(up - lowerLog(found), 300), 3)} times as much.` :
                                    ".")),
          curveFigure({
            id: "search-chart",
            label: "Constants found by the search, best so far, and bound",
            curves,
            x: {title: "start", whole: true},
            y: {log: true, title: "constant (log scale)"},
            head: ["start", "began at", "climbed to"],
            rows: () => starts.map((s) => [s.name, shownLog(s.before), shownLog(s.after)]),
            tip: (p, name) => p.s === undefined ? undefined : [p.s.name, `${name}: ${shownLog(p.y)}`]
          }),
        ];
      }));
}

// Any command that has no figure of its own: what it knows from below and from above, record by record.
const introductions = {
  invert: [
    "Inverted residual attention",
    "How far the input that was found is from the one that was given, and what is proved of that distance."
  ],
  meanfield: [
    "Weighted tokens",
    "Tokens as a measure: how much further apart two close measures can come out, in the Wasserstein distance."
  ],
};
function anySection(command, records) {
  const known = records.filter((i) => lowerLog(i) !== null || upperLog(i) !== null || whpLog(i) !== null);
  if (!known.length) return null;
  const [title, words] = introductions[command] ?? [capital(command), ""];
  const several = (f) => distinct(known, f).length > 1;
  const asked = [...columns.keys()].filter((f) => f.startsWith("parameters.") && several(f));
  const name = (i) => [several("layer") || several("head") ? placeOf(i) : null,
                       several("n") && get(i, "n") !== null ? `n = ${get(i, "n")}` : null,
                       several("norm") ? `norm ${get(i, "norm")}` : null,
                       several("radius_max") && num(i, "radius_max") !== null ?
                           `radius ${shown(num(i, "radius_max"), 3)}` :
                           null,
                       get(i, "lower_by") ?? get(i, "upper_by"),
                       several("sample") ? `sample ${get(i, "sample")}` : null,
                       ...asked.map((f) => (get(i, f) === null ? null : `${nameOf(f)} ${plain(get(i, f))}`)),
  ].filter(Boolean).join(", ") ||
      "record";
  return section(`command-${records[0]}`, title, words && el("p", null, words), rangeFigure({
                   id: `any-${records[0]}`,
                   label: `${title}: from below and from above`,
                   rows: known.map((i) => rangeRow(i, capital(name(i)))),
                   caption: ""
                 }));
}

// An experiment of `reproduce`: series over one variable (docs/records.md).
function experimentSection(name, records) {
  const head = records.find((i) => typeof detail(i, "title") === "string") ?? null;
  const about = Object.fromEntries(["title", "explanation", "y_name", "log_x", "log_y"].map(
      (f) => [f, head === null ? null : detail(head, f)]));
  const xName = records.map((i) => parameter(i, "x_name")).find((x) => typeof x === "string") ?? "x";
  const [logX, logY] = [about.log_x === true, about.log_y === true];
  const scaled = (v, log) => (v === null ? null : log ? log10Of(v) : v);
  const curves = [];
  let k = 0;
  for (const [series, all] of groupBy(records, (i) => plain(parameter(i, "series")))) {
    const colourName = palette[k % palette.length];
    const points = (yOf) => all.map((i) => {
                                 const x = parameter(i, "x");
                                 return {x: typeof x === "number" ? scaled(x, logX) : null, y: yOf(i), i};
                               })
                                .filter((p) => p.x !== null && p.y !== null)
                                .sort((a, b) => a.x - b.x);
    const [low, up, value] = [
      points((i) => scaled(num(i, "lower"), logY)), points((i) => (logY ? upperLog(i) : num(i, "upper"))),
      points((i) => scaled(num(i, "value"), logY))
    ];
    if (low.length || up.length || value.length) ++k;
    const label = series === "–" ? name : series;
    // several points above one x are a cloud, not a curve; a fit goes through it
    const cloud = low.some((p, j) => j > 0 && p.x === low[j - 1].x);
    if (low.length)
      curves.push({
        name: up.length ? `${label}, from below` : label,
        points: low,
        colourName,
        line: !cloud,
        dots: low.length > 80 ? 2 : 3
      });
    // a loss is on neither side
    if (value.length) curves.push({name: label, points: value, colourName, dots: value.length > 80 ? 2 : 3});
    const fit = data.growth.find(
        (g) => plain(g.parameters?.experiment ?? null) === name && plain(g.parameters.series) === series);
    if (fit && logX && logY && low.length)
      curves.push({
        name: `${label}: ${shown(fit.constant, 3)}·${xName}^${shown(fit.exponent, 2)}`,
        points: [low[0], low.at(-1)].map(({x}) => ({x, y: Math.log10(fit.constant) + fit.exponent * x})),
        colourName,
        dots: 0
      });
    if (up.length)
      curves.push({
        name: low.length ? `${label}, from above` : `${label} (from above)`,
        points: up,
        colourName,
        dashed: true,
        dots: 2
      });
  }
  if (!curves.length) return null;
  const id = `experiment-${records[0]}`;
  return section(
      id, about.title ?? name, typeof about.explanation === "string" && el("p", null, about.explanation),
      curveFigure({
        id: `${id}-chart`,
        label: `${about.title ?? name}: ${plural(curves.length, "curve")}`,
        curves,
        x: {log: logX, title: xName},
        y: {log: logY, title: typeof about.y_name === "string" ? about.y_name : "constant"},
        height: 380,
        head: ["series", xName, "value"],
        rows: () => curves.flatMap(
            (c) => c.points.map(
                (p) => [c.name, logX ? shownLog(p.x) : shown(p.x), logY ? shownLog(p.y) : shown(p.y)]))
      }));
}

function otherSections() {
  const experiments = allRecords.filter((i) => parameter(i, "experiment") !== null);
  const own = new Set(experiments);
  const rest = groupBy(
      allRecords.filter((i) => !own.has(i) && get(i, "command") !== "measure"),
      (i) => plain(get(i, "command")));
  const sections = [...groupBy(experiments, (i) => plain(parameter(i, "experiment")))].map(
      ([name, records]) => experimentSection(name, records));
  for (const [command, records] of rest)
    sections.push(
        command === "bound"       ? boundSection(records) :
            command === "search"  ? searchSection(records) :
            command === "certify" ? certifySection(records) :
                                    anySection(command, records));
  return sections.filter(Boolean);
}
