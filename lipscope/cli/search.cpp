// lipscope search: the inputs at which attention reacts most, over a region,
// beside what theory allows there.

#include "lipscope/audit/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>

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

Rows best_of_each(const Rows& records) {
  Rows best;
  std::copy_if(
      records.begin(), records.end(), std::back_inserter(best),
      [](const ordered_json& r) { return r["parameters"]["of"] == "best"; });
  return best;
}

// "converged", or what ended it: a search is more than its best ascent
std::string search_status(const ordered_json& line) {
  const auto left = line.value("starts_left", 0);
  const auto cut = line.value("starts_cut", 0);
  const auto starts =
      line.contains("starts") ? static_cast<int>(line["starts"].size()) : 0;
  if (left + cut > 0)
    return fmt::format("{} of {} starts", starts - cut, starts + left);
  return line.value("status", "");
}

// "3 of 18": how many starts led to the best; '-' in older records
std::string reached_from(const ordered_json& details) {
  if (!details.contains("reached")) return "-";
  return fmt::format("{} of {}", details["reached"].get<Index>(),
                     details["independent_starts"].get<Index>());
}

// These for people; of a single search also what each start led to. A quiet
// view leaves out what the columns mean.
std::string searched_table(const Rows& records, const View& view) {
  if (records.empty()) return "";
  Rows lines;
  for (const ordered_json& r : records) {
    lines.push_back(r);
    lines.back().update(r["details"]);
    lines.back()["status"] = search_status(lines.back());
    lines.back()["reached_from"] = reached_from(r["details"]);
  }
  const ordered_json& first = lines.front();
  std::string text = fmt::format(
      "{}: map {}, kind {}, mask {}, norm {}, over sequences in the region "
      "named\n\n",
      cell(first["model"]), cell(first["map"]), cell(first["kind"]),
      common_mask(lines), cell(first["norm"]));
  std::vector<Column> columns;
  if (!first["layer"].is_null()) columns.push_back({"layer", "layer"});
  if (masks_differ(lines)) columns.push_back({"mask", "mask"});
  columns.insert(columns.end(), {{"head", "head"},
                                 {"n", "n"},
                                 {"region", "region", 2},
                                 {"lower", "lower"},
                                 {"upper", "upper"},
                                 {"upper_log10", "log10", 8},
                                 {"ratio", "upper/lower"},
                                 {"start", "found from", 3},
                                 {"before", "there", 6},
                                 {"upper_by", "proved by", 4},
                                 {"steps", "evaluations", 5},
                                 {"reached_from", "reached from", 1},
                                 {"status", "status", 1},
                                 {"seconds", "seconds", 7}});
  text += table(columns, lines, view.width);
  if (lines.size() == 1 && first["starts"].size() > 1) {
    text += "\nFrom each start\n\n";
    text += table({{"start", "start"},
                   {"before", "there"},
                   {"value", "climbed to"},
                   {"evaluations", "evaluations", 2},
                   {"status", "status", 1}},
                  first["starts"].get<std::vector<ordered_json>>(), view.width);
  }
  if (view.quiet) return text;
  return text + "\n" +
         legend({{"lower",
                  "the constant over the region is at least this: how much "
                  "larger a small change comes out at the tokens found, "
                  "recomputed in f64"},
                 {"upper",
                  "it is at most this, by the bound that is named; '-' where "
                  "none is proved"},
                 {"found from",
                  "the start whose ascent reached the largest norm; 'there': "
                  "the norm at this start"},
                 {"reached from",
                  "how many of the starts led within 0.1 % of 'lower'; where "
                  "it is one, other starts may find more (--restarts, --seed)"},
                 {"status",
                  "converged: the search ascended from every start and the "
                  "best ascent converged; 3 of 11 starts: --budget ended the "
                  "others; not-converged: --max-evaluations ended the best "
                  "ascent. lower holds in any case"}},
                view.width);
}

// ---- what is asked

struct SearchArguments {
  audit::SearchRequest request;
  OutputOptions output;
  bool strict = false;
};

void declare_search(CLI::App& app, SearchArguments& options) {
  audit::SearchRequest& o = options.request;
  app.description(
      "Search for the tokens at which attention amplifies a change most, over "
      "all sequences\n"
      "of a length whose tokens lie in a region. Print the largest constant "
      "found, with its\n"
      "tokens, and the best proved bound. The search starts from inputs that "
      "theory suggests\n"
      "and from random ones.\n\n"
      "  lipscope search gpt2/ --layers 5 --heads 3 --length 64 --radius ln\n"
      "  lipscope search --weights layer.safetensors --num-heads 1 --length 20 "
      "--radius 2 \\\n"
      "      --save-input x.npy --save-direction v.npy\n"
      "  lipscope search --random d=1,heads=1,scale=1 --kind l2 --norm inf "
      "--lengths 3,5,9");
  declare_weights(app, o.source);
  declare_token_set(app, o.source);
  declare_selection(app, o.selection);

  const char* group = "How hard to try";
  app.add_option("--restarts", o.search.restarts,
                 "random starts, in addition to those that theory suggests; "
                 "more follow until they lead no higher")
      ->transform(whole_number(0, 1000000))
      ->capture_default_str()
      ->group(group);
  app.add_option("--max-evaluations", o.search.max_evaluations,
                 "largest number of evaluations of the norm and its gradient "
                 "in each ascent")
      ->transform(whole_number(1, 100000000))
      ->capture_default_str()
      ->group(group);
  app.add_option("--budget", o.search.budget,
                 "stop all searches together after this many seconds, and show "
                 "what was found; 0: no limit. A search that is stopped may "
                 "differ from run to run")
      ->transform(number_not_negative())
      ->capture_default_str()
      ->group(group);
  app.add_flag("--strict", options.strict,
               "exit code 3 if a search was stopped or its best ascent did not "
               "converge")
      ->group(group);
  app.add_option("--seed", o.source.seed,
                 "seed of random weights, tokens and directions")
      ->transform(seed_number())
      ->capture_default_str()
      ->group(group);
  app.add_option("--threads", o.threads, "number of threads; 0: all cores")
      ->transform(whole_number(0, 4096))
      ->capture_default_str()
      ->group(group);

  declare_share(app, options.output);
  declare_output(app, options.output);
  app.add_option("--save-input", o.save_input,
                 "write the best tokens, [n, d], to X.npy (one search only)")
      ->type_name("FILE")
      ->group("Output");
  app.add_option("--save-direction", o.save_direction,
                 "write the direction that they amplify most, [n, d], to V.npy "
                 "(one search only)")
      ->type_name("FILE")
      ->group("Output");
}

}  // namespace

Run search_command(CLI::App& app) {
  const auto options = std::make_shared<SearchArguments>();
  declare_search(app, *options);
  return [options] {
    const audit::SearchRequest& o = options->request;
    OutputFiles files = files_of(o.source, options->output);
    files.writes_matrices(o.save_direction, o.save_input);
    files.check(options->output.force);
    Records records = records_for(options->output);
    ProgressBar bar(options->output.quiet);
    const audit::Outcome outcome = audit::search(o, records, bar.watch());
    bar.clear();
    conclude(
        options->output, best_of_each(records.rows()),
        {.table = searched_table, .answer = searched_finding(records.rows())});
    return options->strict && !outcome.converged ? 3 : 0;
  };
}

PlannedQuestions search_questions(CLI::App& app) {
  const auto options = std::make_shared<SearchArguments>();
  declare_search(app, *options);
  return questions_of(
      options,
      [](const audit::SearchRequest& request, const auto& words,
         const audit::Watch& watch) {
        return audit::plan(request, words, watch);
      },
      [](const audit::SearchRequest& request) {
        return files_of(request.source, {});
      });
}

}  // namespace lipscope::cli
