// ---- hero.js: the first screen of a measurement, in words

// "8 tokens of alice29.txt (sample 1)"
function inputWords(i) {
  const n = num(i, "n");
  const name = get(i, "input.name");
  const from = {
    __proto__: null,
    gaussian: " drawn at random",
    "random ids": " with random ids",
    tensor: " stored with the weights"
  };
  const of =
      typeof name === "string" && name !== "" ? ` of ${shortName(name)}` : from[get(i, "input.from")] ?? "";
  return `${n === null ? "an unknown number of tokens" : plural(n, "token")}${of}${
      get(i, "sample") === null ? "" : ` (sample ${plain(get(i, "sample"))})`}`;
}

function worstOfView(view) {
  return rankings(view)[0]?.list[0] ?? view[0];
}

function howSure(i) {
  const [low, w, up] = [lowerLog(i), whpLog(i), upperLog(i)];
  const over = (log) => (low === null ? "" : `; above / below ${ratioShown(log, low)}`);
  return [
    low !== null &&
        el("p", null, el("i", {class: "side below"}), el("b", null, `At least ${shownBelow(low)}`),
           `: a change that does it was found and checked in f64${
               converged(i) ? "" : "; the search for a worse one was cut short"}.`),
    w !== null && (up === null || w < up) &&
        el("p", null, el("i", {class: "side whp"}), el("b", null, `At most ${shownAbove(w)}`),
           `, but for a chance of ${shown(num(i, "delta"))} over the random start${over(w)}.`),
    up !== null &&
        el("p", null, el("i", {class: "side above"}), el("b", null, `At most ${shownAbove(up)}`),
           `, proved${get(i, "upper_by") ? ` (${plain(get(i, "upper_by"))})` : ""}${over(up)}.`),
    w === null && up === null &&
        el("p", null, "Nothing was said from above: a worse change may exist at this input. ",
           el("code", null, "--enclose 1.05"), " says how much worse at most."),
  ];
}

function measuredWords(view) {
  const i = view[0];
  const layers = distinct(view, "layer").filter((l) => l !== null).length;
  const heads = new Set(view.filter((k) => !isWhole(k)).map(placeKey)).size;
  const n = view.map((k) => num(k, "n")).filter((x) => x !== null);
  const [least, most] =
      [n.reduce((a, b) => Math.min(a, b), Infinity), n.reduce((a, b) => Math.max(a, b), -Infinity)];
  const of = [layers && plural(layers, "layer"), heads && plural(heads, "head")].filter(Boolean);
  const open = view.filter((k) => !converged(k)).length;
  const text = get(i, "input.name");
  return `${plural(view.length, data.left_out > 0 ? "shown constant" : "constant")} of ${
             of.length ?
                 `${listed(of)} of ` :
                 ""}${get(i, "model") === null ? "a model without a name" : shortName(get(i, "model"))}, ${
             mapWords[get(i, "map")] ?? `map ${get(i, "map")}`}; ` +
      `${kindWords[get(i, "kind")] ?? get(i, "kind")}, ${maskWords(get(i, "mask"))}, norm ${
             get(i, "norm")}, ${scopeWords(get(i, "scope"))} of ` +
      `${
             n.length === 0     ? "unknown numbers of" :
                 least === most ? count(most) :
                                  `${count(least)} to ${count(most)}`} tokens${
             typeof text === "string" && text !== "" ? ` of ${shortName(text)}` : ""}. ` +
      (open ? `${count(open)} did not converge: their numbers hold, but worse may be found.` :
              "All converged.");
}

// Who reacts most, how strongly from below and from above, and at which input: one sentence.
function measuredHeadline(view) {
  const first = rankings(view)[0];
  if (!first) return [`${capital(placeOf(view[0]))}: nothing is known from below.`];
  const {of, list} = first;
  const i = list[0];
  const tied = tiedWith(list, i);
  const up = leastAbove(i);
  const inputs = view.filter((k) => placeKey(k) === placeKey(i)).length;
  const who = list.length > 1 ?
      `${capital(namesOf(tied))} react${tied.length > 1 ? "" : "s"} most of ${of(list.length)}${
          tied.length > 1 ? ", equally" : ""}: at ${inputWords(i)}` :
      `${capital(placeOf(i))}: at ${inputWords(i)}${
          inputs > 1 ? `, the worst of ${plural(inputs, "input")}` : ""}`;
  return [
    `${who}, a small change of the input can come out `,
    el("span", {class: "number"}, `${lowerShown(i)} times`), " as large",
    up === null ? ". Nothing is known from above." :
                  `, and none comes out more than ${shownAbove(up.log)} times as large${
                      up.words.startsWith("proved") ? "" : `, ${up.words}`}.`
  ];
}

function measuredHero() {
  const i = worstOfView(state.view);
  const all = rankings(state.view);
  const s = shares.get(i);
  const ranks = all.map(({of, list}, k) => {
    const more = followers(list);
    const first =
        k > 0 &&
        `Of ${of(list.length)}, ${namesOf(tiedWith(list, list[0]))} react${
            tiedWith(list, list[0]).length > 1 ? "" : "s"} most (${shown(num(list[0], "lower"), 3)}).`;
    return [first, more].filter(Boolean).join(" ");
  });
  return [
    el("h1", null, measuredHeadline(state.view)),
    el("p", {class: "lede"}, measuredWords(state.view)),
    el("dl", {class: "facts"},
       el("div", null, el("dt", null, "Where"),
          el("dd", null, el("p", null, el("b", null, capital(placeOf(i))), `, at ${inputWords(i)}.`),
             ranks.filter(Boolean).map((words) => el("p", {class: "ranks"}, words)))),
       el("div", null, el("dt", null, "Which words"),
          el("dd", null,
             s ?
                 [
                   el("p", null, "The worst change goes in mostly through"),
                   el("ul", null, topWords(s, "input")), s.output && el("p", null, "and comes out mostly at"),
                   s.output && el("ul", null, topWords(s, "output")),
                   el("p", {class: "muted"}, el("a", {href: "#text"}, "See it in the text"))
                 ] :
                 el("p", {class: "muted"}, "Not recorded. ", el("code", null, "measure --tokens"),
                    " does."))),
       el("div", null, el("dt", null, "How sure"), el("dd", null, howSure(i)))),
  ];
}
