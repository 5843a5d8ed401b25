// ---- words.js: numbers and names, as people read them

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on")
      for (const [event, f] of Object.entries(value)) node.addEventListener(event, f);
    else if (name === "vars")
      for (const [v, x] of Object.entries(value)) node.style.setProperty(v, x);
    else
      node.setAttribute(name, value === true ? "" : value);
  }
  // strings become text, never HTML
  node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

const superscript = (n) => String(n).replace(/[-0-9]/g, (c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]));
const count = (n) => n.toLocaleString("en-US");

function shown(x, digits = 4) {
  if (x === null || x === undefined) return "–";
  if (x === 0) return "0";
  const e = Math.floor(Math.log10(Math.abs(x)));
  if (e >= 6 || e < -3) {
    const [m, p] = x.toExponential(digits - 2).split("e");
    return `${Number(m) === 1 ? "" : `${Number(m)}·`}10${superscript(Number(p))}`;
  }
  return Number.isInteger(x) ? count(x) : x.toLocaleString("en-US", {maximumSignificantDigits: digits});
}

// The same with three digits always, for columns of like numbers.
const three = (x) => (x >= 1000 || x < 0.01 ? shown(x, 3) : x.toPrecision(3));

// A number of which the logarithm is known.
const shownLog = (log, digits = 4) => log === null ? "–" :
    Math.abs(log) < 300                            ? shown(10 ** log, digits) :
                                                     `10^${Number(log.toFixed(1))}`;

// The same of a number from above, and of one from below: the last digit that is shown is
// rounded to the side that the number speaks of, but for a thousandth of it, which is more
// than the logarithm leaves out.
function shownFrom(side, log, digits) {
  if (log === null || Math.abs(log) >= 300)
    return shownLog(log === null ? null : side.round(10 * log + side.least) / 10);
  const kept = log >= 6 || log < -3 ? digits - 1 : digits;
  const last = 10 ** (Math.floor(log) - kept + 1);
  return shown(side.round(10 ** log / last + side.least) * last, digits);
}
const shownAbove = (log, digits = 4) => shownFrom({round: Math.ceil, least: -1e-3}, log, digits);
const shownBelow = (log, digits = 4) => shownFrom({round: Math.floor, least: 1e-3}, log, digits);

const percent = (s) => `${Number((100 * s).toPrecision(3))} %`;
const times = (x) => `${shown(x, 3)} times`;
const plural = (n, one, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;
const listed = (parts) =>
    (parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`);

const mapWords = {
  __proto__: null,
  core: "from the input of the attention module to its heads, before the output projection",
  attn: "from the input of the attention module to its output, after the projection",
  residual: "from the input to the output of the attention sub-layer, residual included",
  block: "from the input to the output of the whole layer, MLP included",
  model: "from the embeddings to the last hidden state",
  inverse: "from the output of residual attention back to its input",
};
const kindWords = {
  __proto__: null,
  dot: "dot-product attention",
  l2: "L2 attention (tied)",
  "l2-untied": "untied L2 attention",
  "contractive-l2": "Contractive-L2 attention",
  cosine: "scaled cosine attention",
  sigmoid: "sigmoid attention",
};
const scopeWords = (scope) => ({
                                __proto__: null,
                                input: "at these inputs",
                                ball: "over the ball of this radius",
                                everywhere: "everywhere"
                              })[scope] ??
    scope ?? "";
const maskWords = (mask) => (mask === "none" ? "no mask" : mask ? `${mask} mask` : "mask unknown");

// How fast the constant of attention can grow with n at a fixed radius, by kind, norm and mask: [exponent,
// rate, source].
const rates = {
  __proto__: null,
  "dot 2 none": [
    [0, "no growth", "the mean-field bound, once n is large [Castin24]"],
    [0.5, "√n", "the fastest at a fixed radius [Castin24]"]
  ],
  "dot 2 causal": [
    [0, "no growth", "once n is large, by Hardy's inequality (hardy_meanfield)"],
    [0.5, "√n", "the fastest at a fixed radius [Castin24]"]
  ],
  "l2 2": [[0.5, "√n", "its bound, up to a logarithm [Kim21]"]],
  "l2 inf": [[0, "log n", "its bound [Kim21]"]],
  "sigmoid 2": [[1, "n", "its bound [Ramapuram24]"]],
  "cosine 2": [[2, "n²", "its bound [Qi23]"]],
};
function ratesOf(i) {
  const [kind, norm, mask, map] = ["kind", "norm", "mask", "map"].map((f) => get(i, f));
  const known =
      map === "core" || map === "attn" ? rates[`${kind} ${norm} ${mask}`] ?? rates[`${kind} ${norm}`] : null;
  return known ?? [[0, "no growth", ""]];
}

function place(layer, head, model = "the model") {
  const of = layer === null ? model : `layer ${layer}`;
  return head === "all" || head === null ? of : `head ${head} of ${of}`;
}
const placeOf = (i) =>
    place(get(i, "layer"), get(i, "head"), get(i, "map") === "model" ? "the model" : "the layer");
const capital = (s) => s.charAt(0).toUpperCase() + s.slice(1);
const fileName = (i) => data.files[get(i, "file")]?.name ?? "";

// The last part of a path, unless another model or text ends with the same.
const paths = () => [...new Set([
  ...distinct(allRecords, "model"), ...distinct(allRecords, "input.name"),
  ...distinct(allRecords, "parameters.text")
].filter((v) => typeof v === "string"))];
const lastPart = (path) => path.replace(/\/+$/, "").split("/").at(-1) || path;
function shortName(path) {
  if (typeof path !== "string") return plain(path);
  shortName.known ??= groupBy(paths(), lastPart);
  return (shortName.known.get(lastPart(path)) ?? []).length > 1 ? path : lastPart(path);
}

// A token by itself: without the blanks around it, or what it is if it is nothing else.
// (an empty piece is the rest of a character that a token before it shows)
const wordOf = (s, t) =>
    (s.tokens === null ? `token ${t}` :
         s.tokens[t] === "" ? "rest of the character before" :
                              s.tokens[t].trim() || JSON.stringify(s.tokens[t]));
