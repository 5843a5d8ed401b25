#include "lipscope/cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "lipscope/cli/machine.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/visible_text.h"
#include "lipscope/io/json_text.h"
#include "lipscope/report/table.h"

namespace lipscope::cli {
namespace {

using nlohmann::ordered_json;

}  // namespace

void print_out(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
      std::fflush(stdout) != 0)
    throw RunError("standard output cannot be written");
}

void print_text(const std::string& text) { print_out(visible_text(text)); }

void check_sides(const ordered_json& record) {
  if (consistent(record)) return;
  const auto text = [&](const char* field) {
    return cell(record.value(field, ordered_json(nullptr)));
  };
  throw Violation(fmt::format(
      "a number from below exceeds one from above: lower {}, upper {} (log10 "
      "{}), upper_whp {} (n = {}, sample {}). This is a bug in lipscope or a "
      "failure of probability delta; the record says how it was got",
      text("lower"), text("upper"), text("upper_log10"), text("upper_whp"),
      text("n"), text("sample")));
}

ordered_json with_provenance(ordered_json record) {
  static const std::string line = command_line(), machine = this_machine();
  record["command_line"] = line;
  record["machine"] = machine;
  return record;
}

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
  if (at == answered_.end()) return nullptr;
  check_sides(at->second);
  return &at->second;
}

void Records::add(const GrowthRecord& record) {
  const ordered_json json = to_json(record);
  fits_.push_back(json);
  const auto known = answered_.find(json.dump());
  if (known != answered_.end()) return;
  if (journal_) journal_->append(json);
  if (options_.json) print_out(json_line(json));
}

void Records::add(const Record& record) {
  const ordered_json json = to_json(record);
  if (journal_) journal_->append(with_provenance(json));
  if (options_.json) print_out(json_line(json));
  shown_.push_back(json);
  check_sides(json);
}

void Records::print(const std::string& text) const {
  if (!options_.json) print_text(text);
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
             width - filled, done, total_, visible_line(doing), left);
  std::fflush(stderr);
}

}  // namespace lipscope::cli
