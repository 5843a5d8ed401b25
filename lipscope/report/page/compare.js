// ---- compare.js: two files, question by question

// What was asked of both: the same place, map, norm, length and sample.
function pairs() {
  const key = (i) => JSON.stringify(["layer", "head", "map", "norm", "n", "sample"].map((f) => get(i, f)));
  const second = new Map();
  for (const i of measured)
    if (get(i, "file") === 1 && lowerLog(i) !== null) second.set(key(i), i);
  return measured.filter((i) => get(i, "file") === 0 && lowerLog(i) !== null && second.has(key(i)))
      .map((i) => ({a: i, b: second.get(key(i)), ratio: lowerLog(second.get(key(i))) - lowerLog(i)}));
}

// The two by what tells them apart.
function names() {
  const firsts = [0, 1].map((f) => measured.find((i) => get(i, "file") === f));
  if (firsts.some((i) => i === undefined)) return data.files.map((f) => f.name);
  for (const field of ["model", "kind", "mask", "dtype", "seed"])
    if (plain(get(firsts[0], field)) !== plain(get(firsts[1], field)))
      return firsts.map(
          (i) =>
              (field === "kind"      ? kindWords[get(i, "kind")] ?? plain(get(i, "kind")) :
                   field === "model" ? plain(get(i, "model")) :
                                       `${field} ${plain(get(i, field))}`));
  return data.files.map((f) => f.name);
}

function compareHero() {
  const found = pairs();
  const [a, b] = names();
  if (!found.length)
    return [
      el("h1", null, "These two files have no question in common."),
      el("p", {class: "lede"},
         `${a} and ${
             b}: what is compared has the same layer, head, map, norm, length and sample. The figures below show each by itself.`)
    ];
  const middle = median(found.map((p) => p.ratio));
  const ratios = found.map((p) => p.ratio);
  const [least, most] = [ratios.reduce((x, y) => Math.min(x, y)), ratios.reduce((x, y) => Math.max(x, y))];
  const how = Math.abs(middle) < 0.01 ? ["as strongly as", ""] :
      middle > 0                      ? [times(10 ** middle), " as strongly as"] :
                                        [times(10 ** -middle), " less strongly than"];
  return [
    el("h1", null, `${capital(b)} reacts `, el("span", {class: "number"}, how[0]), `${how[1]} ${a}.`),
    el("p", {class: "lede"},
       `The median over ${
           plural(
               found.length,
               "pair")} of measurements with the same layer, head, map, norm, length and sample; the ratio lies between ${
           shownLog(least, 3)} and ${shownLog(most, 3)}. Both are measured from below.`),
  ];
}

function compareSection() {
  const found = pairs();
  if (!found.length) return null;
  const [a, b] = names();
  const cells = new Map();
  for (const [key, group] of groupBy(
           found.keys(), (k) => `${get(found[k].a, "layer")} ${get(found[k].a, "head")}`)) {
    const value = 10 ** median(group.map((k) => found[k].ratio));
    cells.set(key, {
      value,
      title: `${capital(placeOf(found[group[0]].a))}: ratio ${shown(value, 3)}, median of ${
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
      el("p", null, `Each number is the constant of ${b} over that of ${a}, the median over all inputs.`),
      heatMap({
        label: "Ratio by layer and head",
        layers: inOrder(distinct(firsts, "layer")),
        heads: inOrder(distinct(firsts, "head")),
        cells,
        of: three
      }),
      curveFigure({
        id: "compare-chart",
        label: `Constants of ${b} against those of ${a}`,
        height: 420,
        curves: [
          {name: "one input", points, line: false, dots: 4, colourName: "below"},
          {name: "equal", points: ends.map((x) => ({x, y: x})), dots: 0, dashed: true, colourName: "muted"}
        ],
        x: {log: true, title: a},
        y: {log: true, title: b},
        caption: "Above the dashed line the second reacts more strongly.",
        head: ["place", "tokens", "sample", a, b],
        rows: () => found.map(
            (p) =>
                [placeOf(p.a), shown(num(p.a, "n")), shown(num(p.a, "sample")), shown(num(p.a, "lower")),
                 shown(num(p.b, "lower"))]),
        tip: (p) => p.i === undefined ?
            undefined :
            [
              `${capital(placeOf(p.i))}, ${plural(num(p.i, "n"), "token")}, sample ${get(p.i, "sample")}`,
              `${a}: ${shown(num(p.i, "lower"))}`, `${b}: ${shown(num(p.j, "lower"))}`
            ]
      }));
}
