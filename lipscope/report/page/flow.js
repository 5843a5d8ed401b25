// ---- flow.js: from which token to which the worst change goes

const flowRow = 21;     // pixels of a token
const flowMost = 120;   // links that are drawn
const flowPart = 0.95;  // of all that flows

// The links of a flow, the largest first: [{from, to, part}], and how many tell nearly all of it.
function linksOf(flow) {
  const links =
      flow.flatMap((row, to) => row.map((part, from) => ({from, to, part}))).filter((l) => l.part !== 0);
  links.sort((a, b) => Math.abs(b.part) - Math.abs(a.part));
  const all = links.reduce((sum, l) => sum + Math.abs(l.part), 0);
  let told = 0;
  let drawn = 0;
  while (drawn < Math.min(links.length, flowMost) && told < flowPart * all)
    told += Math.abs(links[drawn++].part);
  return {links, drawn, told: all > 0 ? told / all : 1};
}

// Two columns of tokens with links between them, as wide as `width` pixels.
function drawFlow(s, links, width, label) {
  const n = s.input.length;
  const side = Math.min(150, Math.round(0.3 * width));
  const letters = Math.floor((side - 14) / 7.2);
  const at = (t) => 26 + flowRow * (t + 0.5);
  const most = links.reduce((m, l) => Math.max(m, Math.abs(l.part)), 0);
  const ink = colour("ink");
  const token = (share, t, left) => {
    const largest = share.reduce((a, b) => Math.max(a, b), 0);
    const strength = largest > 0 ? 0.65 * share[t] / largest : 0;
    return svg(
        "g", null,
        svg("title", null, `${wordOf(s, t)}: ${percent(share[t])} of what ${left ? "goes in" : "comes out"}`),
        svg("rect", {
          x: left ? 0 : width - side,
          y: at(t) - flowRow / 2 + 1,
          width: side,
          height: flowRow - 2,
          rx: 3,
          fill: `rgb(${colour(left ? "in-rgb" : "out-rgb").split(" ").join(",")})`,
          "fill-opacity": strength.toFixed(3)
        }),
        svg("text", {
          x: left ? side - 6 : width - side + 6,
          y: at(t) + 4,
          "text-anchor": left ? "end" : "start",
          "font-size": 13,
          fill: ink
        },
            clipped(wordOf(s, t), letters)));
  };
  const [x0, x1] = [side + 2, width - side - 2];
  const bend = 0.4 * (x1 - x0);
  const heading = (text, x, anchor) =>
      svg("text", {x, y: 14, "text-anchor": anchor, "font-size": 12, fill: colour("muted")}, text);
  return svg(
      "svg", {
        width,
        height: 30 + flowRow * n,
        viewBox: `0 0 ${width} ${30 + flowRow * n}`,
        role: "img",
        "aria-label": label,
        "font-family": "sans-serif",
        class: "flow"
      },
      heading("goes in at", side, "end"), heading("comes out at", width - side, "start"),
      [...links].reverse().map(
          (l) =>
              svg("path", {
                d: `M${x0} ${at(l.from)}C${x0 + bend} ${at(l.from)} ${x1 - bend} ${at(l.to)} ${x1} ${
                    at(l.to)}`,
                fill: "none",
                stroke: colour(l.part < 0 ? "warn" : "below"),
                "stroke-width": (0.6 + 8 * Math.abs(l.part) / most).toFixed(2),
                "stroke-opacity": 0.5,
                "stroke-dasharray": l.part < 0 ? "5 4" : null,
                class: "link"
              },
                  svg("title", null, `from ${wordOf(s, l.from)} to ${wordOf(s, l.to)}: ${percent(l.part)}`))),
      s.input.map((_, t) => token(s.input, t, true)), s.output.map((_, t) => token(s.output, t, false)));
}

function flowFigure(record) {
  const s = shares.get(record);
  if (!s.flow || !s.output) return null;
  const {links, drawn, told} = linksOf(s.flow);
  if (!links.length) return null;
  const shownLinks = links.slice(0, drawn);
  const name = (t) => (s.tokens === null ? wordOf(s, t) : `“${wordOf(s, t)}” (token ${t})`);
  const largest = links[0];
  const holder = el("div", {class: "holder", id: "flow"});
  const label = `Flow of the worst change between ${plural(s.input.length, "token")}`;
  const draw = () => holder.clientWidth > 0 &&
      holder.replaceChildren(drawFlow(s, shownLinks, Math.min(680, Math.floor(holder.clientWidth)), label));
  new ResizeObserver(draw).observe(holder);
  return el(
      "figure", null, el("h3", null, "From which token to which"),
      el("p", {class: "muted", id: "flow-words"},
         `The largest part, ${percent(largest.part)} of what comes out, enters at ${
             name(largest.from)} and reaches ${
             largest.to === largest.from ? "the same token" : name(largest.to)}.`),
      holder,
      el("figcaption", null,
         `The wider a link, the more of the squared length of the change that comes out goes this way. ${
             plural(drawn, "link")} of ${count(links.length)} are drawn; they carry ${
             percent(told)} of the flow.${
             shownLinks.some((l) => l.part < 0) ?
                 " Dashed: what enters here works against what arrives there." :
                 ""}`),
      saveButton(() => holder.firstElementChild, "flow"),
      asTable(
          ["enters at", "reaches", "part"],
          () => links.map((l) => [name(l.from), name(l.to), percent(l.part)])));
}

// Why there is no flow here, where other sequences have one.
function flowMissing(records) {
  return records.some((i) => shares.get(i)?.flow) &&
      el("p", {class: "muted", id: "flow-missing"},
         "From which token to which the change goes is recorded for sequences of up to 32 tokens: choose a shorter one.");
}
