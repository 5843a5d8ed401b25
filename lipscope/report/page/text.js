// ---- text.js: the text, coloured by where the worst change sits

function passage(s, side, title) {
  const share = s[side];
  const name = side === "input" ? "in" : "out";
  if (!share)
    return el(
        "div", {class: "passage"}, el("h3", null, title),
        el("p", {class: "muted"}, "Nothing comes out: the Jacobian is zero."));
  const most = share.reduce((a, b) => Math.max(a, b), 0);
  const first = share.indexOf(most);
  return el(
      "div", {class: "passage", id: `passage-${name}`}, el("h3", null, title),
      el("p", {class: "scale"}, "0", el("i", {class: `ramp ${name}`}), percent(most)),
      el("div", {class: "body", tabindex: 0, role: "region", "aria-label": title},
         share.map(
             (x, t) => [
                 // the blank before a word carries no colour; line breaks of the file are not those of the
                 // page
                 (s.tokens === null ? t > 0 : /^\s/.test(s.tokens[t])) && " ",
                 el("span", {
                   class: `token ${name}${t === first ? " first" : ""}`,
                   title: `${wordOf(s, t)}: ${percent(x)}`,
                   vars: {"--share": most > 0 ? (x / most).toFixed(3) : 0}
                 },
                    s.tokens === null ? `${t}` :
                        s.tokens[t] === "" ? "⋯" :
                                             s.tokens[t].replace(/\s+/g, " ").trimStart() || "␣"),
  ])));
}

function passages(record) {
  const s = shares.get(record);
  const rows = () =>
      s.input.map((x, t) => [String(t), wordOf(s, t), percent(x), s.output ? percent(s.output[t]) : "–"]);
  return el(
      "div", {id: "passages"},
      el("div", {class: "passages"}, passage(s, "input", "Where the worst change goes in"),
         passage(s, "output", "Where it comes out")),
      asTable(["", "token", "going in", "coming out"], rows));
}

// In how many of these sequences the first token carries more than any other going in.
function firstTokenWords(records) {
  const found = records.map((i) => shares.get(i)).filter((s) => s && s.input.length > 1);
  const first = found.filter((s) => s.input.every((x, t) => t === 0 || x < s.input[0])).length;
  return found.length < 2 ?
      "" :
      ` In ${count(first)} of its ${
          count(found.length)} sequences the first token carries more of what goes in than any other.`;
}

// What is written together with a token, on either side: it may be a piece of a word.
function around(s, t) {
  const joins = (k) => s.tokens !== null && k > 0 && k < s.tokens.length &&
      /^[\p{L}\p{M}\p{N}]/u.test(s.tokens[k]) && /[\p{L}\p{M}\p{N}]$/u.test(s.tokens[k - 1]);
  let [from, to] = [t, t];
  while (joins(from)) --from;
  while (joins(to + 1)) ++to;
  const text = (a, b) => (s.tokens === null ? "" : s.tokens.slice(a, b).join("").trimStart());
  return [text(from, t), text(t + 1, to + 1)];
}

// The tokens that carry most, with their shares, until nine tenths are told.
function topWords(s, side, most = 3) {
  const share = s[side];
  if (!share) return [];
  const largest = share.reduce((a, b) => Math.max(a, b), 0);
  let told = 0;
  return share.map((x, t) => [x, t])
      .sort((a, b) => b[0] - a[0])
      .slice(0, most)
      .filter(([x]) => {
        const more = told < 0.9 && x > 0;
        told += x;
        return more;
      })
      .map(
          ([x, t]) =>
              el("li", null, around(s, t)[0],
                 el("span", {
                   class: `word ${side === "input" ? "in" : "out"}`,
                   vars: {"--share": (x / largest).toFixed(3)}
                 },
                    wordOf(s, t)),
                 around(s, t)[1], ` ${percent(x)}`, t === 0 && s.input.length > 1 && " (the first token)"));
}
