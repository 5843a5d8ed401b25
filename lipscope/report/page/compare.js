// ---- compare.js: two files, question by question

// What was asked of both: the same place, map, norm, length and sample, and whatever else takes several
// values in a file.
const pairFields = ["layer", "head", "map", "norm", "n", "sample"];
function pairs() {
  const sides = [0, 1].map((f) => measured.filter((i) => get(i, "file") === f && lowerLog(i) !== null));
  const values = (side, field) => new Set(side.map((i) => plain(field(i)))).size;
  const more = [
    ...["model", "kind", "mask", "dtype", "seed", "scope", ...partingParameters].map((f) => (i) => get(i, f)),
    textOf
  ].filter((field) => sides.some((side) => values(side, field) > 1));
  const key = (i) => JSON.stringify([...pairFields.map((f) => get(i, f)), ...more.map((field) => field(i))]);
  const second = new Map(sides[1].map((i) => [key(i), i]));
  return sides[0]
      .filter((i) => second.has(key(i)))
      .map((i) => ({a: i, b: second.get(key(i)), log: lowerLog(second.get(key(i))) - lowerLog(i)}));
}

// The two by what tells them apart.
function names() {
  const firsts = [0, 1].map((f) => measured.find((i) => get(i, "file") === f));
  if (firsts.some((i) => i === undefined)) return data.files.map((f) => `file ${f.name}`);
  const said = [
    ["model", (i) => `model ${shortName(get(i, "model"))}`],
    ["kind", (i) => kindWords[get(i, "kind")] ?? plain(get(i, "kind"))],
    ["text", (i) => `the model on ${shortName(textOf(i) ?? "another text")}`],
    ...["mask", "dtype", "seed"].map((f) => [f, (i) => `${f} ${plain(get(i, f))}`])
  ];
  for (const [, words] of said)
    if (words(firsts[0]) !== words(firsts[1])) return firsts.map(words);
  return data.files.map((f) => `file ${f.name}`);
}

// Numbers in the page have seven digits: closer than this they are equal.
const differs = (p) => Math.abs(p.log) > 1e-6;
const pairPlace = (p) =>
    `${placeOf(p.a)}, ${plural(num(p.a, "n") ?? 0, "token")}, sample ${plain(get(p.a, "sample"))}`;

function compareHero() {
  const found = pairs();
  const [a, b] = names();
  // runs and certified predictions are set side by side by what they came to
  if (!found.length && allRecords.some((i) => isTraining(i) || get(i, "command") === "certify"))
    return otherHero();
  if (!found.length)
    return [
      el("h1", null, "These two files have no question in common."),
      el("p", {class: "lede"},
         `${a} and ${
             b}: what is compared are constants that were measured for the same layer, head, map, norm, length and sample. The figures below show each by itself.`)
    ];
  const apart = found.filter(differs);
  const lede = el(
      "p", {class: "lede"},
      `${
          plural(
              found.length,
              "pair")} of measurements with the same layer, head, map, norm, length and sample. Ratios are the larger over the smaller, so at least 1. Both sides are measured from below: a ratio of them is an estimate and not a bound.`);
  if (!apart.length)
    return [
      el("h1", null, `${capital(b)} reacts as ${a} does in all ${plural(found.length, "pair")}.`), lede
    ];
  // the one that is stronger more often is named first
  const up = apart.filter((p) => p.log > 0).length;
  const [strong, weak, sign] = 2 * up >= apart.length ? [b, a, 1] : [a, b, -1];
  const stronger = apart.filter((p) => sign * p.log > 0);
  const others = apart.length - stronger.length;
  const far = stronger.reduce((m, p) => (sign * p.log > sign * m.log ? p : m));
  const far2 = apart.filter((p) => sign * p.log < 0)
                   .reduce((m, p) => (m === null || sign * p.log < sign * m.log ? p : m), null);
  const middle = 10 ** medianLog(found.map((p) => sign * p.log));
  return [
    el("h1", null,
       `${capital(strong)} reacts more strongly than ${weak} in ${
           stronger.length === found.length && found.length > 1 ?
               "all" :
               count(stronger.length)} of ${plural(found.length, "pair")}: `,
       el("span", {class: "number"}, `${shown(10 ** (sign * far.log), 3)} times`),
       ` as strongly at most (${pairPlace(far)})`,
       middle >= 1 ? `, ${shown(middle, 3)} times in the median.` : "."),
    others > 0 &&
        el("p", {class: "lede"},
           `In ${plural(others, "pair")} ${weak} reacts more strongly, ${
               shown(10 ** (-sign * far2.log), 3)} times at most (${pairPlace(far2)}).`),
    lede,
  ].filter(Boolean);
}

function compareSection() {
  const found = pairs();
  if (!found.length) return null;
  const [a, b] = names();
  const cells = new Map();
  for (const [key, group] of groupBy(found.keys(), (k) => placeKey(found[k].a))) {
    const logs = group.map((k) => found[k].log);
    // of which of the two the median is larger
    const up = medianLog(logs);
    const sign = up >= 0 ? 1 : -1;
    const value = 10 ** Math.max(0, medianLog(logs.map((x) => sign * x)));
    const equal = logs.every((x) => Math.abs(x) <= 1e-6);
    cells.set(key, {
      value: Math.log10(value),
      words: equal ? "=" : `${three(value)} ${sign > 0 ? "▲" : "▼"}`,
      hue: equal   ? null :
          sign > 0 ? "in" :
                     "out",
      title: `${capital(placeOf(found[group[0]].a))}: ${
          equal ? "equal" : `${sign > 0 ? b : a} reacts ${shown(value, 3)} times as strongly`}, median of ${
          plural(group.length, "pair")}`
    });
  }
  const firsts = found.map((p) => p.a);
  const points = found.map((p) => ({x: lowerLog(p.a), y: lowerLog(p.b), i: p.a, j: p.b}));
  const ends = [
    points.reduce((m, p) => Math.min(m, p.x, p.y), Infinity),
    points.reduce((m, p) => Math.max(m, p.x, p.y), -Infinity)
  ];
  return section(
      "compare", "Side by side",
      el("p", null,
         `How many times as strongly one reacts as the other, the median over all inputs; always the larger over the smaller. ▲: ${
             b} reacts more strongly. ▼: ${a} does.`),
      heatMap({
        id: "ratios",
        label: "Ratio by layer and head",
        layers: inOrder(distinct(firsts, "layer")),
        heads: inOrder(distinct(firsts, "head")),
        cells
      }),
      curveFigure({
        id: "compare-chart",
        label: `Constants of ${b} against those of ${a}`,
        height: 420,
        curves: [
          {name: "one input", points, line: false, dots: 4, colourName: "below"},
          {name: "equal", points: ends.map((x) => ({x, y: x})), dots: 0, dashed: true, colourName: "muted"}
        ],
        x: {log: true, title: `${a} (log scale)`},
        y: {log: true, title: `${b} (log scale)`},
        caption: `Above the dashed line ${b} reacts more strongly.`,
        head: ["place", "tokens", "sample", a, b, "ratio"],
        rows: () => found.map(
            (p) =>
                [placeOf(p.a), shown(num(p.a, "n")), plain(get(p.a, "sample")), shown(num(p.a, "lower")),
                 shown(num(p.b, "lower")),
                 `${shown(10 ** Math.abs(p.log), 3)}${differs(p) ? (p.log > 0 ? " ▲" : " ▼") : ""}`]),
        tip: (p) => p.i === undefined ?
            undefined :
            [
              `${capital(placeOf(p.i))}, ${plural(num(p.i, "n") ?? 0, "token")}, sample ${
                  plain(get(p.i, "sample"))}`,
              `${a}: ${shown(num(p.i, "lower"))}`, `${b}: ${shown(num(p.j, "lower"))}`
            ]
      }));
}
