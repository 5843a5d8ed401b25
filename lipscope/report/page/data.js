"use strict";
// ---- data.js: the records, as columns

const data = JSON.parse(document.getElementById("data").textContent);

// field → function from the number of a record to its value
const columns = new Map(Object.entries(data.columns)
                            .map(
                                ([field, c]) =>
                                    [field,
                                     "all" in c      ? () => c.all :
                                         "each" in c ? (i) => c.each[i] :
                                                       (i) => c.of[c.at[i]],
]));
// a logarithm that only repeats its number was left out
if (columns.has("upper_log10")) {
  const kept = columns.get("upper_log10");
  columns.set("upper_log10", (i) => {
    const upper = columns.get("upper")?.(i);
    return kept(i) ??
        (typeof upper === "number" && upper > 0 ? Number(Math.log10(upper).toPrecision(7)) : null);
  });
}
const allRecords = Array.from({length: data.count}, (_, i) => i);

// What a record says; null where it says nothing.
const get = (i, field) => columns.get(field)?.(i) ?? null;

// The same, if it is a number.
function num(i, field) {
  const v = get(i, field);
  return typeof v === "number" && Number.isFinite(v) ? v : null;
}

const parameter = (i, name) => get(i, `parameters.${name}`);
const detail = (i, name) => get(i, `details.${name}`);
const converged = (i) => get(i, "status") !== "not-converged";

// Numbers that may be beyond double are kept as logarithms.
const log10Of = (v) => (v !== null && v > 0 ? Math.log10(v) : null);
const lowerLog = (i) => log10Of(num(i, "lower"));
const lowerShown = (i) => (num(i, "lower") === 0 ? "0" : shownBelow(lowerLog(i)));
const whpLog = (i) => log10Of(num(i, "upper_whp"));
const upperLog = (i) => log10Of(num(i, "upper")) ?? num(i, "upper_log10");

// From below above from above. Columns have seven digits, the logarithm as well.
function contradicts(i) {
  const low = lowerLog(i);
  return low !== null &&
      [whpLog(i), upperLog(i)].some((up) => up !== null && low > up + 1e-6 * Math.max(1, Math.abs(up)));
}

// record → where its worst change sits: {tokens or null, input, output, flow}. Shares go from 0 to 1.
// flow[i][j] is the part that comes out at token i on account of token j, or flow is null.
const shares = new Map(data.shares.map(
    ([record, text, input, output, flow]) =>
        [record,
         {
           tokens: data.texts[text],
           input: input.map((s) => s / 1e4),
           output: output.length ? output.map((s) => s / 1e4) : null,
           flow: flow.length ?
               input.map((_, i) => flow.slice(i * input.length, (i + 1) * input.length).map((s) => s / 1e4)) :
               null
         },
]));

// Records by what `keyOf` says of them, in the order of their first.
function groupBy(records, keyOf) {
  const groups = new Map();
  for (const i of records) {
    const key = keyOf(i);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(i);
  }
  return groups;
}

function best(records, score) {
  let found = null;
  let top = -Infinity;
  for (const i of records) {
    const s = score(i);
    if (s !== null && s > top) [found, top] = [i, s];
  }
  return found;
}

// The rule of lipscope/report/median.h: of an even number of values, the mean of the two middle ones.
function median(values) {
  const [low, high] = middle(values);
  return low === high || high === Infinity ? high : low / 2 + high / 2;
}
// log10 of the median of numbers of which log10 is given; -Infinity is that of 0.
function medianLog(logs) {
  const [low, high] = middle(logs);
  return low === high || high === Infinity ? high : high + Math.log10((1 + 10 ** (low - high)) / 2);
}
function middle(values) {
  const sorted = [...values].sort((a, b) => (a > b) - (a < b));
  const half = sorted.length >> 1;
  return [sorted[sorted.length % 2 ? half : half - 1], sorted[half]];
}

const distinct = (records, field) => [...new Set(records.map((i) => get(i, field)))];
// Numbers in order, then what is none ("all", null).
const inOrder = (values) => [...values].sort(
    (a, b) => (typeof b === "number") - (typeof a === "number") || (a > b) - (a < b));

// The file of the text or tokens that a record read; null where it does not say.
const textName =
    (i) => [get(i, "input.name"), parameter(i, "text")].find((v) => typeof v === "string" && v !== "") ??
    null;
// The same, or in a word where else they come from.
const textOf = (i) => textName(i) ?? (typeof get(i, "input.from") === "string" ? get(i, "input.from") : null);

// Measurements that can stand in one figure: the same map of the same model over the same text, with the same
// parameters. How hard was tried, and what was recorded beside the number, do not part them.
const viewFields = ["file", "model", "map", "kind", "mask", "norm", "scope", "dtype", "seed"];
const effort =
    ["tokens", "words_sha256", "certificate", "tolerance", "max_steps", "enclose", "restart_after"];
const partingParameters = [...columns.keys()].filter(
    (f) => f.startsWith("parameters.") && !effort.includes(f.slice("parameters.".length)) &&
        !("all" in data.columns[f]));
const viewKey = (i) => JSON.stringify(
    [...viewFields.map((f) => get(i, f)), textOf(i), ...partingParameters.map((f) => get(i, f))]);
const measured = allRecords.filter((i) => get(i, "command") === "measure");
const views = [...groupBy(measured, viewKey).values()];

// Growth fits of a view, by layer and head. A fit that does not name its text belongs to the only one there
// is.
function fitsOf(view) {
  if (!view.length) return [];
  const like = (g, i) => viewFields.every((f) => (g[f] ?? null) === get(i, f)) &&
      partingParameters.every(
          (f) => JSON.stringify(g.parameters?.[f.slice("parameters.".length)] ?? null) ===
              JSON.stringify(get(i, f)));
  const textIn = (g) => g.input?.name ?? g.input?.from ?? null;
  return data.growth.filter(
      (g) => typeof g.exponent === "number" && like(g, view[0]) &&
          (textIn(g) === null ? views.filter((v) => like(g, v[0])).length === 1 :
                                textIn(g) === textOf(view[0])));
}
