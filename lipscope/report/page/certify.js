// ---- certify.js: how many predictions hold, against the size of a change

// log10 of the radius that is proved; null where nothing is.
const provedLog = (i) =>
    lowerLog(i) ?? (typeof detail(i, "lower_log10") === "number" ? detail(i, "lower_log10") : null);

// The positions of one model over one text, with the medians of both sides as log10: where nothing is proved
// the radius is 0, and where no attack was found it is infinite.
function certifiedGroups(records) {
  const key = (i) =>
      JSON.stringify([...["file", "model", "kind", "parameters.split"].map((f) => get(i, f)), textOf(i)]);
  const groups = [...groupBy(records, key).values()];
  const several = (f) => new Set(groups.map((all) => plain(f(all[0])))).size > 1;
  const parts = [
    [(i) => shortName(get(i, "model")), several((i) => get(i, "model"))],
    [(i) => plain(get(i, "kind")), several((i) => get(i, "kind")) && !several((i) => get(i, "model"))],
    [(i) => shortName(textOf(i)), several(textOf)],
    [(i) => plain(parameter(i, "split")), several((i) => parameter(i, "split"))],
    [fileName, several((i) => get(i, "file")) && !several((i) => get(i, "model"))],
  ].filter(([, differs]) => differs);
  return groups.map((all) => ({
                      all,
                      name: parts.map(([name]) => name(all[0])).join(", ") || shortName(get(all[0], "model")),
                      proved: all.map(provedLog).filter((v) => v !== null),
                      found: all.map(upperLog).filter((v) => v !== null),
                      holds: medianLog(all.map((i) => provedLog(i) ?? -Infinity)),
                      breaks: medianLog(all.map((i) => upperLog(i) ?? Infinity)),
                    }));
}

// As certify prints it.
const radiusShown = (log) => log === -Infinity ? "0" :
    log === Infinity                           ? "no known size" :
    log < -6                                   ? `10^${log.toFixed(2)}` :
                                                 shownLog(log, Math.floor(log) < -3 ? 6 : 5);

function certifiedHeadline(records) {
  const groups = certifiedGroups(records).sort((a, b) => b.holds - a.holds);
  const [first, second] = groups;
  const tied = second !== undefined && first.holds === second.holds;
  const ratio = second === undefined || tied || second.holds === -Infinity ?
      "" :
      `, ${ratioShown(first.holds, second.holds)} times that of the next, ${second.name}`;
  // the median is infinite where no more than half were broken
  const broken = first.breaks === Infinity ? "at most half of the predictions" :
                                             `a prediction at a median of ${radiusShown(first.breaks)}`;
  const says = `a radius is proved at ${percent(first.proved.length / first.all.length)} of ${
      plural(
          first.all.length,
          "position")}, of median ${radiusShown(first.holds)}${ratio}; the attack breaks ${broken}.`;
  if (second === undefined) return capital(says);
  const who = tied ? `${first.name} and ${second.name} hold` : `${first.name} holds`;
  return `Of ${count(groups.length)} sets of predictions, ${who} furthest: ${says}`;
}

// Shares of the positions in percent over log10 of a radius r, both falling:
//   proved to hold   of which the proved radius is at least r
//   not broken       of which no change of size r or less is known that breaks them
function heldCurve(logs, size, ends) {
  const sorted = [...logs].sort((a, b) => a - b);
  const points = sorted.map((x, k) => ({x, y: 100 * (sorted.length - k) / size}));
  return [{x: ends[0], y: 100 * sorted.length / size}, ...points, {x: ends[1], y: 0}];
}
function unbrokenCurve(logs, size, ends) {
  const sorted = [...logs].sort((a, b) => a - b);
  const points = sorted.map((x, k) => ({x, y: 100 * (size - k - 1) / size}));
  return [{x: ends[0], y: 100}, ...points, {x: ends[1], y: 100 * (size - sorted.length) / size}];
}

function certifySection(records) {
  const groups = certifiedGroups(records);
  const all = groups.flatMap((g) => [...g.proved, ...g.found]);
  if (!all.length) return null;
  const ends = [all.reduce((a, b) => Math.min(a, b)) - 0.05, all.reduce((a, b) => Math.max(a, b)) + 0.05];
  const curves = groups.flatMap((g, k) => {
    const name = groups.length > 1 ? `${g.name}: ` : "";
    const colourName = palette[k % palette.length];
    return [
      g.proved.length > 0 && {
        name: `${name}proved to hold`,
        points: heldCurve(g.proved, g.all.length, ends),
        colourName,
        dots: 0,
        stepped: "after"
      },
      g.found.length > 0 && {
        name: `${name}not broken by the attack`,
        points: unbrokenCurve(g.found, g.all.length, ends),
        colourName,
        dashed: true,
        dots: 0,
        stepped: "before"
      },
    ].filter(Boolean);
  });
  const words = groups.map(
      (g) => `${groups.length > 1 ? `${g.name}: ` : ""}proved ${radiusShown(g.holds)}, attacked at ${
          radiusShown(g.breaks)}, over ${plural(g.all.length, "position")}`);
  return section(
      "certify", "How far predictions hold",
      el("p", null,
         "After each token of a text the model predicts the next. Both curves are the share of predictions that stand under every change of a given size: at least those that are proved to hold, at most those that the attack has not broken. Between the two curves nothing is known."),
      curveFigure({
        id: "certify-chart",
        label: `Shares of positions that hold, from below and from above: ${plural(curves.length, "curve")}`,
        curves,
        x: {log: true, title: "size of the change (log scale)"},
        y: {
          title: "share of the positions, %",
          more: {
            min: 0,
            max: 104,
            grace: 0,
            afterBuildTicks: (axis) => (axis.ticks = [0, 20, 40, 60, 80, 100].map((value) => ({value})))
          }
        },
        height: 380,
        caption:
            `The size is the Frobenius norm of the change of the embeddings. Medians: ${words.join("; ")}.`,
        head: ["", "radius", "share of the positions"],
        rows: () => curves.flatMap((c) => [0, 0.1, 0.25, 0.5, 0.75, 0.9, 1].map((q) => {
          const p = c.points[Math.floor(q * (c.points.length - 1))];
          return [c.name, shownLog(p.x), `${shown(p.y, 3)} %`];
        }))
      }));
}
