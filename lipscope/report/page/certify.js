// ---- certify.js: how many predictions hold, against the size of a change

const provedLog = (i) =>
    lowerLog(i) ?? (typeof detail(i, "lower_log10") === "number" ? detail(i, "lower_log10") : null);

// Shares of the positions over a radius: those of which the value is at least that (falling), or at most
// (rising). Positions without a value never are.
function shareCurve(values, count, falling) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.map((x, k) => ({x, y: 100 * (falling ? sorted.length - k : k + 1) / count}));
}

function certifySection(records) {
  const groups = groupBy(records, (i) => JSON.stringify(["file", "model", "kind"].map((f) => get(i, f))));
  const colours = ["below", "above", "whp", "muted"];
  const curves = [];
  const words = [];
  let k = 0;
  for (const all of groups.values()) {
    const colourName = colours[k++ % colours.length];
    const name = groups.size > 1 ? `${get(all[0], "model")}, ` : "";
    const proved = all.map(provedLog).filter((v) => v !== null);
    const found = all.map(upperLog).filter((v) => v !== null);
    const curve = (title, values, falling) => values.length && curves.push({
      name: name + title,
      points: shareCurve(values, all.length, falling),
      colourName,
      dashed: !falling,
      dots: 0,
      stepped: falling ? "after" : "before",
    });
    curve("proved to hold", proved, true);
    curve("changed by an attack", found, false);
    // what at least half of the positions reach; those without a value never do
    const half = (values, falling) => {
      const sorted = [...values].sort((a, b) => (falling ? b - a : a - b));
      return sorted[Math.ceil(all.length / 2) - 1] ?? null;
    };
    const [holds, changes] = [half(proved, true), half(found, false)];
    words.push(`${name || "in this model "}half of ${plural(all.length, "position")} ${
        holds === null ? "have no proof" : `are proved to hold within ${shownLog(holds)}`}${
        changes === null ? "" : `, and half are changed within ${shownLog(changes)}`}`);
  }
  if (!curves.length) return null;
  return section(
      "certify", "How far predictions hold",
      el("p", null,
         "After each character of a text the model predicts the next. Within a radius that is proved, no change of the embeddings changes that; an attack looks for the nearest change that does. Between the two curves nothing is known."),
      curveFigure({
        id: "certify-chart",
        label: `Shares of positions that hold and that change: ${plural(curves.length, "curve")}`,
        curves,
        x: {log: true, title: "size of the change of the embeddings (Frobenius norm, log scale)"},
        y: {title: "share of the positions, %"},
        height: 380,
        caption: `${capital(words.join("; "))}.`,
        head: ["", "radius", "share of the positions"],
        rows: () => curves.flatMap((c) => [0, 0.1, 0.25, 0.5, 0.75, 0.9, 1].map((q) => {
          const p = c.points[Math.floor(q * (c.points.length - 1))];
          return [c.name, shownLog(p.x), `${shown(p.y, 3)} %`];
        }))
      }));
}
