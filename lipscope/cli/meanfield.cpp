// lipscope meanfield: attention as a map of measures, tokens that weigh.

#include "lipscope/audit/meanfield.h"

#include <fmt/format.h>

#include <algorithm>
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

// the record with what stands in its own columns lifted out of its details
ordered_json meanfield_line(const ordered_json& record) {
  ordered_json line = record;
  const ordered_json& asked = record["parameters"];
  line["change"] = asked["change"];
  if (asked.contains("pieces"))
    line["change"] = fmt::format("{} x{}", asked["change"].get<std::string>(),
                                 asked["pieces"].dump());
  if (asked.contains("optimise"))
    line["change"] =
        fmt::format("{}, worst {}", asked["change"].get<std::string>(),
                    asked["optimise"].get<std::string>());
  if (line["upper"].is_null() && line["upper_log10"].is_number())
    line["upper"] = fmt::format("1e{:.1f}", line["upper_log10"].get<double>());
  if (record.contains("details"))
    for (const char* field : {"token", "relative_gap"})
      if (record["details"].contains(field))
        line[field] = record["details"][field];
  return line;
}

const std::vector<Meaning>& changes_explained() {
  static const std::vector<Meaning> all = {
      {"move",
       "tokens move whole, by any small amounts: the local constant without "
       "splitting"},
      {"split",
       "tokens may also be cut, and the halves move apart: the local constant; "
       "'token' is the one that reacts most to being cut"},
      {"duplicate",
       "every token listed this number of times with its share of the mass, "
       "then moved: the same number as 'split' by another way"},
      {"moved",
       "what really happened to the distance when the tokens were moved along "
       "the worst direction, by exact optimal transport"},
      {"parted", "the same when the token was cut into halves that parted"}};
  return all;
}

// The records of `meanfield` for people. A quiet view leaves out what the
// lines mean.
std::string meanfield_table(const std::vector<ordered_json>& records,
                            const View& view) {
  if (records.empty()) return "";
  const ordered_json& first = records.front();
  std::string text =
      fmt::format("{}: map {}, kind {}, mask {}, distance {}\n\n",
                  cell(first["model"]), cell(first["map"]), cell(first["kind"]),
                  cell(first["mask"]), cell(first["norm"]));

  std::vector<Column> columns;
  if (!first["layer"].is_null()) columns.push_back({"layer", "layer"});
  columns.insert(columns.end(), {{"head", "head"},
                                 {"n", "n"},
                                 {"sample", "sample", 1},
                                 {"scope", "over", 4},
                                 {"radius_max", "max |x|", 7},
                                 {"change", "change"},
                                 {"token", "token", 2},
                                 {"lower", "lower"},
                                 {"upper_whp", "upper (whp)"},
                                 {"upper", "upper"},
                                 {"upper_by", "by", 3},
                                 {"relative_gap", "duality gap", 6},
                                 {"status", "status", 5}});
  std::vector<ordered_json> lines;
  std::set<std::string> changes;
  for (const ordered_json& record : records) {
    lines.push_back(meanfield_line(record));
    changes.insert(record["parameters"]["change"].get<std::string>());
  }
  text += table(columns, lines, view.width);
  if (view.quiet) return text;

  std::vector<Meaning> meanings;
  for (const Meaning& m : changes_explained())
    if (changes.contains(m.word)) meanings.push_back(m);
  if (changes.contains("moved") || changes.contains("parted"))
    meanings.push_back({"duality gap",
                        "how far, relatively, the transport plans may be from "
                        "the best ones"});
  meanings.push_back(
      {"lower, upper",
       "the constant in the distance is at least, and at most, this; '-' where "
       "nothing is proved. Over a ball: of all measures whose tokens lie in "
       "it"});
  return text + "\n" + legend(meanings, view.width);
}

// ---- what is asked

struct MeanfieldArguments {
  audit::MeanfieldRequest request;
  OutputOptions output;
  bool strict = false;
};

void declare_meanfield(CLI::App& app, MeanfieldArguments& options) {
  audit::MeanfieldRequest& o = options.request;
  app.description(
      "Attention on tokens with masses: if two sets of tokens are near each "
      "other in the\n"
      "Wasserstein distance W2 (with a mask: in the conditional distance d2), "
      "how far apart can\n"
      "the outputs be? Tokens may move, and may also be cut into halves that "
      "move apart.\n\n"
      "  lipscope meanfield --weights layer.safetensors --num-heads 1   (with "
      "x and mass)\n"
      "  lipscope meanfield --random d=8,heads=2,scale=1 --length 5 "
      "--duplicate 2\n"
      "  lipscope meanfield bert/ --text alice.txt --layers 0,5 --lengths 8,32 "
      "--samples 1\n"
      "  lipscope meanfield --weights two.safetensors --num-heads 1 "
      "--optimise-masses");
  declare_source(app, o.source);
  declare_selection(app, o.selection);

  const char* group = "Masses (mass and position of --weights, if present)";
  app.add_option("--step", o.changes.step,
                 "how far the tokens are moved for the W2 ratio, relative to "
                 "the longest token; 0: not at all")
      ->transform(number_between(0.0, 1.0))
      ->capture_default_str()
      ->group(group);
  app.add_option("--duplicate", o.changes.duplicate,
                 "also list every token K times, with its share of the mass, "
                 "and measure this")
      ->transform(whole_number(2, 64))
      ->type_name("K")
      ->group(group);
  auto* optimise =
      app.add_flag("--optimise-masses", o.changes.optimise_masses,
                   "look for the masses on these few tokens at which the "
                   "constant is largest")
          ->group(group);
  app.add_option("--move-atoms", o.changes.move_atoms,
                 "let the tokens move as well, within this radius")
      ->needs(optimise)
      ->transform(positive_number())
      ->type_name("R")
      ->group(group);
  app.add_option("--restarts", o.changes.restarts,
                 "random starts of --optimise-masses")
      ->transform(whole_number(0, 100000))
      ->capture_default_str()
      ->group(group);

  group = "How hard to try";
  declare_solver(app, o.solver, group);
  declare_effort(app, options.strict, o.source.seed, o.solver.threads, group);

  declare_output(app, options.output);
  app.add_option("--save-direction", o.save_direction,
                 "write the worst change, [n, d], to V.npy: how each token "
                 "moves or, if cutting does more, how the halves of one token "
                 "move apart (one input only)")
      ->type_name("FILE")
      ->group("Output");
  app.add_option("--save-input", o.save_input,
                 "write the tokens, [n, d], to X.npy; of --optimise-masses, "
                 "those found (one input only)")
      ->type_name("FILE")
      ->group("Output");
}

}  // namespace

Run meanfield_command(CLI::App& app) {
  const auto options = std::make_shared<MeanfieldArguments>();
  declare_meanfield(app, *options);
  return [options] {
    const audit::MeanfieldRequest& o = options->request;
    OutputFiles files = files_of(o.source, options->output);
    files.writes_matrices(o.save_direction, o.save_input);
    files.check(options->output.force);
    Records records = records_for(options->output);
    ProgressBar bar(options->output.quiet);
    const audit::Outcome outcome = audit::meanfield(o, records, bar.watch());
    bar.clear();
    conclude(options->output, records.rows(),
             {.table = meanfield_table,
              .answer = meanfield_finding(records.rows())});
    return options->strict && !outcome.converged ? 3 : 0;
  };
}

}  // namespace lipscope::cli
