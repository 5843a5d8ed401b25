#include "lipscope/cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

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
    answered_.insert(question_of(record));
}

bool Records::has(const Record& question) const {
  return !answered_.empty() &&
         answered_.contains(question_of(to_json(question)));
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

void Records::print_table() const {
  if (options_.json || shown_.empty()) return;

  const struct {
    const char* field;
    const char* title;
  } columns[] = {{"n", "n"},
                 {"sample", "sample"},
                 {"head", "head"},
                 {"radius_max", "max |x|"},
                 {"lower", "lower"},
                 {"upper_whp", "upper (whp)"},
                 {"upper", "upper"},
                 {"lower_by", "by"},
                 {"residual", "residual"},
                 {"steps", "steps"},
                 {"status", "status"},
                 {"seconds", "seconds"}};
  const ordered_json& first = shown_.front();
  std::string text =
      fmt::format("{}: map {}, kind {}, mask {}, norm {}, at each input\n\n",
                  cell(first["model"]), cell(first["map"]), cell(first["kind"]),
                  cell(first["mask"]), cell(first["norm"]));

  std::vector<std::vector<std::string>> rows(shown_.size() + 1);
  for (const auto& column : columns) {
    rows[0].push_back(column.title);
    for (std::size_t r = 0; r < shown_.size(); ++r)
      rows[r + 1].push_back(cell(shown_[r][column.field]));
  }
  for (std::size_t c = 0; c < std::size(columns); ++c) {
    std::size_t width = 0;
    for (const auto& row : rows) width = std::max(width, row[c].size());
    for (auto& row : rows) row[c] = fmt::format("{:>{}}", row[c], width);
  }
  for (const auto& row : rows)
    text += fmt::format("{}\n", fmt::join(row, "  "));

  if (!options_.quiet) {
    text +=
        "\nlower        how many times larger a small change of the input "
        "comes "
        "out, for the\n"
        "             worst direction found; recomputed in f64, so the true "
        "constant is at\n"
        "             least this\n";
    if (!first["delta"].is_null())
      text += fmt::format(
          "upper (whp)  the true constant is at most this, but for a chance of "
          "{:.0e} over the\n"
          "             random start; '-' while nothing can be said (--enclose "
          "1.05 makes it\n"
          "             say something)\n",
          first["delta"].get<double>());
    text += "upper        the same for certain; '-' where nothing is proved\n";
  }
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
