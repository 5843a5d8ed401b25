// lipscope reproduce: a figure or table of the papers, made again.

#include "lipscope/audit/reproduce.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>

#include "lipscope/cli/choice.h"
#include "lipscope/cli/commands.h"
#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/growth_table.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/output_files.h"
#include "lipscope/cli/progress_bar.h"
#include "lipscope/cli/terminal.h"
#include "lipscope/cli/view.h"
#include "lipscope/experiments/experiment.h"
#include "lipscope/report/findings.h"
#include "lipscope/report/table.h"
#include "lipscope/report/wrap.h"

namespace lipscope::cli {

using nlohmann::ordered_json;

namespace {

// ---- what is printed

// a value, and in brackets its range over several seeds
std::string value_cell(const ordered_json& row) {
  const std::string value = cell(row["value"]);
  const ordered_json found = row.value("details", ordered_json::object());
  if (!found.contains("least") || !found.contains("most")) return value;
  return fmt::format("{} ({} to {})", value, cell(found["least"]),
                     cell(found["most"]));
}

// values that are no constants: a line for each x, a column for each series
std::string value_table(const Figure& figure,
                        const std::vector<ordered_json>& rows,
                        const View& view) {
  std::vector<Column> columns = {{"x", figure.x_name}};
  std::vector<ordered_json> lines;
  bool starred = false;
  for (const ordered_json& row : rows) {
    const std::string series = row["series"];
    const auto is_series = [&](const Column& c) { return c.title == series; };
    if (std::none_of(columns.begin() + 1, columns.end(), is_series))
      columns.push_back({"of " + series, series, 1});
    const auto same_x = [&](const ordered_json& l) {
      return l["x"] == row["x"];
    };
    auto line = std::find_if(lines.begin(), lines.end(), same_x);
    if (line == lines.end())
      line = lines.insert(lines.end(), ordered_json{{"x", row["x"]}});
    const bool converged = row["status"] == "converged";
    starred = starred || !converged;
    (*line)["of " + series] = value_cell(row) + (converged ? "" : " *");
  }
  // where curves share no x, a line for each point
  if (2 * lines.size() > rows.size() && columns.size() > 3) {
    columns = {{"series", "series"}, {"x", figure.x_name}, {"value", "value"}};
    lines = rows;
    for (ordered_json& line : lines)
      line["value"] =
          value_cell(line) + (line["status"] == "converged" ? "" : " *");
  }
  return figure.y_name + ":\n" + table(columns, lines, view.width) +
         (starred ? "* not converged\n" : "");
}

// a line of the table: what was asked stands among what was found
ordered_json reproduced_line(ordered_json record) {
  const ordered_json asked = record["parameters"];
  record.update(asked);
  // where it is drawn can be known after it was asked
  const ordered_json found = record.value("details", ordered_json::object());
  if (found.contains("drawn_at")) record["x"] = found["drawn_at"];
  if (record["upper"].is_null() && record["upper_log10"].is_number())
    record["upper"] =
        fmt::format("10^{:.1f}", record["upper_log10"].get<double>());
  return record;
}

// The records of a figure of `reproduce` for people, under its title:
// constants line by line, or values with a line for each x and a column for
// each series. A quiet view leaves out the explanation.
std::string figure_table(const Figure& figure, Rows rows, const View& view) {
  for (ordered_json& row : rows) row = reproduced_line(std::move(row));
  std::string text = figure.title + "\n";
  if (!view.quiet)
    text +=
        wrapped(figure.explanation, view.width == 0 ? 80 : view.width) + "\n";
  if (rows.front().contains("value_of"))
    return text + "\n" + value_table(figure, rows, view) + "\n";
  return text + "\n" +
         table({{"series", "series"},
                {"x", figure.x_name},
                {"n", "n", 4},
                {"mask", "mask", 5},
                {"norm", "norm", 6},
                {"lower", "lower"},
                {"lower_by", "by", 3},
                {"upper", "upper"},
                {"upper_by", "by", 1},
                {"scope", "scope", 2},
                {"status", "status", 7}},
               rows, view.width) +
         "\n";
}

// ---- what is asked

struct ReproduceArguments {
  audit::ReproduceRequest request{.name = "list"};
  OutputOptions output;
};

std::string list_of_experiments(std::size_t width) {
  std::vector<Meaning> list;
  for (const Experiment& e : experiments())
    list.push_back({"  " + e.name, e.sentence});
  return legend(list, width);
}

void declare_reproduce(CLI::App& app, ReproduceArguments& options) {
  audit::ReproduceRequest& o = options.request;
  app.description(
      "Make a figure or table of the papers again: numbers from below and from "
      "above, as a table\nand, with --out, as records that `lipscope report` "
      "draws.\n\n" +
      list_of_experiments(0) +
      "\n  lipscope reproduce kim-tightness\n"
      "  lipscope reproduce castin-adversarial --model gpt2/ --out "
      "adversarial.jsonl\n"
      "  lipscope reproduce kim-charlm --text shakespeare.txt --out "
      "charlm.jsonl --resume\n"
      "  lipscope reproduce mass-splitting --full --json");
  std::vector<std::string> names = audit::names_of_experiments();
  names.push_back("list");
  offer(app.add_option("NAME", o.name, "the experiment; list: show all names")
            ->capture_default_str(),
        names);
  app.add_option("--model", o.model,
                 "a Hugging Face folder of GPT-2 or BERT whose heads are taken "
                 "in place of a small made-up one (castin-adversarial, "
                 "castin-real, layer-norm)")
      ->type_name("DIR");
  app.add_option("--text", o.text,
                 "a text that the model reads (castin-real), or that models "
                 "learn (kim-charlm, kim-stability, newhouse-shakespeare, "
                 "robustness-histogram; "
                 "without it, a generated one)")
      ->type_name("FILE");
  app.add_option("--runs", o.experiment.runs,
                 "folders of lipscope train whose last weights are shown in "
                 "place of models that it trains (newhouse-shakespeare; give "
                 "the text that they learnt)")
      ->type_name("DIR");
  const char* group = "How hard to try";
  app.add_flag("--full", o.experiment.full,
               "the full size of the paper: minutes to hours")
      ->group(group);
  app.add_option("--steps", o.experiment.steps,
                 "training steps of each model, in experiments that train; 0: "
                 "the default of the experiment")
      ->transform(whole_number(0, Index{1} << 30))
      ->capture_default_str()
      ->group(group);
  app.add_option("--seed", o.experiment.seed,
                 "seed of random weights, tokens and starts")
      ->transform(seed_number())
      ->capture_default_str()
      ->group(group);
  app.add_option("--threads", o.experiment.threads,
                 "number of threads; 0: all cores")
      ->transform(whole_number(0, 4096))
      ->capture_default_str()
      ->group(group);
  declare_output(app, options.output, false);
}

void print(const std::string& experiment, const OutputOptions& output,
           const std::vector<audit::Drawn>& figures) {
  Rows all, fits;
  for (const audit::Drawn& drawn : figures) {
    all.insert(all.end(), drawn.rows.begin(), drawn.rows.end());
    fits.insert(fits.end(), drawn.fits.begin(), drawn.fits.end());
  }
  Rows spoken_of = all;
  spoken_of.insert(spoken_of.end(), fits.begin(), fits.end());
  conclude(output, all,
           {.table =
                [&](const Rows&, const View& view) {
                  std::string text;
                  for (const audit::Drawn& drawn : figures)
                    if (!drawn.rows.empty())
                      text += figure_table(drawn.figure, drawn.rows, view) +
                              growth_table(drawn.fits, view) + "\n";
                  return text;
                },
            .answer = reproduced_finding(experiment, spoken_of)});
}

}  // namespace

Run reproduce_command(CLI::App& app) {
  const auto options = std::make_shared<ReproduceArguments>();
  declare_reproduce(app, *options);
  return [options] {
    const audit::ReproduceRequest& o = options->request;
    if (o.name == "list") {
      print_text(list_of_experiments(screen_width(STDOUT_FILENO)));
      return 0;
    }
    OutputFiles files;
    files.reads(o.model, "--model");
    files.reads(o.text, "--text");
    for (const std::string& run : o.experiment.runs) files.reads(run, "--runs");
    files.writes(options->output.out, "--out", OutputKind::records);
    files.check(options->output.force);
    Records records = records_for(options->output);
    ProgressBar bar(options->output.quiet);
    const std::vector<audit::Drawn> figures =
        audit::reproduce(o, records, bar.watch());
    bar.clear();
    print(o.name, options->output, figures);
    return 0;
  };
}

}  // namespace lipscope::cli
