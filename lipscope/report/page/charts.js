// ---- charts.js: the kinds of figures

// One line for each row: what is known from below and from above, on one scale of logarithms.
// rows: [{name, record, lower, whp, upper, upperBy}], all but name as log10 or null
function rangeFigure({id, label, rows, caption, xTitle = "constant (log scale)"}) {
  const any = (side) => rows.some((r) => r[side] !== null);
  const most = (r) => (r.upper !== null && (r.whp === null || r.upper <= r.whp) ? r.upper : r.whp);
  const gap = (r) => ratioLog(most(r), r.lower);
  const drawn = rows.slice(0, 120);
  const {labels, row} = rowNames(drawn.map((r) => r.name));
  const points = (side, style, radius) => ({
    type: "line",
    label: side,
    data: drawn.map((r) => r[side]),
    showLine: false,
    pointStyle: style,
    pointRadius: radius,
    pointHoverRadius: radius + 2,
    backgroundColor: colour({lower: "below", whp: "whp", upper: "above"}[side]),
    borderColor: colour({lower: "below", whp: "whp", upper: "above"}[side]),
  });
  return figure({
    id,
    label,
    height: 64 + row * Math.max(2, drawn.length),
    legend: [any("lower") && below(), any("whp") && whp(), any("upper") && above()].filter(Boolean),
    caption: [
      caption, rows.length > drawn.length && ` The first ${drawn.length} of ${count(rows.length)} are drawn.`
    ],
    head: ["", "from below", "whp", "from above", "by", "above / below"],
    rows: () => rows.map(
        (r) =>
            [r.name, shownLog(r.lower), shownLog(r.whp), shownLog(r.upper), r.upperBy ?? "–",
             shownLog(gap(r), 3)]),
    make: () => ({
      type: "bar",
      data: {
        labels,
        datasets: [
          points("lower", "circle", 5),
          points("whp", "rectRot", 5),
          points("upper", "rect", 5),
          {
            type: "bar",
            label: "gap",
            // through all that is known from above
            data: drawn.map(
                (r) => (gap(r) === null ? null : [r.lower, Math.max(r.whp ?? r.upper, r.upper ?? r.whp)])),
            barThickness: 3,
            backgroundColor: colour("line")
          },
        ],
      },
      options: {
        indexAxis: "y",
        interaction: {mode: "index", axis: "y", intersect: false},
        scales: {
          x: {...logAxis(xTitle), beginAtZero: false},
          y: {grid: {display: false}, ticks: {autoSkip: false}}
        },
        plugins: {
          tooltip: {
            filter: (item) => item.datasetIndex === 0,
            callbacks: {
              title: ([item]) => drawn[item.dataIndex].name,
              label(item) {
                const r = drawn[item.dataIndex];
                return [
                  r.lower !== null && `at least ${shownBelow(r.lower)}`,
                  r.whp !== null && `at most ${shownAbove(r.whp)}, but for a stated chance`,
                  r.upper !== null &&
                      `at most ${shownAbove(r.upper)}, proved${r.upperBy ? ` by ${r.upperBy}` : ""}`,
                  gap(r) !== null && `above / below: ${shownLog(gap(r), 3)}`,
                ].filter(Boolean);
              },
            },
          },
        },
      },
    }),
  });
}
const rangeRow = (i, name) =>
    ({name, lower: lowerLog(i), whp: whpLog(i), upper: upperLog(i), upperBy: get(i, "upper_by")});

// The constants of one layer or head against the length, coloured by the radius of their sequences.
function growthFigure(records, fit) {
  const points = [];
  for (const i of records)
    if (lowerLog(i) !== null && num(i, "n") > 0) points.push({x: Math.log10(num(i, "n")), y: lowerLog(i), i});
  const radii = points.map((p) => num(p.i, "radius_rms")).filter((r) => r !== null);
  const [least, most] =
      [radii.reduce((a, b) => Math.min(a, b), Infinity), radii.reduce((a, b) => Math.max(a, b), -Infinity)];
  const tint = (i) => {
    const r = num(i, "radius_rms");
    return r === null || most <= least ? 1 : (r - least) / (most - least);
  };
  const xs = points.map((p) => p.x);
  const ends =
      [xs.reduce((a, b) => Math.min(a, b), Infinity), xs.reduce((a, b) => Math.max(a, b), -Infinity)];
  const curves =
      [{name: "measured", points, line: false, dots: 4, quiet: true, colours: (p) => ramp(tint(p.i))}];
  if (fit && ends[1] > ends[0]) {
    const at = (x) => Math.log10(fit.constant) + fit.exponent * x;
    curves.push({
      name: `fit: ${shown(fit.constant, 3)}·n^${shown(fit.exponent, 2)}`,
      points: ends.map((x) => ({x, y: at(x)})),
      dots: 0,
      colourName: "whp"
    });
    curves.push({
      name: "as √n",
      points: ends.map((x) => ({x, y: at(ends[0]) + (x - ends[0]) / 2})),
      dots: 0,
      dashed: true,
      colourName: "muted"
    });
  }
  return curveFigure({
    id: "growth",
    label: `Scatter of ${plural(points.length, "measured constant")} against the number of tokens`,
    curves,
    x: {log: true, title: "tokens n (log scale)"},
    y: {log: true, title: "constant, from below (log scale)"},
    legend: radii.length && most > least ? [el("span", null, `radius of the sequence ${shown(least, 3)}`,
                                               el("i", {class: "ramp"}), shown(most, 3))] :
                                           [],
    caption: "Each point is one sequence. The radius is the root of the mean squared token norm.",
    head: ["tokens", "sample", "radius", "from below"],
    rows: () => points.map(
        (p) =>
            [shown(num(p.i, "n")), shown(num(p.i, "sample")), shown(num(p.i, "radius_rms")),
             shown(num(p.i, "lower"))]),
    tip: (p) => p.i === undefined ?
        undefined :
        [
          `at least ${lowerShown(p.i)}${converged(p.i) ? "" : " (not converged)"}`,
          `${plural(num(p.i, "n"), "token")}, sample ${get(p.i, "sample") ?? "–"}, radius ${
              shown(num(p.i, "radius_rms"))}`,
        ],
  });
}

// Exponents with their intervals, beside the rates of the papers.
function exponentFigure(fits, known) {
  const names = fits.map((g) => capital(place(g.layer ?? null, g.head ?? null, "the layer")));
  const {labels, row} = rowNames(names);
  return figure({
    id: "exponents",
    label: `Growth exponents of ${plural(fits.length, "map")}`,
    height: 90 + row * Math.max(2, fits.length),
    caption: `n^exponent through the measured constants, with ${
                 percent(fits[0].confidence ?? 0.95)} intervals. Dashed: ` +
        known.map(([, rate, why]) => (why ? `${rate}, ${why}` : rate)).join("; ") + ".",
    head: ["", "exponent", "low", "high", "points", "r squared"],
    rows: () => fits.map(
        (g, k) =>
            [names[k], shown(g.exponent, 3), shown(g.exponent_low, 3), shown(g.exponent_high, 3),
             shown(g.points), shown(g.r_squared, 3)]),
    make: () => ({
      type: "bar",
      data: {
        labels,
        datasets: [
          {
            type: "line",
            label: "exponent",
            data: fits.map((g) => g.exponent),
            showLine: false,
            pointRadius: 5,
            pointHoverRadius: 7,
            backgroundColor: colour("below"),
            borderColor: colour("below")
          },
          {
            type: "bar",
            label: "interval",
            data: fits.map((g) => [g.exponent_low, g.exponent_high]),
            barThickness: 3,
            backgroundColor: colour("below")
          },
        ],
      },
      plugins: [marks("x", known.map(([value, name]) => ({value, name})))],
      options: {
        indexAxis: "y",
        layout: {padding: {top: 18, right: 24}},
        interaction: {mode: "index", axis: "y", intersect: false},
        scales: {
          x: {
            ...linearAxis("exponent of n"),
            suggestedMin: Math.min(0, ...known.map((k) => k[0])) - 0.05,
            suggestedMax: Math.max(...known.map((k) => k[0])) + 0.05
          },
          y: {grid: {display: false}, ticks: {autoSkip: false}},
        },
        plugins: {
          tooltip: {
            filter: (item) => item.datasetIndex === 0,
            callbacks: {
              title: ([item]) => names[item.dataIndex],
              label: (item) => {
                const g = fits[item.dataIndex];
                return `${shown(g.exponent, 3)}, between ${shown(g.exponent_low, 3)} and ${
                    shown(g.exponent_high, 3)}`;
              }
            },
          },
        },
      },
    }),
  });
}

// Bars from 1, by name: bounds. bars: [{name, log, best, note}]
function barFigure({id, label, bars, caption}) {
  const {labels, row} = rowNames(bars.map((b) => b.name));
  return figure({
    id,
    label,
    height: 64 + (row + 4) * Math.max(2, bars.length),
    caption,
    head: ["", "at most", "log10", ""],
    rows: () => bars.map((b) => [b.name, shownLog(b.log), shown(b.log), b.note]),
    make: () => ({
      type: "bar",
      data: {
        labels,
        datasets: [{
          label: "at most",
          data: bars.map((b) => b.log),
          maxBarThickness: 16,
          backgroundColor: bars.map((b) => colour(b.best ? "above" : "muted"))
        }]
      },
      options: {
        indexAxis: "y",
        interaction: {mode: "index", axis: "y", intersect: false},
        scales: {x: logAxis("at most (log scale)"), y: {grid: {display: false}, ticks: {autoSkip: false}}},
        plugins: {
          tooltip: {
            callbacks: {
              title: ([item]) => bars[item.dataIndex].name,
              label: (item) => {
                const b = bars[item.dataIndex];
                return [`at most ${shownAbove(b.log)}`, b.note].filter(Boolean);
              }
            }
          }
        },
      },
    }),
  });
}
