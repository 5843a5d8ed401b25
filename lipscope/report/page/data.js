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
const whpLog = (i) => log10Of(num(i, "upper_whp"));
const upperLog = (i) => num(i, "upper_log10") ?? log10Of(num(i, "upper"));

// From below above from above. Columns have seven digits, the logarithm as well.
function contradicts(i) {
  const low = lowerLog(i);
  return low !== null &&
      [whpLog(i), upperLog(i)].some((up) => up !== null && low > up + 1e-6 * Math.max(1, Math.abs(up)));
}

// record → where its worst change sits: {tokens or null, input, output}, shares from 0 to 1
const shares = new Map(data.shares.map(
    ([record, text, input, output]) =>
        [record,
         {
           tokens: data.texts[text],
           input: input.map((s) => s / 1e4),
           output: output.length ? output.map((s) => s / 1e4) : null
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

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

const distinct = (records, field) => [...new Set(records.map((i) => get(i, field)))];
// Numbers in order, then what is none ("all", null).
const inOrder = (values) => [...values].sort(
    (a, b) => (typeof b === "number") - (typeof a === "number") || (a > b) - (a < b));

// Measurements that can stand in one figure: the same map of the same model.
const viewFields = ["file", "model", "map", "kind", "mask", "norm", "scope", "dtype", "seed"];
const viewKey = (i) => JSON.stringify(viewFields.map((f) => get(i, f)));
const measured = allRecords.filter((i) => get(i, "command") === "measure");
const views = [...groupBy(measured, viewKey).values()];

// Growth fits of a view, by layer and head.
function fitsOf(view) {
  if (!view.length) return [];
  return data.growth.filter(
      (g) => viewFields.every((f) => (g[f] ?? null) === get(view[0], f)) && typeof g.exponent === "number");
}
