#include "lipscope/cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <tuple>

#include "lipscope/core/errors.h"

namespace lipscope::cli {
namespace {

using nlohmann::ordered_json;

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
      std::fflush(stdout) != 0)
    throw RunError("standard output cannot be written");
}

std::string cell(const ordered_json& value) {
  if (value.is_null()) return "-";
  if (value.is_number_float())
    return fmt::format("{:.6g}", value.get<double>());
  if (value.is_string()) return value.get<std::string>();
  return value.dump();
}

}  // namespace

void declare_output(CLI::App& app, OutputOptions& o) {
  const char* group = "Output";
  app.add_flag("--json", o.json, "print one JSON object a line, no table")
      ->group(group);
  auto* out = app.add_option("--out", o.out,
                             "append each record to FILE.jsonl as it is made; "
                             "a crash loses nothing that was written")
                  ->type_name("FILE")
                  ->group(group);
  app.add_flag("--resume", o.resume, "skip what is in --out already")
      ->needs(out)
      ->group(group);
  app.add_flag("--quiet", o.quiet, "no progress bar, no explanations")
      ->group(group);
}

Records::Records(const OutputOptions& options) : options_(options) {
  if (options.out.empty()) return;
  journal_ = std::make_unique<Journal>(
      options.out,
      options.resume ? Journal::Mode::resume : Journal::Mode::append);
  for (const ordered_json& record : journal_->records())
    answered_.emplace(record.value("command", "") == "growth"
                          ? record.dump()
                          : question_of(record),
                      record);
}

const ordered_json* Records::find(const Record& question) const {
  if (answered_.empty()) return nullptr;
  const auto at = answered_.find(question_of(to_json(question)));
  return at == answered_.end() ? nullptr : &at->second;
}

void Records::add(const GrowthRecord& record) {
  const ordered_json json = to_json(record);
  fits_.push_back(json);
  const auto known = answered_.find(json.dump());
  if (known != answered_.end()) return;
  if (journal_) journal_->append(json);
  if (options_.json) print(json.dump() + "\n");
}

void Records::add(const Record& record) {
  const ordered_json json = to_json(record);
  if (journal_) journal_->append(json);
  if (options_.json)
    print(json.dump() + "\n");
  else
    shown_.push_back(json);
  if (!consistent(record))
    throw Violation(fmt::format(
        "a number from below exceeds one from above: lower {}, upper {}, "
        "upper_whp {} (n = {}, sample {}). This is a bug in lipscope or a "
        "failure of probability delta; the record says how it was got",
        cell(json["lower"]), cell(json["upper"]), cell(json["upper_whp"]),
        record.n, record.sample));
}

namespace {

struct Column {
  const char* field;
  const char* title;
};

// aligned to the right, a heading over each column
std::string table(const std::vector<Column>& columns,
                  const std::vector<ordered_json>& lines) {
  std::vector<std::vector<std::string>> rows(lines.size() + 1);
  for (const Column& column : columns) {
    rows[0].push_back(column.title);
    for (std::size_t r = 0; r < lines.size(); ++r)
      rows[r + 1].push_back(cell(lines[r][column.field]));
  }
  for (std::size_t c = 0; c < columns.size(); ++c) {
    std::size_t width = 0;
    for (const auto& row : rows) width = std::max(width, row[c].size());
    for (auto& row : rows) row[c] = fmt::format("{:>{}}", row[c], width);
  }
  std::string text;
  for (const auto& row : rows)
    text += fmt::format("{}\n", fmt::join(row, "  "));
  return text;
}

// one line for all samples of a length
std::vector<ordered_json> by_length(const std::vector<ordered_json>& records) {
  std::map<std::tuple<std::string, std::string, Index>, std::vector<double>>
      values;
  for (const ordered_json& r : records)
    values[{r["layer"].dump(), r["head"].dump(), r["n"].get<Index>()}]
        .push_back(r["lower"].get<double>());
  std::vector<ordered_json> lines;
  std::set<std::tuple<std::string, std::string, Index>> seen;
  for (const ordered_json& r : records) {
    const std::tuple key{r["layer"].dump(), r["head"].dump(),
                         r["n"].get<Index>()};
    if (!seen.insert(key).second) continue;
    std::vector<double>& sorted = values[key];
    std::sort(sorted.begin(), sorted.end());
    lines.push_back({{"layer", r["layer"]},
                     {"head", r["head"]},
                     {"n", r["n"]},
                     {"samples", sorted.size()},
                     {"least", sorted.front()},
                     {"median", sorted[sorted.size() / 2]},
                     {"most", sorted.back()}});
  }
  return lines;
}

}  // namespace

void Records::print_table() const {
  if (options_.json || shown_.empty()) return;
  const ordered_json& first = shown_.front();
  const bool layers = !first["layer"].is_null();
  std::string text =
      fmt::format("{}: map {}, kind {}, mask {}, norm {}, at each input\n\n",
                  cell(first["model"]), cell(first["map"]), cell(first["kind"]),
                  cell(first["mask"]), cell(first["norm"]));

  std::vector<Column> columns;
  if (layers) columns.push_back({"layer", "layer"});
  constexpr std::size_t most_rows = 100;
  if (shown_.size() <= most_rows) {
    columns.insert(columns.end(), {{"head", "head"},
                                   {"n", "n"},
                                   {"sample", "sample"},
                                   {"radius_max", "max |x|"},
                                   {"lower", "lower"},
                                   {"upper_whp", "upper (whp)"},
                                   {"upper", "upper"},
                                   {"lower_by", "by"},
                                   {"residual", "residual"},
                                   {"steps", "steps"},
                                   {"status", "status"},
                                   {"seconds", "seconds"}});
    text += table(columns, shown_);
  } else {
    columns.insert(columns.end(), {{"head", "head"},
                                   {"n", "n"},
                                   {"samples", "samples"},
                                   {"least", "least lower"},
                                   {"median", "median"},
                                   {"most", "most"}});
    text += table(columns, by_length(shown_));
    const auto converged = std::count_if(
        shown_.begin(), shown_.end(),
        [](const ordered_json& r) { return r["status"] == "converged"; });
    text += fmt::format(
        "\n{} measurements, {} of them converged; --out FILE.jsonl keeps each "
        "with its evidence\n",
        shown_.size(), converged);
  }

  if (!options_.quiet) {
    text +=
        "\nlower        how many times larger a small change of the input "
        "comes "
        "out, for the\n"
        "             worst direction found; recomputed in f64, so the true "
        "constant is at\n"
        "             least this\n";
    if (!first["delta"].is_null() && shown_.size() <= most_rows)
      text += fmt::format(
          "upper (whp)  the true constant is at most this, but for a chance of "
          "{:.0e} over the\n"
          "             random start; '-' while nothing can be said (--enclose "
          "1.05 makes it\n"
          "             say something)\n",
          first["delta"].get<double>());
    if (shown_.size() <= most_rows)
      text +=
          "upper        the same for certain; '-' where nothing is proved\n";
  }
  print(text);
  print_fits();
}

void Records::print_fits() const {
  if (fits_.empty()) return;
  std::vector<Column> columns;
  if (!fits_.front()["layer"].is_null()) columns.push_back({"layer", "layer"});
  columns.insert(columns.end(), {{"head", "head"},
                                 {"points", "points"},
                                 {"exponent", "exponent"},
                                 {"exponent_low", "low"},
                                 {"exponent_high", "high"},
                                 {"constant", "constant"},
                                 {"r_squared", "r squared"},
                                 {"radius_correlation", "with radius"}});
  std::string text =
      "\nGrowth with the length n, as constant * n^exponent\n\n" +
      table(columns, fits_);
  if (!options_.quiet)
    text += fmt::format(
        "\nlow, high    hold the exponent with confidence {}, if residuals are "
        "independent\n"
        "with radius  correlation of the constant with the sequence's radius, "
        "both as logarithms\n",
        fits_.front()["confidence"].get<double>());
  print(text);
}

Progress::Progress(Index total, bool quiet)
    : total_(total),
      visible_(!quiet && isatty(STDERR_FILENO)),
      start_(std::chrono::steady_clock::now()),
      last_(start_ - std::chrono::hours(1)) {}

Progress::~Progress() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
}

void Progress::show(Index done, const std::string& doing) {
  if (!visible_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  drawn_ = true;

  constexpr int width = 24;
  const int filled =
      static_cast<int>(width * done / std::max<Index>(1, total_));
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const std::string left =
      done == 0
          ? ""
          : fmt::format(", {:.0f} s left", elapsed / done * (total_ - done));
  fmt::print(stderr, "\r\033[K[{:#>{}}{:.>{}}] {}/{} {}{}", "", filled, "",
             width - filled, done, total_, doing, left);
  std::fflush(stderr);
}

}  // namespace lipscope::cli
