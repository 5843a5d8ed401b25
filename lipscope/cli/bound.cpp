// lipscope bound: what theory allows attention to do, from weights, length and
// radius.

#include "lipscope/audit/bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "lipscope/cli/commands.h"
#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/output_files.h"
#include "lipscope/cli/planned.h"
#include "lipscope/cli/progress_bar.h"
#include "lipscope/cli/shared_options.h"
#include "lipscope/cli/view.h"
#include "lipscope/report/findings.h"
#include "lipscope/report/table.h"
#include "lipscope/report/wrap.h"

namespace lipscope::cli {

using nlohmann::ordered_json;

namespace {

// ---- what is printed

// what the table shows of a record, with the details beside the rest
ordered_json bound_line(const ordered_json& record) {
  ordered_json line = record;
  for (const auto& [name, value] : record["details"].items())
    line[name] = value;
  line["mark"] = record["details"].value("best", false) ? "best" : "";
  if (record.contains("parameters"))
    line["t"] = record["parameters"].value("t", ordered_json(nullptr));
  return line;
}

std::string bounds_text(const std::vector<ordered_json>& lines, bool layers,
                        const View& view) {
  constexpr std::size_t most_rows = 100;
  std::vector<ordered_json> shown;
  if (lines.size() <= most_rows)
    shown = lines;
  else
    std::copy_if(lines.begin(), lines.end(), std::back_inserter(shown),
                 [](const ordered_json& l) { return l["mark"] == "best"; });
  std::vector<Column> columns;
  if (layers) columns.push_back({"layer", "layer"});
  columns.insert(columns.end(), {{"head", "head"},
                                 {"n", "n"},
                                 {"scope", "scope", 3},
                                 {"radius_max", "|x| <=", 4},
                                 {"upper", "upper"},
                                 {"upper_log10", "log10", 5},
                                 {"upper_by", "bound"},
                                 {"mark", ""},
                                 {"regime", "regime", 2}});
  std::string text = table(columns, shown, view.width);
  if (shown.size() < lines.size())
    text += fmt::format(
        "\nthe best of {} bounds; --out FILE.jsonl or --json has them all\n",
        lines.size());

  std::set<std::string> cited;
  std::vector<Meaning> sources;
  for (const ordered_json& line : shown)
    if (cited.insert(line["upper_by"]).second)
      sources.push_back({cell(line["upper_by"]), line.value("citation", "")});
  text += "\n" + legend(sources, view.width);
  if (view.quiet) return text;
  return text + "\n" +
         legend({{"upper",
                  "no change of the input comes out more than this many times "
                  "as large, for any n tokens in the scope; proved, and "
                  "rounded up ('-': beyond 1e308)"},
                 {"regime",
                  "of the best one as n grows. sqrt-n: as the square root of "
                  "n; saturated: slower, since no token can have more than "
                  "e^(2a)/n of the attention; mean-field: within 1% of the "
                  "bound that does not depend on n (docs/bounds.md)"}},
                view.width);
}

std::string witnesses(const std::vector<ordered_json>& lines, bool layers,
                      const View& view) {
  std::vector<Column> columns;
  if (layers) columns.push_back({"layer", "layer"});
  columns.insert(columns.end(), {{"head", "head"},
                                 {"n", "n"},
                                 {"t", "t"},
                                 {"radius_max", "max |x|"},
                                 {"lower", "lower"},
                                 {"lower_by", "found by", 1},
                                 {"witness_head", "witness head", 2}});
  std::string text =
      "not Lipschitz: there is no bound over all inputs. Measured at a family "
      "of inputs:\n\n" +
      table(columns, lines, view.width);
  if (view.quiet) return text;
  return text + "\n" +
         legend({{"lower",
                  "the norm of the Jacobian at tokens t u, -t u, ... and one "
                  "that they pull to both sides alike, from below and in f64; "
                  "it grows as t^2. --radius R bounds it"}},
                view.width);
}

// The records of `bound` for people: every bound, or the best of each question
// where they are many, and after them the witnesses of a map that is not
// Lipschitz. A quiet view leaves out what the columns mean.
std::string bounds_table(const std::vector<ordered_json>& records,
                         const View& view) {
  if (records.empty()) return "";
  const ordered_json& first = records.front();
  const bool layers = !first["layer"].is_null();
  std::vector<ordered_json> bounds, measured;
  for (const ordered_json& r : records)
    (r["lower"].is_null() ? bounds : measured).push_back(bound_line(r));
  std::string text =
      fmt::format("{}: map {}, kind {}, mask {}, norm {}\n\n",
                  cell(first["model"]), cell(first["map"]), cell(first["kind"]),
                  common_mask(records), cell(first["norm"]));
  if (!bounds.empty()) text += bounds_text(bounds, layers, view);
  if (!measured.empty()) text += witnesses(measured, layers, view);
  return text;
}

// ---- what is asked

struct BoundArguments {
  audit::BoundRequest request;
  OutputOptions output;
};

void declare_bound(CLI::App& app, BoundArguments& options) {
  audit::BoundRequest& o = options.request;
  app.description(
      "Bound the Lipschitz constant of attention from above: show every bound "
      "that is proved for\n"
      "these weights, this number of tokens and this radius, and mark the best "
      "one.\n\n"
      "  lipscope bound --random d=64,heads=4 --lengths 8,64,512 --radius 4\n"
      "  lipscope bound gpt2/ --heads each --length 1024 --out bounds.jsonl\n"
      "  lipscope bound bert/ --map model\n"
      "  lipscope bound --weights layer.safetensors --num-heads 8 --kind l2 "
      "--norm inf\n\n"
      "Dot-product attention is not Lipschitz over all inputs: without "
      "--radius, the answer\n"
      "for a layer is a list of inputs at which its constant grows without "
      "limit.");
  declare_weights(app, o.source);
  declare_token_set(app, o.source);
  declare_selection(app, o.selection);
  app.add_option("--seed", o.source.seed, "seed of random weights")
      ->transform(seed_number())
      ->capture_default_str()
      ->group("How");
  app.add_option("--threads", o.threads, "number of threads; 0: all cores")
      ->transform(whole_number(0, 4096))
      ->capture_default_str()
      ->group("How");
  declare_share(app, options.output);
  declare_output(app, options.output);
}

}  // namespace

Run bound_command(CLI::App& app) {
  const auto options = std::make_shared<BoundArguments>();
  declare_bound(app, *options);
  return [options] {
    files_of(options->request.source, options->output)
        .check(options->output.force);
    Records records = records_for(options->output);
    ProgressBar bar(options->output.quiet);
    audit::bound(options->request, records, bar.watch());
    bar.clear();
    conclude(options->output, records.rows(),
             {.table = bounds_table,
              .answer = bounds_finding(records.rows()),
              .most = "upper"});
    return 0;
  };
}

PlannedQuestions bound_questions(CLI::App& app) {
  const auto options = std::make_shared<BoundArguments>();
  declare_bound(app, *options);
  return questions_of(
      options,
      [](const audit::BoundRequest& request, const auto& words,
         const audit::Watch& watch) {
        return audit::plan(request, words, watch);
      },
      [](const audit::BoundRequest& request) {
        return files_of(request.source, {});
      });
}

}  // namespace lipscope::cli
