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
const questionKey = (i, more = []) =>
    JSON.stringify([...[...questionFields, ...more].map((f) => get(i, f)), textOf(i)]);
const radiusWords = (i) =>
    (num(i, "radius_max") === null ? "" : `, radius ${shown(num(i, "radius_max"), 3)}`);
const questionWords = (i) => `${placeOf(i)}, ${kindWords[get(i, "kind")] ?? get(i, "kind")}, norm ${
    get(i, "norm")}, n = ${get(i, "n") ?? "any"}${radiusWords(i)}`;

// What is asked of a bound: a place, a length and a radius. Bounds that hold everywhere stand beside those of
// every radius. [{i: the best, all: from the best on}]
function boundQuestions(records) {
  const known = records.filter((i) => upperLog(i) !== null);
  const fields = ["file", "model", "layer", "head", "map", "kind", "mask", "norm", "n"];
  return [...groupBy(known, (i) => JSON.stringify(fields.map((f) => get(i, f)))).values()].flatMap((same) => {
    const everywhere = same.filter((i) => get(i, "scope") === "everywhere");
    const within = groupBy(
        same.filter((i) => get(i, "scope") !== "everywhere"),
        (i) => JSON.stringify([get(i, "radius_max"), get(i, "scope")]));
    return (within.size ? [...within.values()] : [[]]).map((ball) => {
      const all = [...ball, ...everywhere].sort((a, b) => upperLog(a) - upperLog(b));
      return {i: all[0], asked: ball[0] ?? all[0], all};
    });
  });
}

function boundHeadline(records) {
  const questions = boundQuestions(records);
  if (!questions.length) {
    const most = best(records, lowerLog);
    return most === null ?
        "Nothing is bounded here." :
        `No bound holds over all inputs: ${placeOf(most)} reacts ${times(num(most, "lower"))}${
            log10Of(parameter(most, "t")) === null ?
                "" :
                ` at t = ${shown(parameter(most, "t"))}`}, and more beyond.`;
  }
  const asked = (q) => `${placeOf(q.asked)}, n = ${plain(get(q.asked, "n") ?? "any")}${radiusWords(q.asked)}`;
  const by = (q) => (get(q.i, "upper_by") ? `, ${plain(get(q.i, "upper_by"))}` : "");
  questions.sort((a, b) => upperLog(a.i) - upperLog(b.i));
  const [low, high] = [questions[0], questions.at(-1)];
  if (questions.length === 1)
    return `No small change comes out more than ${shownLog(upperLog(low.i))} times as large (${asked(low)}${
        by(low)}), ${scopeWords(get(low.i, "scope"))}.`;
  return `Of ${count(questions.length)} questions, the best bounds go from ${shownLog(upperLog(low.i))} (${
      asked(low)}${by(low)}) to ${shownLog(upperLog(high.i))} (${asked(high)}${by(high)}).`;
}

function boundSection(records) {
  const merged = new Map(boundQuestions(records).map((q, k) => [k, [q.asked, ...q.all]]));
  if (!merged.size) return witnessSection(records);
  return section(
      "bounds", "Bounds from above",
      el("p", null,
         "What the constant can never exceed, for any input in the scope of the bound. Each bar is a theorem; the shortest is the best."),
      chooser("Of", merged, questionWords, ([asked, ...all]) => {
        const bars = all.slice(0, 60).map(
            (i, k) => ({
              name: plain(get(i, "upper_by") ?? "bound"),
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
              `${capital(questionWords(asked))}. Best: ${bars[0].name}, at most ${shownAbove(bars[0].log)}.`
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

const searchKey = (i) => questionKey(i, ["n", "radius_max"]);

function searchHeadline(records) {
  const found = best(records, lowerLog);
  if (found === null) return "Nothing was found.";
  const same = records.filter((i) => searchKey(i) === searchKey(found) && upperLog(i) !== null);
  const up = best(same, (i) => -upperLog(i));
  const questions = new Set(records.map(searchKey)).size;
  return `${
      questions > 1 ? `The largest of ${count(questions)} searches: the` : "The"} worst input found reacts ${
      times(num(found, "lower"))} (${placeOf(found)}, n = ${plain(get(found, "n"))}${radiusWords(found)})${
      up === null ? "; nothing bounds it from above." :
                    `; none can react more than ${shownAbove(upperLog(up))} times, above / below ${
                        ratioShown(upperLog(up), lowerLog(found))}.`}`;
}

function searchSection(records) {
  const groups = groupBy(records, searchKey);
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
                     (up !== null ? `; none can react more than ${shownAbove(up)} times: above / below ${
                                        ratioShown(up, lowerLog(found))}.` :
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
  __proto__: null,
  invert: [
    "Inverted residual attention",
    "How far the input that was found is from the one that was given, and what is proved of that distance.",
    "error (log scale)"
  ],
  meanfield: [
    "Weighted tokens",
    "Tokens as a measure: how much further apart two close measures can come out, in the Wasserstein distance."
  ],
};
function anySection(command, records) {
  const known = records.filter((i) => lowerLog(i) !== null || upperLog(i) !== null || whpLog(i) !== null);
  if (!known.length) return null;
  const [title, words, xTitle] = introductions[command] ?? [capital(command), ""];
  const several = (f) => distinct(known, f).length > 1;
  const asked =
      [...columns.keys()].filter((f) => f.startsWith("parameters.") && !f.endsWith("_sha256") && several(f));
  const severalTexts = new Set(known.map(textOf)).size > 1;
  const name =
      (i, radius) => [several("file") ? fileName(i) : null,
                      several("model") ? shortName(get(i, "model")) : null,
                      severalTexts ? shortName(textOf(i) ?? "text unknown") : null,
                      several("layer") || several("head") ? placeOf(i) : null,
                      several("n") && get(i, "n") !== null ? `n = ${plain(get(i, "n"))}` : null,
                      several("norm") ? `norm ${plain(get(i, "norm"))}` : null,
                      radius && several("radius_max") && num(i, "radius_max") !== null ?
                          `radius ${shown(num(i, "radius_max"), 3)}` :
                          null,
                      get(i, "lower_by") ?? get(i, "upper_by"),
                      several("sample") ? `sample ${plain(get(i, "sample"))}` : null,
                      ...asked.map((f) => (get(i, f) === null ? null : `${nameOf(f)} ${plain(get(i, f))}`)),
  ].filter(Boolean).join(", ") ||
      "record";
  // names of files stay as they are
  const named = several("file") || several("model") || severalTexts;
  // the radius only where nothing else tells rows apart
  const radius = new Set(known.map((i) => name(i, false))).size < known.length;
  return section(`command-${records[0]}`, title, words && el("p", null, words), rangeFigure({
                   id: `any-${records[0]}`,
                   label: `${title}: from below and from above`,
                   rows: known.map((i) => rangeRow(i, named ? name(i, radius) : capital(name(i, radius)))),
                   caption: "",
                   xTitle
                 }));
}

// Error from below and its bound: how exactly inputs came back.
function invertHeadline(records) {
  const counted = (f) =>
      records.reduce((sum, i) => sum + (typeof detail(i, f) === "number" ? detail(i, f) : 0), 0);
  const back = records.filter(converged).length;
  const [error, bound] = [best(records, lowerLog), best(records, upperLog)];
  const all = records.filter((i) => upperLog(i) !== null).length === records.length;
  const texts = records.every((i) => typeof detail(i, "recovered") === "number");
  const what = texts ? `${count(counted("recovered"))} of ${
                           plural(
                               records.reduce((sum, i) => sum + (num(i, "n") ?? 0), 0),
                               "character")} came back, ${count(counted("proved"))} of them proved` :
                       `${count(back)} of ${plural(records.length, "input")} came back`;
  const largest = records.length > 1 ? "the largest error" : "the error";
  return `${what}${error === null ? "" : `; ${largest} is ${shownLog(lowerLog(error), 3)}`}${
      bound === null ? "; nothing is proved of the error" :
          all        ? `${error === null ? `; ${largest} is` : ", and"       } at most ${
                    shownLog(upperLog(bound), 3)} is proved` :
                       "; it is bounded for some of them alone"       }.`;
}

// Any other: the largest constant, beside what is known of it from above.
function anyHeadline(records) {
  const low = best(records, lowerLog);
  const up = best(records, (i) => (upperLog(i) === null ? null : -upperLog(i)));
  const far = low === null ? null : leastAbove(low);
  const several = records.filter((i) => lowerLog(i) !== null).length;
  if (low !== null)
    return `${several > 1 ? `Largest of ${count(several)}: ` : ""}${placeOf(low)}, ${inputWords(low)}: ${
        get(low, "norm") === "w2" ? "two close measures can come out" : "a small change can come out"} ${
        times(num(low, "lower"))} as ${get(low, "norm") === "w2" ? "far apart" : "large"}${
        far === null ? ". Nothing is known from above." :
                       `, and at most ${shownAbove(far.log)} times, ${far.words}.`}`;
  return up !== null ? `${capital(placeOf(up))}: no small change comes out more than ${
                           shownLog(upperLog(up))} times as large.` :
                       "These records have no constants.";
}

function otherSections() {
  const experiments = allRecords.filter((i) => parameter(i, "experiment") !== null);
  const own = new Set(experiments);
  const rest = groupBy(
      allRecords.filter((i) => !own.has(i) && get(i, "command") !== "measure"),
      (i) => plain(get(i, "command")));
  const sections = [...groupBy(experiments, (i) => `${get(i, "file")} ${experimentName(i)}`).values()].map(
      (records) => experimentSection(experimentName(records[0]), records));
  sections.unshift(runsSection(allRecords.filter(isTraining)));
  for (const [command, records] of rest)
    sections.push(
        command === "bound"       ? boundSection(records) :
            command === "search"  ? searchSection(records) :
            command === "certify" ? certifySection(records) :
                                    anySection(command, records));
  return sections.filter(Boolean);
}
