// ---- curves.js: curves and clouds of points over two axes

const palette = ["below", "whp", "above", "muted", "fifth", "sixth"];

// The height of a curve at x, between its points; null beside it.
function heightAt(points, x) {
  const k = points.findIndex((p) => p.x >= x);
  if (k < 0) return null;
  if (points[k].x === x) return points[k].y;
  if (k === 0) return null;
  const [a, b] = [points[k - 1], points[k]];
  return a.y + (b.y - a.y) * (x - a.x) / (b.x - a.x);
}

// For each curve the first one before it that it lies on, altogether or for a good part (at least three
// points, and three in ten): {on: its number, part}, or null.
function coinciding(curves) {
  const all = curves.flatMap((c) => c.points);
  const range =
      all.reduce((m, p) => Math.max(m, p.y), -Infinity) - all.reduce((m, p) => Math.min(m, p.y), Infinity);
  const near = (a, b) => a !== null && b !== null && Math.abs(a - b) <= 0.005 * range;
  const isLine = (c) => c.line ?? true;
  // clouds of thousands of points are not looked through
  const looked = (c) => c.points.length > 0 && c.points.length <= 500;
  const part = (a, b) => {
    if (isLine(a) !== isLine(b) || (a.stepped ?? false) !== (b.stepped ?? false)) return 0;
    const on = isLine(a) ? a.points.filter((p) => near(heightAt(b.points, p.x), p.y)) :
                           a.points.filter((p, k) => b.points[k]?.x === p.x && near(p.y, b.points[k].y));
    const share = on.length / a.points.length;
    return share === 1 || (on.length >= 3 && share >= 0.3) ? share : 0;
  };
  return curves.map((c, k) => {
    if (!looked(c)) return null;
    for (let j = 0; j < k; ++j) {
      const on = looked(curves[j]) ? part(c, curves[j]) : 0;
      if (on > 0) return {on: j, part: on};
    }
    return null;
  });
}
const howMuch = (part) => (part === 1 ? "" : part >= 0.5 ? "mostly " : "partly ");
const coincidingWords = (c, found, curves) =>
    (found === null ? c.name : `${c.name} (${howMuch(found.part)}coincides with ${curves[found.on].name})`);

// Of curves on one another the first is drawn as ever; the others lie on it, each in dashes of its own place,
// and mark their points with wider rings.
function lineStyle(curves, k, found) {
  const first = (j) => (found[j] === null ? j : first(found[j].on));
  const group = curves.flatMap((_, j) => (first(j) === first(k) ? [j] : []));
  const c = curves[k];
  const dots = c.dots ?? 3;
  const at = group.indexOf(k);
  if (at === 0) return {borderDash: c.dashed ? [5, 4] : [], pointRadius: dots, pointBorderWidth: 0};
  return {
    borderDash: [7, 7 * (group.length - 1)],
    borderDashOffset: -7 * (at - 1),
    order: -at,
    pointRadius: dots === 0 ? 0 : dots + 1.8 * Math.min(at, 5),
    pointBorderWidth: 1.2,
    backgroundColor: "transparent"
  };
}

// Where there are more curves than colours, they differ by the shape of their points too.
const shapes = [["circle", ""], ["triangle", "▲ "], ["rect", "■ "], ["rectRot", "◆ "]];

// Curves: [{name, points: [{x, y, i}], dashed, dots, line, colour, colours}]; x and y are logarithms where
// the axis is.
function curveFigure({id, label, curves, x, y, caption, height = 340, legend, head, rows, tip}) {
  const total = curves.reduce((sum, c) => sum + c.points.length, 0);
  const lines = curves.map((c, k) => ({
                             colourName: palette[k % palette.length],
                             ...c,
                             points: thinned(c.points, Math.ceil(drawnAtMost / Math.max(1, curves.length)))
                           }));
  const drawn = lines.reduce((sum, c) => sum + c.points.length, 0);
  const found = coinciding(lines);
  const keyClass = (c, k) =>
      (c.line === false                  ? "side" :
           c.dashed || found[k] !== null ? "key dashed" :
                                           "key");
  const keys =
      lines.map((c, k) => [c, k])
          .filter(([c]) => !c.quiet)
          .map(
              ([c, k]) =>
                  el("span", null, el("i", {class: keyClass(c, k), vars: {color: `var(--${c.colourName})`}}),
                     shapes[(c.shape ?? 0) % shapes.length][1] + coincidingWords(c, found[k], lines)));
  const dataset = (c, k) => {
    const style = lineStyle(lines, k, found);
    return {
      label: c.name,
      data: c.points,
      showLine: c.line ?? true,
      stepped: c.stepped ?? false,
      borderColor: colour(c.colourName),
      borderWidth: 1.75,
      backgroundColor: c.colours ? c.points.map(c.colours) : colour(c.colourName),
      pointStyle: shapes[(c.shape ?? 0) % shapes.length][0],
      pointHoverRadius: style.pointRadius + 3,
      pointHitRadius: c.dots === 0 ? 0 : 6,
      ...style
    };
  };
  return figure({
    id,
    label,
    height,
    legend: [...(legend ?? []), ...keys],
    head,
    rows,
    caption: [caption, thinnedWords(drawn, total)],
    make: () => ({
      type: "scatter",
      data: {datasets: lines.map(dataset)},
      options: {
        interaction: {mode: "nearest", intersect: true},
        scales: {
          x: x.log ? logAxis(x.title) : linearAxis(x.title, x.whole),
          y: {...(y.log ? logAxis(y.title) : linearAxis(y.title)), ...y.more}
        },
        plugins: {
          tooltip: {
            callbacks: {
              label: (item) => tip?.(item.raw, item.dataset.label) ?? [
                item.dataset.label,
                `${x.title}: ${x.log ? shownLog(item.raw.x) : shown(item.raw.x)}`,
                `${y.title}: ${y.log ? shownLog(item.raw.y) : shown(item.raw.y)}`,
              ],
            },
          },
        },
      },
    }),
  });
}
