// ---- experiment.js: an experiment of `reproduce`, as series over one variable (docs/records.md)

// What the experiment is about: from the record that describes it, or the first of its records that does.
function aboutOf(name, records) {
  const described = data.figures.find((f) => plain(f.parameters?.experiment ?? null) === name)?.details;
  const head = records.find((i) => typeof detail(i, "title") === "string") ?? null;
  const field = (f) => described?.[f] ?? (head === null ? null : detail(head, f));
  return Object.fromEntries(["title", "explanation", "y_name", "log_x", "log_y"].map((f) => [f, field(f)]));
}
const experimentName = (i) => plain(parameter(i, "experiment"));
// "castin-adversarial, mask none" is a figure of castin-adversarial
const experimentOf = (i) => experimentName(i).split(",")[0];

// What was found, in a sentence: whether the claim of the paper is seen, where the program has said so;
// otherwise how close the two sides come, or the least value.
function reproducedHeadline(records) {
  // the title of its figure; of several figures, the name that they have in common
  const titleOf = (all) => {
    const names = [...new Set(all.map(experimentName))];
    return names.length > 1 ? experimentOf(all[0]) : plain(aboutOf(names[0], all).title ?? names[0]);
  };
  return [...groupBy(records, (i) => `${get(i, "file")} ${experimentOf(i)}`)]
      .map(([key, all]) => {
        const said = data.findings[key];
        return `${titleOf(all)}${typeof said === "string" ? `. ${capital(said)}` : `: ${sidesWords(all)}`}`;
      })
      .join(" ");
}
// where a record is drawn: where it was asked, or where its answer says
const drawnAt = (i) => detail(i, "drawn_at") ?? parameter(i, "x");
function sidesWords(records) {
  const at = (i) =>
      `${plain(parameter(i, "series"))} at ${plain(parameter(i, "x_name"))} = ${plain(drawnAt(i))}`;
  const both = records.filter((i) => lowerLog(i) !== null && upperLog(i) !== null);
  const ratio = (i) => ratioLog(upperLog(i), lowerLog(i));
  if (both.length) {
    const [close, far] = [best(both, (i) => -ratio(i)), best(both, ratio)];
    return `above / below lies between ${shownLog(ratio(close), 3)} (${at(close)}) and ${
        shownLog(ratio(far), 3)} (${at(far)}) over ${plural(both.length, "point")}.`;
  }
  const values = records.filter((i) => num(i, "value") !== null);
  if (values.length) {
    const least = best(values, (i) => -num(i, "value"));
    return `of ${plural(values.length, "value")} the least is ${shown(num(least, "value"))} (${at(least)}).`;
  }
  const low = best(records, lowerLog);
  return low === null ? `${plural(records.length, "record")}.` :
                        `the largest from below is ${shown(num(low, "lower"))} (${at(low)}).`;
}

function curvesOf(name, records, {logX, logY, xName}) {
  const scaled = (v, log) => (v === null ? null : log ? log10Of(v) : v);
  const curves = [];
  let k = 0;
  for (const [series, all] of groupBy(records, (i) => plain(parameter(i, "series")))) {
    const [colourName, shape] = [palette[k % palette.length], Math.floor(k / palette.length)];
    const points = (yOf) => all.map((i) => {
                                 const x = drawnAt(i);
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
        shape,
        line: !cloud,
        dots: low.length > 80 ? 2 : 3
      });
    // a loss is on neither side
    if (value.length)
      curves.push({name: label, points: value, colourName, shape, dots: value.length > 80 ? 2 : 3});
    const fit = data.growth.find(
        (g) => plain(g.parameters?.experiment ?? null) === name &&
            plain(g.parameters.series ?? null) === series);
    if (fit && logX && logY && low.length)
      curves.push({
        name: `${label}: ${shown(fit.constant, 3)}·${xName}^${shown(fit.exponent, 2)}`,
        points: [low[0], low.at(-1)].map(({x}) => ({x, y: Math.log10(fit.constant) + fit.exponent * x})),
        colourName,
        shape,
        dots: 0
      });
    if (up.length)
      curves.push({
        name: low.length ? `${label}, from above` : `${label} (from above)`,
        points: up,
        colourName,
        shape,
        dashed: true,
        dots: 2
      });
  }
  return curves;
}

function experimentSection(name, records) {
  const about = aboutOf(name, records);
  const xName = records.map((i) => parameter(i, "x_name")).find((x) => typeof x === "string") ?? "x";
  const [logX, logY] = [about.log_x === true, about.log_y === true];
  const curves = curvesOf(name, records, {logX, logY, xName});
  if (!curves.length) return null;
  const title = typeof about.title === "string" ? about.title : name;
  const id = `experiment-${records[0]}`;
  return section(
      id, title, typeof about.explanation === "string" && el("p", null, about.explanation), curveFigure({
        id: `${id}-chart`,
        label: `${title}: ${plural(curves.length, "curve")}`,
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
