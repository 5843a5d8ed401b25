// ---- ranks.js: which layer or head reacts most, and in which order they follow

const isWhole = (i) => get(i, "head") === "all" || get(i, "head") === null;
const placeKey = (i) => `${get(i, "layer")} ${get(i, "head")}`;

// The record with the largest constant from below; of equal ones the first.
const worst = (records) => best(records, (i) => num(i, "lower")) ?? records[0];

// One record for each layer and head, where its constant is largest; the strongest first, equal ones as they
// came.
function ranked(records) {
  return [...groupBy(records.filter((i) => num(i, "lower") !== null), placeKey).values()].map(worst).sort(
      (a, b) => num(b, "lower") - num(a, "lower"));
}

// Whole layers, and heads: each is ranked among its own.
function rankings(view) {
  return [
    {of: (n) => plural(n, "layer"), list: ranked(view.filter(isWhole))},
    {of: (n) => plural(n, "head"), list: ranked(view.filter((i) => !isWhole(i)))},
  ].filter((r) => r.list.length);
}

const tiedWith = (list, i) => list.filter((k) => num(k, "lower") === num(i, "lower"));
// "layer 1", "layer 1 and layer 2", "layer 1 and 3 others"
const namesOf = (tied) =>
    (tied.length > 2 ? `${placeOf(tied[0])} and ${plural(tied.length - 1, "other")}` :
                       listed(tied.map(placeOf)));

// What follows the strongest, and what reacts least: over all of a ranking.
function followers(list) {
  const value = (i) => shown(num(i, "lower"), 3);
  const groups = [...groupBy(list, (i) => num(i, "lower")).values()];
  const next = groups.slice(1, 3);
  const last = groups.at(-1);
  const one = (g) => `${namesOf(g)} (${value(g[0])})`;
  if (!next.length)
    return list.length > 1 ? `All ${count(list.length)} react alike (${value(list[0])}).` : "";
  return `Then ${listed(next.map(one))}` + (groups.length > 3 ? `; least, ${one(last)}.` : ".");
}

// The ten largest constants of a view, each a record.
const topTen = (view) => view.filter((i) => num(i, "lower") !== null)
                             .sort((a, b) => num(b, "lower") - num(a, "lower"))
                             .slice(0, 10);

// The smallest claim from above: {log, words}, or null.
function leastAbove(i) {
  const [w, up] = [whpLog(i), upperLog(i)];
  if (w === null && up === null) return null;
  if (up !== null && (w === null || up <= w))
    return {log: up, words: `proved${get(i, "upper_by") ? ` (${plain(get(i, "upper_by"))})` : ""}`};
  return {log: w, words: `but for a chance of ${shown(num(i, "delta"))}`};
}

// Every ratio on the page is the larger number over the smaller, so at least 1; of two sides of one constant,
// above / below. Both are given as log10.
const ratioLog = (a, b) => (a === null || b === null ? null : Math.abs(a - b));
const ratioShown = (a, b) => {
  const log = ratioLog(a, b);
  return shownLog(log, log < Math.log10(1.1) ? 4 : 3);
};

function topTenSection() {
  const all = state.view.filter((i) => num(i, "lower") !== null);
  if (all.length < 2) return null;
  const rows = topTen(state.view).map((i, k) => {
    const up = leastAbove(i);
    return [
      String(k + 1), capital(placeOf(i)), shown(num(i, "n")), plain(get(i, "sample")), lowerShown(i),
      up === null ? "–" : shownAbove(up.log), up === null ? "nothing is known" : up.words,
      up === null ? "–" : ratioShown(up.log, lowerLog(i))
    ];
  });
  return section(
      "largest", all.length > 10 ? "The ten largest" : "From the largest to the least",
      el("p", null,
         `Of ${plural(all.length, "measurement")}${
             textName(all[0]) === null ?
                 "" :
                 ` over ${shortName(textName(all[0]))}`}, those with the largest constants from below.`),
      scrollBox(
          {tabindex: 0, role: "region", "aria-label": "The largest constants"},
          plainTable(
              ["", "where", "tokens", "sample", "at least", "at most", "from above", "above / below"],
              rows)));
}
