// ---- table.js: all records, sortable; only the rows in sight are in the page

const rowHeight = 28;
const firstFields = [
  "file", "command", "layer", "head", "n", "sample", "value", "lower", "upper_whp", "upper", "upper_log10",
  "upper_by", "status", "radius_max", "radius_rms", "residual", "steps"
];
const titles = {
  __proto__: null,
  upper_whp: "upper (whp)",
  upper_log10: "log10 upper",
  radius_max: "max |x|",
  radius_rms: "rms |x|"
};

const isHash = (field) => field.endsWith("sha256");
const nameOf = (field) => field.replace(/^(details|parameters)\./, "").replace(".", " ").replaceAll("_", " ");

const plain = (v) =>
    (v === null                ? "–" :
         typeof v === "number" ? shown(v, 6) :
         typeof v === "object" ? JSON.stringify(v) :
                                 String(v));

// Numbers by size, then words, then what is absent, whichever way is up.
function compareValues(a, b, sign) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  const [x, y] = [plain(a), plain(b)];
  return sign * ((x > y) - (x < y));
}

function csv() {
  const fields = [...columns.keys()];
  const quoted = (v) => {
    if (v === null) return "";
    if (typeof v === "number") return String(v);
    let text = typeof v === "object" ? JSON.stringify(v) : String(v);
    // a spreadsheet would run what begins like a formula
    if (/^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const value = (i, f) => (f === "file" ? fileName(i) : get(i, f));
  return [
    fields.map(quoted).join(","), ...order.map((i) => fields.map((f) => quoted(value(i, f))).join(","))
  ].join("\r\n") +
      "\r\n";
}

// A file for whoever reads the page, without asking the network.
function handOut(content, name, type) {
  const link = el("a", {href: URL.createObjectURL(new Blob([content], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

let order = [...allRecords];

function recordsSection() {
  const varies = (f) => {
    const v = JSON.stringify(get(0, f));
    return allRecords.some((i) => JSON.stringify(get(i, f)) !== v);
  };
  const rank = (f) => {
    const k = firstFields.indexOf(f);
    // hashes stand at the end
    return isHash(f) ? Infinity : k < 0 ? firstFields.length : k;
  };
  // what is of the run and not of the number stands at the end of the page
  const all = [...columns.keys()].filter(
      (f) => !["schema", "command_line", "machine", "build", "cpu", "line_sha256"].includes(f));
  const differing = new Set(all.filter((f) => f === "lower" ? true : varies(f)));
  const fields =
      all.filter((f) => differing.has(f)).sort((a, b) => (rank(a) > rank(b)) - (rank(a) < rank(b)));
  const same = all.filter((f) => !differing.has(f) && f !== "file" && get(0, f) !== null);
  const section =
      el("section", {id: "records", "aria-labelledby": "records-title"},
         el("h2", {id: "records-title"}, "All records"));
  if (!data.count)
    return el("section", {id: "records"}, el("h2", null, "All records"), el("p", null, "There are none."));

  const body = el("tbody");
  const sorted = {field: null, sign: 1};
  const heads = fields.map(
      (f) =>
          el("th", {scope: "col", "aria-sort": "none"},
             el("button", {type: "button", "data-field": f, on: {click: () => sortBy(f)}},
                titles[f] ?? nameOf(f))));
  const [grid, hint] = scrollBox(
      {id: "grid", tabindex: 0, role: "region", "aria-label": "All records, scrollable"},
      el("table", {"aria-rowcount": data.count + 1}, el("thead", null, el("tr", {"aria-rowindex": 1}, heads)),
         body));

  function row(k) {
    const i = order[k];
    return el(
        "tr",
        {"aria-rowindex": k + 2, class: converged(i) && !contradicts(i) ? null : "open", "data-record": i},
        fields.map((f) => {
          const text = f === "file" ? fileName(i) : plain(get(i, f));
          const cut = isHash(f) && text.length > 12 ? `${text.slice(0, 8)}…` : text;
          return el(
              "td", {
                class: f === "status" ? "status" : null,
                title: cut !== text || text.length > 24 ? text : null
              },
              cut);
        }));
  }
  const pad = (height) =>
      el("tr", {class: "pad", "aria-hidden": "true"},
         el("td", {colspan: fields.length, vars: {height: `${height}px`}}));
  let from = -1;
  let to = -1;
  function draw(whole = false) {
    const first = whole ? 0 : Math.max(0, Math.floor(grid.scrollTop / rowHeight) - 10);
    const last =
        Math.min(order.length, whole ? 500 : first + Math.ceil((grid.clientHeight || 420) / rowHeight) + 30);
    if (first === from && last === to) return;
    [from, to] = [first, last];
    body.replaceChildren(
        pad(first * rowHeight), ...Array.from({length: last - first}, (_, k) => row(first + k)),
        pad(whole ? 0 : (order.length - last) * rowHeight));
  }
  function sortBy(field) {
    sorted.sign = sorted.field === field ? -sorted.sign : 1;
    sorted.field = field;
    const values = allRecords.map((i) => (field === "file" ? fileName(i) : get(i, field)));
    order = [...allRecords].sort((a, b) => compareValues(values[a], values[b], sorted.sign) || a - b);
    fields.forEach(
        (f, k) => heads[k].setAttribute(
            "aria-sort",
            f !== field         ? "none" :
                sorted.sign > 0 ? "ascending" :
                                  "descending"));
    grid.scrollTop = 0;
    from = -1;
    draw();
  }
  grid.addEventListener("scroll", () => draw());
  addEventListener("beforeprint", () => {
    from = -1;
    draw(true);
  });
  addEventListener("afterprint", () => {
    from = -1;
    draw();
  });
  draw();
  section.append(
      el("p", null,
         `${
             plural(
                 data.count,
                 "record")}. A heading sorts by its column. Numbers have seven digits here; the file has all of them.`,
         same.length > 0 &&
             el("span", null, " The same in every record: ",
                same.filter((f) => !isHash(f))
                    .map(
                        (f, k) =>
                            [k > 0 && ", ", `${nameOf(f)} `, el("span", {class: "mono"}, plain(get(0, f)))]),
                ".")),
      el("div", {class: "controls"},
         el("button", {
           type: "button",
           id: "csv",
           on: {click: () => handOut(csv(), "lipscope-records.csv", "text/csv")}
         },
            "Download as CSV")),
      grid, hint);
  return section;
}
