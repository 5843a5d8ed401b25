// ---- figure.js: a chart with its legend, its caption and its numbers

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// A table for those who do not see the chart, or want its numbers.
function numbers(head, rows, most = 200) {
  const about = {class: "small", tabindex: 0, role: "region", "aria-label": "The numbers of the figure"};
  return [
    ...scrollBox(about, plainTable(head, rows.slice(0, most))),
    rows.length > most && el("p", null, `${count(rows.length - most)} more are in the table of records.`)
  ].filter(Boolean);
}

// The numbers are made when they are asked for.
function asTable(head, rows) {
  const box = el("details", null, el("summary", null, "The numbers as a table"));
  box.addEventListener(
      "toggle", () => box.open && box.children.length === 1 && box.append(...numbers(head, rows())),
      {once: false});
  return box;
}

// Figures that stand in the page; charts are drawn once their canvas has a size.
const waiting = [];
function drawWaiting() {
  for (const draw of waiting.splice(0)) draw();
}

// `make` returns the configuration of a chart, with the colours of the moment.
function figure({id, label, height, legend, caption, head, rows, make}) {
  const canvas = el("canvas", {id, role: "img", "aria-label": label});
  const plot = el("div", {class: "plot", vars: {height: `${height}px`}}, canvas);
  waiting.push(() => canvas.isConnected && new Chart(canvas, styled(make())));
  return el(
      "figure", null, legend && el("ul", {class: "legend"}, legend.map((l) => el("li", null, l))), plot,
      caption && el("figcaption", null, caption), saveButton(() => chartSvg(canvas), id),
      rows && asTable(head, rows));
}

function styled(config) {
  const [ink, muted, line, surface] = ["ink", "muted", "line", "surface"].map(colour);
  const font = {family: getComputedStyle(document.body).fontFamily, size: 12};
  config.options = {
    animation: false,
    responsive: true,
    maintainAspectRatio: false,
    font,
    color: muted,
    ...config.options,
    plugins: {
      legend: {display: false},
      ...config.options.plugins,
      tooltip: {
        backgroundColor: surface,
        titleColor: ink,
        bodyColor: ink,
        borderColor: line,
        borderWidth: 1,
        padding: 10,
        displayColors: false,
        titleFont: font,
        bodyFont: font,
        ...config.options.plugins?.tooltip,
      },
    },
  };
  for (const scale of Object.values(config.options.scales)) {
    scale.grid = {color: line, borderColor: line, ...scale.grid};
    scale.ticks = {color: muted, font, ...scale.ticks};
    if (scale.title) scale.title = {display: true, color: muted, font, ...scale.title};
  }
  return config;
}

// Words in lines of at most so many letters; a longer word is cut.
function wrapped(text, letters) {
  const lines = [""];
  for (const word of text.split(" ").map((w) => clipped(w, letters)))
    if (lines.at(-1) === "" || lines.at(-1).length + 1 + word.length <= letters)
      lines.push([lines.pop(), word].filter(Boolean).join(" "));
    else
      lines.push(word);
  return lines;
}
const clipped = (word, most) => (word.length > most ? `${word.slice(0, most - 1)}…` : word);

// Names of rows, in lines that leave room for the chart beside them, and the pixels that a row takes.
const narrow = matchMedia("(max-width: 46rem)");
function rowNames(names) {
  const lines = names.map((name) => wrapped(name, narrow.matches ? 20 : 48));
  const most = lines.reduce((m, l) => Math.max(m, l.length), 1);
  return {labels: lines.map((l) => (l.length === 1 ? l[0] : l)), row: Math.max(24, 8 + 15 * most)};
}

// An axis of logarithms: marks at 1, 2 and 5 times powers of ten, or at powers alone.
function logAxis(title) {
  return {
    type: "linear",
    title: {text: title},
    grace: "4%",
    afterBuildTicks(axis) {
      const span = axis.max - axis.min;
      const step = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((s) => span / s <= 8) ?? Math.ceil(span / 8);
      const of = span > 3 ? [1] : span > 1.2 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8];
      const marks = [];
      for (let e = Math.floor(axis.min / step) * step; e <= axis.max; e += step)
        for (const m of of ) {
          const at = e + Math.log10(m);
          if (at >= axis.min && at <= axis.max) marks.push({value: at});
        }
      if (marks.length > 1) axis.ticks = marks;
    },
    ticks: {callback: (v) => (Math.abs(v) < 6 ? shown(10 ** v, 3) : `10${superscript(Math.round(v))}`)},
  };
}
const linearAxis = (title, whole = false) => ({
  type: "linear",
  title: {text: title},
  grace: "4%",
  ticks: {callback: (v) => (whole && v % 1 ? null : shown(v, 3))}
});

// Lines across a chart at given values of an axis, each with its name.
const marks = (axis, lines) => ({
  id: "marks",
  axis,
  lines,
  afterDatasetsDraw(chart) {
    const {ctx, chartArea: area, scales} = chart;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour("muted");
    ctx.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    ctx.setLineDash([4, 4]);
    for (const {value, name} of lines) {
      const at = scales[axis].getPixelForValue(value);
      if (axis === "x" && (at < area.left || at > area.right)) continue;
      ctx.beginPath();
      ctx.moveTo(at, area.top);
      ctx.lineTo(at, area.bottom);
      ctx.stroke();
      ctx.fillText(name, at + 4, area.top - 6);
    }
    ctx.restore();
  },
});

// A colour between those of the ramp, for t from 0 to 1.
function ramp(t) {
  const parts = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const [low, high] = [parts(colour("ramp-low")), parts(colour("ramp-high"))];
  return `rgb(${low.map((l, k) => Math.round(l + t * (high[k] - l))).join(" ")})`;
}

// At most `limit` points, those with the least and the greatest y at each x among them.
const drawnAtMost = 2000;
function thinned(points, limit = drawnAtMost) {
  if (points.length <= limit) return points;
  const edge = new Map();
  for (const p of points) {
    const [low, high] = edge.get(p.x) ?? [p, p];
    edge.set(p.x, [p.y < low.y ? p : low, p.y > high.y ? p : high]);
  }
  const kept = new Set(edge.size * 2 <= limit ? [...edge.values()].flat() : []);
  const step = points.length / Math.max(1, limit - kept.size);
  for (let k = 0; k < points.length; k += step) kept.add(points[Math.floor(k)]);
  return points.filter((p) => kept.has(p));
}
const thinnedWords = (drawn, of) => drawn < of ?
    ` ${count(drawn)} of ${
        count(of)} points are drawn, the least and the greatest at each place among them where they fit.` :
    "";

function selection(label, options, chosen, change) {
  const list =
      el("select", {on: {change: (e) => change(options[e.target.selectedIndex].value)}},
         options.map((o, k) => el("option", {value: k, selected: o.value === chosen}, o.name)));
  return el("label", null, label, list);
}

const below = () => el("span", null, el("i", {class: "side below"}), "from below, measured");
const whp = () => el("span", null, el("i", {class: "side whp"}), "from above, but for a stated chance");
const above = () => el("span", null, el("i", {class: "side above"}), "from above, proved");
