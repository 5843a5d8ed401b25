// lipscope measure: how sharply attention reacts at given inputs.

#include "lipscope/audit/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "lipscope/cli/commands.h"
#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/growth_table.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/output_files.h"
#include "lipscope/cli/planned.h"
#include "lipscope/cli/progress_bar.h"
#include "lipscope/cli/shared_options.h"
#include "lipscope/cli/view.h"
#include "lipscope/core/matrix.h"
#include "lipscope/report/bound_names.h"
#include "lipscope/report/findings.h"
#include "lipscope/report/median.h"
#include "lipscope/report/table.h"
#include "lipscope/report/wrap.h"

namespace lipscope::cli {

using nlohmann::ordered_json;

namespace {

// ---- what is printed

// one line for all samples of a length
std::vector<ordered_json> by_length(const std::vector<ordered_json>& records) {
  std::map<std::tuple<std::string, std::string, Index>, std::vector<double>>
      values, above;
  for (const ordered_json& r : records) {
    const std::tuple key{r["layer"].dump(), r["head"].dump(),
                         r["n"].get<Index>()};
    values[key].push_back(r["lower"].get<double>());
    above[key].push_back(r["upper"].is_null() ? INFINITY
                                              : r["upper"].get<double>());
  }
  std::vector<ordered_json> lines;
  std::set<std::tuple<std::string, std::string, Index>> seen;
  for (const ordered_json& r : records) {
    const std::tuple key{r["layer"].dump(), r["head"].dump(),
                         r["n"].get<Index>()};
    if (!seen.insert(key).second) continue;
    const std::vector<double>& lower = values[key];
    const auto [least, most] = std::minmax_element(lower.begin(), lower.end());
    const double median_upper = median(above[key]);
    lines.push_back(
        {{"layer", r["layer"]},
         {"mask", r["mask"]},
         {"head", r["head"]},
         {"n", r["n"]},
         {"samples", lower.size()},
         {"least", *least},
         {"median", median(lower)},
         {"most", *most},
         {"upper", std::isfinite(median_upper) ? ordered_json(median_upper)
                                               : ordered_json(nullptr)},
         {"upper_by", r["upper_by"]}});
  }
  return lines;
}

// The records of `measure` for people: each by itself, or one line for each
// length where they are many. A quiet view leaves out what the columns mean.
std::string measured_table(const std::vector<ordered_json>& records,
                           const View& view) {
  if (records.empty()) return "";
  const ordered_json& first = records.front();
  const bool layers = !first["layer"].is_null();
  std::string text =
      fmt::format("{}: map {}, kind {}, mask {}, norm {}, at each input\n\n",
                  cell(first["model"]), cell(first["map"]), cell(first["kind"]),
                  common_mask(records), cell(first["norm"]));

  std::vector<Column> columns;
  if (layers) columns.push_back({"layer", "layer"});
  if (masks_differ(records)) columns.push_back({"mask", "mask"});
  constexpr std::size_t most_rows = 100;
  if (records.size() <= most_rows) {
    columns.insert(columns.end(), {{"head", "head"},
                                   {"n", "n"},
                                   {"sample", "sample", 2},
                                   {"radius_max", "max |x|", 5},
                                   {"lower", "lower"},
                                   {"upper_whp", "upper (whp)"},
                                   {"upper", "upper"},
                                   {"upper_by", "proved by", 1},
                                   {"lower_by", "found by", 7},
                                   {"residual", "residual", 6},
                                   {"steps", "steps", 4},
                                   {"status", "status", 3},
                                   {"seconds", "seconds", 8}});
    text += table(columns, records, view.width);
  } else {
    columns.insert(columns.end(), {{"head", "head"},
                                   {"n", "n"},
                                   {"samples", "samples", 1},
                                   {"least", "least lower", 2},
                                   {"median", "median"},
                                   {"most", "most"},
                                   {"upper", "median upper"},
                                   {"upper_by", "proved by", 3}});
    text += table(columns, by_length(records), view.width);
    const auto converged = std::count_if(
        records.begin(), records.end(),
        [](const ordered_json& r) { return r["status"] == "converged"; });
    text += fmt::format(
        "\n{} measurements, {} of them converged; --out FILE.jsonl keeps each "
        "with its evidence\n",
        records.size(), converged);
  }

  if (view.quiet) return text;
  std::vector<Meaning> meanings = {
      {"lower",
       "how many times larger a small change of the input comes out, for the "
       "worst direction found; recomputed in f64, so the true constant is at "
       "least this"}};
  if (!first["delta"].is_null() && records.size() <= most_rows)
    meanings.push_back(
        {"upper (whp)",
         fmt::format("the true constant is at most this, but for a chance of "
                     "{:.0e} over the random start; --enclose 1.05 goes on "
                     "until it is within 5 % of 'lower'",
                     first["delta"].get<double>())});
  meanings.push_back(
      {"upper",
       "the true constant is at most this, for certain: by a decomposition "
       "(dense-gram, row-sweep) or by the bound that is named "
       "(docs/bounds.md); "
       "'-' where nothing is proved"});
  return text + "\n" + legend(meanings, view.width);
}

std::string time_of_pass(const audit::Outcome& outcome, const View& view) {
  if (view.quiet || outcome.input_seconds == 0.0) return "";
  return fmt::format(
      "\nThe forward pass that computed these inputs took {:.3g} s.\n",
      outcome.input_seconds);
}

// ---- what is asked

struct MeasureArguments {
  audit::MeasureRequest request;
  OutputOptions output;
  bool strict = false;
};

void declare_measure(CLI::App& app, MeasureArguments& options) {
  audit::MeasureRequest& o = options.request;
  app.description(
      "Measure the local Lipschitz constant of attention: the norm of its "
      "Jacobian at given\n"
      "tokens. 'lower' comes with a direction that reaches it, 'upper' with a "
      "proof.\n\n"
      "  lipscope measure bert/ --text alice.txt --lengths 8,32,128 --heads "
      "each\n"
      "  lipscope measure gpt2/ --text alice.txt --map block --layers 0,6,11\n"
      "  lipscope measure --random d=768,heads=12 --length 128 --enclose 1.05\n"
      "  lipscope measure --weights layer.safetensors --num-heads 12 --mask "
      "causal \\\n"
      "      --input x.npy --save-direction v.npy");
  declare_source(app, o.source);
  declare_selection(app, o.selection);

  const char* group = "How hard to try";
  declare_solver(app, o.solver, group);
  app.add_option(
         "--certificate", o.certificate,
         "what proves 'upper' where the Jacobian is too large to decompose. "
         "auto: split_paths, and token_pairs for one head of dot-product "
         "attention; split, pairs (seconds for a layer at 32 tokens), "
         "covariances (dot-product attention), tight (for layers; seconds) or "
         "exact (the norm itself; seconds; heads, and layers of few tokens): "
         "only this one; all: all of them, the best counts; none")
      ->transform(present_certificate_word, "")
      ->type_name("NAME")
      ->capture_default_str()
      ->group(group);
  app.add_option("--budget", o.budget,
                 "stop after this many seconds, and show what was found")
      ->transform(positive_number())
      ->group(group);
  declare_effort(app, options.strict, o.source.seed, o.solver.threads, group);

  app.add_option("--memory", o.memory,
                 "bytes that attention weights may take in each precision, "
                 "e.g. 2G; if they need more, every product computes them "
                 "again [default: a quarter of the machine's memory]")
      ->transform(byte_size())
      ->type_name("BYTES")
      ->group(group);

  declare_share(app, options.output);
  declare_output(app, options.output);
  app.add_flag("--tokens", o.tokens,
               "record how much of the worst change belongs to each token, at "
               "the input and at the output, and for up to 32 tokens how much "
               "goes from each token to each; 'report' shows this in the text")
      ->group("Output");
  app.add_option("--save-direction", o.save_direction,
                 "write the direction of 'lower', [n, d], to V.npy (one "
                 "measurement only)")
      ->type_name("FILE")
      ->group("Output");
  app.add_option("--save-input", o.save_input,
                 "write the tokens, [n, d], to X.npy (one measurement only)")
      ->type_name("FILE")
      ->group("Output");
}

}  // namespace

Run measure_command(CLI::App& app) {
  const auto options = std::make_shared<MeasureArguments>();
  declare_measure(app, *options);
  return [options] {
    const audit::MeasureRequest& o = options->request;
    OutputFiles files = files_of(o.source, options->output);
    files.writes_matrices(o.save_direction, o.save_input);
    files.check(options->output.force);
    Records records = records_for(options->output);
    ProgressBar bar(options->output.quiet);
    const audit::Outcome outcome = audit::measure(o, records, bar.watch());
    bar.clear();
    conclude(options->output, records.rows(),
             {.table =
                  [&](const Rows& rows, const View& view) {
                    return measured_table(rows, view) +
                           growth_table(records.fits(), view) +
                           time_of_pass(outcome, view);
                  },
              .answer = measured_finding(records.rows())});
    return options->strict && !outcome.converged ? 3 : 0;
  };
}

PlannedQuestions measure_questions(CLI::App& app) {
  const auto options = std::make_shared<MeasureArguments>();
  declare_measure(app, *options);
  return questions_of(
      options,
      [](const audit::MeasureRequest& request, const auto& words,
         const audit::Watch& watch) {
        return audit::MeasureWorker(request, watch).plan(words);
      },
      [](const audit::MeasureRequest& request) {
        return files_of(request.source, {});
      });
}

}  // namespace lipscope::cli
