#include "lipscope/cli/output.h"

#include <fmt/format.h>

#include <cstdio>

#include "lipscope/core/errors.h"
#include "lipscope/core/visible_text.h"
#include "lipscope/io/json_text.h"

namespace lipscope::cli {
void print_out(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
      std::fflush(stdout) != 0)
    throw RunError("standard output cannot be written");
}

void print_text(const std::string& text) { print_out(visible_text(text)); }

Records records_for(const OutputOptions& o) {
  RecordsOptions options{.file = o.out, .resume = o.resume};
  if (!o.plan.empty())
    options.share = std::make_shared<const Share>(
        read_plan(o.plan), o.shard.empty() ? Shard() : parse_shard(o.shard));
  if (o.json)
    options.shown = [](const nlohmann::ordered_json& row) {
      print_out(json_line(row));
    };
  if (!o.quiet)
    options.noted = [file = o.out](const std::string& note) {
      fmt::print(stderr, "lipscope: --resume: {}: {}\n", file,
                 visible_text(note));
    };
  if (!o.quiet)
    options.counted = [file = o.out](Index found, Index to_do) {
      fmt::print(
          stderr,
          "lipscope: --resume: {} of {} answers are in {}; {} still to do\n",
          found, found + to_do, file, to_do);
    };
  return Records(std::move(options));
}

void declare_output(CLI::App& app, OutputOptions& o, bool rows) {
  const char* group = "Output";
  app.add_flag("--json", o.json, "print one JSON object per line, no table")
      ->group(group);
  auto* out =
      app.add_option("--out", o.out,
                     "append each record to FILE.jsonl as soon as it is made; "
                     "a crash loses no record that was written")
          ->type_name("FILE")
          ->group(group);
  app.add_flag("--resume", o.resume,
               "do not compute again what is already in --out; the tables show "
               "it too")
      ->needs(out)
      ->group(group);
  app.add_flag("--quiet", o.quiet, "no progress bar, no explanations")
      ->group(group);
  declare_view(app, o.view, rows);
  declare_force(app, o.force);
}

void declare_force(CLI::App& app, bool& force) {
  app.add_flag("--force", force,
               "also replace existing files of another kind; files that the "
               "command reads are never replaced")
      ->group("Output");
}

}  // namespace lipscope::cli
