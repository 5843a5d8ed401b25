// ---- page.js: the page from top to bottom

const isTraining = (i) => get(i, "command") === "train";
const isExperiment = (i) => parameter(i, "experiment") !== null && !isTraining(i);

// What was found, by command; the first that has records speaks at the top of the page.
const headlines = [
  [(i) => get(i, "command") === "certify", certifiedHeadline],
  [isTraining, trainedHeadline],
  [isExperiment, reproducedHeadline],
  [(i) => get(i, "command") === "search", searchHeadline],
  [(i) => get(i, "command") === "bound", boundHeadline],
  [(i) => get(i, "command") === "invert", invertHeadline],
  [() => true, anyHeadline],
];
// what a reader may want explained
const constants = allRecords.filter((i) => !["certify", "train", "invert"].includes(get(i, "command")));

function otherHero() {
  if (!data.count)
    return [
      el("h1", null, "There is nothing here yet."),
      el("p", {class: "lede"}, "The file has no records. ",
         el("code", null, "lipscope measure --out FILE.jsonl"), " makes some.")
    ];
  const [mine, words] = headlines.find(([of]) => allRecords.some(of));
  const models = distinct(allRecords, "model").filter(Boolean).slice(0, 4);
  const texts = [...new Set(allRecords.map(textName))].filter((t) => t !== null).slice(0, 4);
  return [
    el("h1", null, words(allRecords.filter(mine))),
    el("p", {class: "lede"},
       `${plural(data.count + data.left_out, "record")} of ${
           listed(distinct(allRecords, "command").map(plain))}${
           models.length ? `: ${listed(models.map(plain))}` :
                           ""}${texts.length ? `, over ${listed(texts)}` : ""}.`),
  ];
}

// Where a browser would need long for all records.
function leftOutNote() {
  return data.left_out > 0 &&
      el("p", {class: "lede", id: "left-out"},
         `The page shows ${count(data.count)} of ${
             count(
                 data.count +
                 data.left_out)} records, which stand for all: where only the window of the text differs, up to ${
             data.of_each} records, the smallest and the largest constant among them and the others at equal ranks between. Medians are those of the shown ones. The files have every record.`);
}

function viewName(view) {
  const i = view[0];
  const differs = (f) => new Set(views.map((v) => plain(get(v[0], f)))).size > 1;
  const parts = [...viewFields, ...partingParameters].filter(differs).map(
      (f) =>
          (f === "file"      ? fileName(i) :
               f === "model" ? shortName(get(i, f)) :
                               `${nameOf(f)} ${plain(get(i, f))}`));
  if (new Set(views.map((v) => textOf(v[0]))).size > 1) parts.push(shortName(textOf(i) ?? "text unknown"));
  return `${parts.join(", ")} (${count(view.length)})`;
}

function provenanceSection() {
  // those that only describe a figure know who wrote them as well
  const all =
      (field) => [...new Set([...distinct(allRecords, field), ...data.figures.map((f) => f[field] ?? null)])]
                     .filter((v) => v !== null && v !== "")
                     .map(plain);
  const few = (values) =>
      (values.length > 8 ? [...values.slice(0, 8), `${count(values.length - 8)} more`] : values).join(", ");
  const dates = [
    ["Files", data.files.map((f) => `${f.name} (${plural(f.records, "record")})`).join(", ")],
    ["Commands", few(all("command"))],
    ["Command lines", few(all("command_line"))],
    ["Measured on", few(all("machine"))],
    ["lipscope", few(all("version"))],
    ["Model", few(all("model"))],
    ["Text", few([...new Set(allRecords.map(textName))].filter((t) => t !== null))],
    ["SHA-256 of the weights", few(all("model_sha256"))],
    ["Seed", few(all("seed"))],
    ["Passes in", few(all("dtype"))],
    ["Chance of failure (whp)", few(all("delta"))],
    [
      "Time measuring",
      allRecords.length ?
          `${shown(allRecords.reduce((s, i) => s + (num(i, "seconds") ?? 0), data.left_out_seconds), 3)} s` :
          ""
    ],
    ["Page made", `by lipscope ${data.version}${data.machine ? ` on ${data.machine}` : ""}`],
  ].filter(([, v]) => v);
  return section(
      "provenance", "Where this comes from",
      el("dl", {class: "provenance"},
         dates.map(
             ([k, v]) =>
                 [el("dt", null, k), el("dd", {class: /^(SHA|Command lines)/.test(k) ? "mono" : null}, v)])));
}

function explanation() {
  return el(
      "details", null, el("summary", null, "What is this number?"),
      el("p", null,
         "Change the input of a layer by a little: its output changes too. The Lipschitz constant at an input is the largest factor by which a small change can grow there. A constant of 10 means that some change, chosen as badly as possible, comes out ten times as large; most changes grow far less. "),
      el("p", null,
         "A number from below is reached by a change that was found. A number from above cannot be exceeded. The truth lies between, and the page always says which is which."));
}

function render() {
  for (const canvas of document.querySelectorAll("canvas")) Chart.getChart(canvas)?.destroy();
  const wrong = allRecords.filter(contradicts).length;
  const isCompare = data.compare;
  const chooseView = views.length > 1 &&
      el("div", {class: "controls"},
         selection("Measurements", views.map((v) => ({name: viewName(v), value: v})), state.view, (v) => {
           look(v);
           render();
         }));
  document.getElementById("top").replaceChildren(
      ...[el("div", {class: "brand"}, el("b", null, "lipscope"),
             el("span", null, isCompare ? "comparison" : "report"),
             el("span", {class: "mono"}, data.files.map((f) => f.name).join(", "))),
          wrong > 0 &&
              el("p", {class: "warn", role: "alert"},
                 `${plural(wrong, "record")} contradict${wrong === 1 ? "s" : ""} ${
                     wrong === 1 ?
                         "itself" :
                         "themselves"}: a number from below exceeds one from above. This is a bug in lipscope or a damaged file; do not trust the page.`),
          isCompare        ? compareHero() :
              views.length ? measuredHero() :
                             otherHero(),
          leftOutNote(),
          constants.length > 0 && explanation(),
  ].flat().filter(Boolean));
  const active = document.activeElement?.closest("section")?.id;
  const label = document.activeElement?.tagName === "SELECT" ?
      document.activeElement.parentElement.firstChild.textContent :
      document.activeElement?.getAttribute("aria-label");
  const oldTable = document.getElementById("records");
  document.getElementById("main").replaceChildren(
      ...[isCompare && compareSection(),
          chooseView,
          ...(views.length ?
                  [
                    heatSection(render), topTenSection(), textSection(render), multiplesSection(render),
                    growthSection(render), gapSection()
                  ] :
                  []),
          ...otherSections(),
          oldTable ?? recordsSection(),
          provenanceSection(),
  ].filter(Boolean));
  while (waiting.length) drawWaiting();
  // whoever works with the keyboard stays where they were
  if (active)
    [...document.querySelectorAll(`#${active} select, #${active} button`)]
        .find(
            (n) => (n.tagName === "SELECT" ? n.parentElement.firstChild.textContent :
                                             n.getAttribute("aria-label")) === label)
        ?.focus({preventScroll: true});
}

if (views.length) look([...views].sort((a, b) => b.length - a.length)[0]);
render();
document.getElementById("foot").append(el(
    "p", null, "This page is one file and asks nothing of the network. Charts by Chart.js (MIT licence)."));
for (const changed of [matchMedia("(prefers-color-scheme: dark)"), narrow])
  changed.addEventListener("change", render);
