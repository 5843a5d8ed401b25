// ---- svg.js: figures as vector drawings, written from what the chart has placed

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes ?? {}))
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}
const fixed = (x) => Number(x.toFixed(2));

// A colour as every reader of SVG knows it, its opacity apart.
function paint(colour) {
  const parts = /^rgba?\(([\d.]+)[, ]+([\d.]+)[, ]+([\d.]+)(?:[,/ ]+([\d.]+))?\)$/.exec(colour);
  return parts ? {fill: `rgb(${parts.slice(1, 4).join(",")})`, "fill-opacity": parts[4] ?? null} :
                 {fill: colour};
}

// A button that hands out the drawing that `make` returns.
function saveButton(make, name) {
  return el(
      "button", {
        type: "button",
        class: "save",
        "data-svg": name,
        on: {click: () => handOut(svgFile(make()), `lipscope-${name}.svg`, "image/svg+xml")}
      },
      "Download as SVG");
}
function svgFile(drawing) {
  const copy = drawing.cloneNode(true);
  // on its own ground, so that it can be read wherever it is put
  copy.prepend(svg("rect", {width: "100%", height: "100%", fill: colour("surface")}));
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(copy)}\n`;
}

// ---- charts

function markOf(style, x, y, r) {
  if (style === "rect")
    return [
      "rect",
      {x: fixed(x - 0.71 * r), y: fixed(y - 0.71 * r), width: fixed(1.42 * r), height: fixed(1.42 * r)}
    ];
  if (style === "rectRot")
    return [
      "polygon",
      {points: [[x, y - r], [x + r, y], [x, y + r], [x - r, y]].map((p) => p.map(fixed).join(",")).join(" ")}
    ];
  if (style === "triangle")
    return [
      "polygon", {
        points: [[x, y - r], [x + 0.87 * r, y + 0.5 * r], [x - 0.87 * r, y + 0.5 * r]]
                    .map((p) => p.map(fixed).join(","))
                    .join(" ")
      }
    ];
  return ["circle", {cx: fixed(x), cy: fixed(y), r: fixed(r)}];
}

function drawnPoints(meta) {
  return meta.data
      .filter((p) => !p.skip && Number.isFinite(p.x) && Number.isFinite(p.y) && p.options.radius > 0)
      .map((p) => {
        const [tag, shape] = markOf(p.options.pointStyle, p.x, p.y, p.options.radius);
        const edge = p.options.borderWidth > 0;
        return svg(tag, {
          ...shape,
          class: "point",
          ...paint(p.options.backgroundColor === "transparent" ? "none" : p.options.backgroundColor),
          stroke: edge ? p.options.borderColor : null,
          "stroke-width": edge ? p.options.borderWidth : null
        });
      });
}

function drawnLine(meta) {
  const o = meta.dataset.options;
  let path = "";
  let last = null;
  for (const p of meta.data) {
    if (p.skip || !Number.isFinite(p.x) || !Number.isFinite(p.y)) {
      last = null;
      continue;
    }
    const [x, y] = [fixed(p.x), fixed(p.y)];
    path += last === null ? `M${x} ${y}` :
        o.stepped === "after" ? `V${y}H${x}` :
        o.stepped ? `H${x}V${y}` :
                    `L${x} ${y}`;
    last = p;
  }
  const dash = o.borderDash ?? [];
  return path && svg("path", {
           d: path,
           class: "line",
           fill: "none",
           stroke: o.borderColor,
           "stroke-width": o.borderWidth,
           "stroke-dasharray": dash.length ? dash.join(" ") : null,
           "stroke-dashoffset": dash.length && o.borderDashOffset ? o.borderDashOffset : null
         });
}

function drawnBars(meta) {
  return meta.data.filter((b) => [b.x, b.y, b.base, b.width, b.height].every(Number.isFinite)).map((b) => {
    const box = b.horizontal ? [Math.min(b.x, b.base), b.y - b.height / 2, Math.abs(b.x - b.base), b.height] :
                               [b.x - b.width / 2, Math.min(b.y, b.base), b.width, Math.abs(b.y - b.base)];
    const [x, y, width, height] = box.map(fixed);
    return svg("rect", {x, y, width, height, class: "bar", ...paint(b.options.backgroundColor)});
  });
}

function drawnAxis(scale, area) {
  const {ticks, title, grid} = scale.options;
  const across = scale.isHorizontal();
  const words = {fill: ticks.color, "font-size": 12};
  const marks = scale.ticks.map((tick, k) => {
    const at = fixed(scale.getPixelForTick(k));
    return [
      grid.display !== false && svg("path", {
        d: across ? `M${at} ${fixed(area.top)}V${fixed(area.bottom)}` :
                    `M${fixed(area.left)} ${at}H${fixed(area.right)}`,
        class: "grid",
        stroke: grid.color,
        fill: "none"
      }),
      // a name may have several lines
      [tick.label]
          .flat()
          .filter((line) => line !== null && line !== undefined && line !== "")
          .map(
              (line, j, lines) =>
                  svg("text", {
                    ...words,
                    class: "tick",
                    x: across ? at : fixed(area.left - 8),
                    y: across ? fixed(area.bottom + 18 + 14 * j) :
                                fixed(at + 4 + 14 * (j - (lines.length - 1) / 2)),
                    "text-anchor": across ? "middle" : "end"
                  },
                      String(line)))
    ];
  });
  const [x, y] = across ? [(area.left + area.right) / 2, scale.bottom - 4] :
                          [scale.left + 12, (area.top + area.bottom) / 2];
  return [
    marks,
    title?.text &&
        svg("text", {
          ...words,
          class: "axis",
          x: fixed(x),
          y: fixed(y),
          "text-anchor": "middle",
          transform: across ? null : `rotate(-90 ${fixed(x)} ${fixed(y)})`
        },
            title.text)
  ];
}

// Named lines across the chart (marks of figure.js).
function drawnMarks(chart) {
  const found = (chart.config.plugins ?? []).find((p) => p.id === "marks");
  if (!found) return null;
  const {top, bottom, left, right} = chart.chartArea;
  return found.lines.map(({value, name}) => {
    const at = fixed(chart.scales[found.axis].getPixelForValue(value));
    if (at < left || at > right) return null;
    return [
      svg("path", {
        d: `M${at} ${fixed(top)}V${fixed(bottom)}`,
        class: "mark",
        stroke: colour("muted"),
        "stroke-dasharray": "4 4"
      }),
      svg("text", {x: at + 4, y: fixed(top - 6), "font-size": 12, fill: colour("muted")}, name)
    ];
  });
}

// The legend that stands above the chart, from left to right and then down.
function drawnLegend(list, width) {
  let [x, y] = [8, 18];
  const parts = [...(list?.children ?? [])].map((item) => {
    const icon = item.querySelector("i");
    const words = item.textContent;
    const wide = 30 + 6.7 * words.length;
    if (x > 8 && x + wide > width) [x, y] = [8, y + 20];
    const ink = icon ? getComputedStyle(icon).color : colour("muted");
    const has = (name) => icon?.classList.contains(name);
    const swatch = has("ramp") || !icon ? null :
        has("key")                      ? svg("path", {
                               d: `M${x} ${y - 4}h20`,
          stroke: ink,
          "stroke-width": 2,
          "stroke-dasharray": has("dashed") ? "5 4" : null
        }) :
                                          svg(...((t) => [t[0], {...t[1], fill: ink}])(markOf(
                                              has("above")   ? "rect" :
                                                  has("whp") ? "rectRot" :
                                                               "circle",
                         x + 10, y - 4, 5)));
    const drawn = [
      swatch,
      svg("text", {x: swatch ? x + 26 : x, y, "font-size": 12, fill: colour("muted"), class: "legend"}, words)
    ];
    x += wide + 12;
    return drawn;
  });
  return {parts, height: parts.length ? y + 10 : 0};
}

function chartSvg(canvas) {
  const chart = Chart.getChart(canvas);
  const legend = drawnLegend(canvas.closest("figure").querySelector(".legend"), chart.width);
  const height = legend.height + chart.height;
  // the first dataset lies on top
  const metas = chart.getSortedVisibleDatasetMetas().reverse();
  return svg(
      "svg", {
        xmlns: "http://www.w3.org/2000/svg",
        width: chart.width,
        height,
        viewBox: `0 0 ${chart.width} ${height}`,
        "font-family": "sans-serif"
      },
      svg("title", null, canvas.getAttribute("aria-label")), legend.parts,
      svg("g", {transform: `translate(0 ${legend.height})`},
          Object.values(chart.scales).map((s) => drawnAxis(s, chart.chartArea)),
          metas.map(
              (meta) => svg(
                  "g", {class: "dataset"},
                  meta.type === "bar" ?
                      drawnBars(meta) :
                      [
                        meta.dataset && chart.data.datasets[meta.index].showLine !== false && drawnLine(meta),
                        drawnPoints(meta)
                      ])),
          drawnMarks(chart)));
}

// ---- what the page draws itself

// A table of coloured cells, where they stand.
function tableSvg(node) {
  const frame = node.getBoundingClientRect();
  const cells = [...node.querySelectorAll("th, .cell")].map((cell) => {
    const box = cell.getBoundingClientRect();
    const [x, y] = [box.left - frame.left, box.top - frame.top];
    const style = getComputedStyle(cell);
    const left = style.textAlign === "left" || style.textAlign === "start";
    return [
      cell.classList.contains("cell") && svg("rect", {
        x: fixed(x),
        y: fixed(y),
        width: fixed(box.width),
        height: fixed(box.height),
        rx: 3,
        class: "cell",
        ...paint(style.backgroundColor)
      }),
      cell.textContent &&
          svg("text", {
            x: fixed(left ? x : x + box.width / 2),
            y: fixed(y + box.height / 2 + 4),
            "font-size": 13,
            "text-anchor": left ? "start" : "middle",
            fill: style.color
          },
              cell.textContent)
    ];
  });
  return svg(
      "svg", {
        xmlns: "http://www.w3.org/2000/svg",
        width: fixed(frame.width),
        height: fixed(frame.height),
        viewBox: `0 0 ${fixed(frame.width)} ${fixed(frame.height)}`,
        "font-family": "sans-serif"
      },
      svg("title", null, node.getAttribute("aria-label")), cells);
}

// Several small drawings with their names, where they stand.
function gathered(holder) {
  const frame = holder.getBoundingClientRect();
  const parts = [...holder.children].map((child) => {
    const [drawing, name] = [child.querySelector("svg"), child.querySelector("span")];
    const [box, words] = [drawing.getBoundingClientRect(), name.getBoundingClientRect()];
    const copy = drawing.cloneNode(true);
    for (const [field, value] of [
             ["x", box.left - frame.left], ["y", box.top - frame.top], ["width", box.width],
             ["height", box.height]])
      copy.setAttribute(field, fixed(value));
    return [
      svg("text", {
        x: fixed(words.left - frame.left),
        y: fixed(words.bottom - frame.top - 4),
        "font-size": 12,
        fill: colour("muted")
      },
          name.textContent),
      copy
    ];
  });
  return svg(
      "svg", {
        xmlns: "http://www.w3.org/2000/svg",
        width: fixed(frame.width),
        height: fixed(frame.height),
        viewBox: `0 0 ${fixed(frame.width)} ${fixed(frame.height)}`,
        "font-family": "sans-serif"
      },
      parts);
}
