// ---- train.js: what a run that learnt came to

// One run a folder: its last test loss, its least validation loss, and the largest constant beside its limit.
function runsOf(records) {
  return [...groupBy(records, (i) => JSON.stringify([get(i, "file"), get(i, "model")])).values()].map(
      (all) => {
        const series = (name) =>
            all.filter((i) => plain(parameter(i, "series")) === name && num(i, "value") !== null);
        const bestValid = best(series("valid"), (i) => -num(i, "value"));
        const promised = all.filter((i) => typeof parameter(i, "limit") === "number" && upperLog(i) !== null);
        return {
          name: shortName(get(all[0], "model")),
          test: series("test").length ? num(series("test").at(-1), "value") : null,
          valid: bestValid === null ? null : num(bestValid, "value"),
          step: bestValid === null ? null : parameter(bestValid, "x"),
          limit: promised.length ? parameter(promised.at(-1), "limit") : null,
          constant: best(promised, upperLog),
        };
      });
}

function promiseWords(run) {
  if (run.constant === null) return "";
  const kept = upperLog(run.constant) <= Math.log10(run.limit);
  return ` Promise ${kept ? "kept" : "BROKEN"}: the constant of ${run.name} was at most ${
      shownLog(upperLog(run.constant))}, promised ${shown(run.limit)}.`;
}

function trainedHeadline(records) {
  const runs = runsOf(records).filter((r) => r.valid !== null || r.test !== null);
  if (!runs.length) return reproducedHeadline(records);
  // all by the same text
  const by = runs.every((r) => r.test !== null) ? "test" :
      runs.every((r) => r.valid !== null)       ? "valid" :
                                                  null;
  if (by === null) return `${count(runs.length)} runs, of which not all have a loss on the same text.`;
  runs.sort((a, b) => a[by] - b[by]);
  const [first, second] = runs;
  const text = by === "test" ? "the test text" : "the validation text";
  const loss = `${shown(first[by], 4)} nats a character on ${text}`;
  const told = by === "test" && first.valid !== null ?
      `, with the weights of step ${plain(first.step)}, where the validation loss was least (${
          shown(first.valid, 4)})` :
      first.step === null ? "" :
                            `, at step ${plain(first.step)}`;
  if (runs.length === 1) return `The run ${first.name} learnt to ${loss}${told}.${promiseWords(first)}`;
  const tied = first[by] === second[by];
  return `Of ${count(runs.length)} runs, ${
      tied ? `${first.name} and ${second.name} are best, equally` : `${first.name} is best`}: ${loss}${
      tied ? "" : `, ${shown(second[by] - first[by], 3)} less than the next, ${second.name}`}.${
      runs.map(promiseWords).join("")}`;
}

// The runs side by side, where there are several.
function runsSection(records) {
  const groups = [...groupBy(records, (i) => JSON.stringify([get(i, "file"), get(i, "model")])).values()];
  const curves =
      groups
          .map((all) => ({
                 name: shortName(get(all[0], "model")),
                 points: all.filter(
                                (i) => plain(parameter(i, "series")) === "valid" &&
                                    num(i, "value") !== null && typeof parameter(i, "x") === "number")
                             .map((i) => ({x: parameter(i, "x"), y: num(i, "value"), i}))
                             .sort((a, b) => a.x - b.x)
               }))
          .filter((c) => c.points.length);
  if (curves.length < 2) return null;
  return section(
      "runs", "The runs side by side",
      el("p", null, "The loss on the validation text, in nats a character; lower is better."), curveFigure({
        id: "runs-chart",
        label: `Validation losses of ${plural(curves.length, "run")}`,
        curves,
        x: {title: "step", whole: true},
        y: {title: "nats a character"},
        head: ["run", "step", "nats a character"],
        rows: () => curves.flatMap((c) => c.points.map((p) => [c.name, shown(p.x), shown(p.y)]))
      }));
}
