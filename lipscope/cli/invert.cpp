// lipscope invert: the input of residual attention from its output, with the
// number of iterations known beforehand and the error bounded afterwards.

#include "lipscope/audit/invert.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lipscope/audit/recover.h"
#include "lipscope/cli/choice.h"
#include "lipscope/cli/commands.h"
#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/output_files.h"
#include "lipscope/cli/progress_bar.h"
#include "lipscope/cli/shared_options.h"
#include "lipscope/cli/view.h"
#include "lipscope/core/errors.h"
#include "lipscope/report/findings.h"
#include "lipscope/report/table.h"
#include "lipscope/report/wrap.h"

namespace lipscope::cli {

using nlohmann::ordered_json;

namespace {

// ---- what is printed

// The records of `invert` as tables for people: one line for each inversion,
// how the first went on from iteration to iteration, the volumes where they
// were asked for, and unless quiet what the columns mean.
std::string inverted_table(const std::vector<ordered_json>& records,
                           const View& view) {
  if (records.empty()) return "";
  const ordered_json& first = records.front();
  std::string text = fmt::format(
      "{}: inverse of x + {} f(x){}, f of kind {}, mask {}, norm {}\n\n",
      cell(first["model"]), cell(first["parameters"]["scale"]),
      first["parameters"]["depth"] == 1
          ? ""
          : fmt::format(" {} times", cell(first["parameters"]["depth"])),
      cell(first["kind"]), cell(first["mask"]), cell(first["norm"]));

  std::vector<ordered_json> lines, volumes;
  for (const ordered_json& r : records) {
    lines.push_back(r);
    lines.back().update(r["details"]);
    if (!r["details"].contains("log_det")) continue;
    volumes.push_back(r);
    volumes.back().update(r["details"]["log_det"]);
  }
  std::vector<Column> place;
  if (!first["layer"].is_null()) place.push_back({"layer", "layer"});
  place.insert(place.end(), {{"n", "n"}, {"sample", "sample"}});
  std::vector<Column> columns = place;
  columns.insert(columns.end(), {{"steps", "iterations"},
                                 {"a_priori", "enough", 1},
                                 {"lower", "error"},
                                 {"upper", "bound"},
                                 {"residual", "residual", 4},
                                 {"worst_ratio", "ratio", 3},
                                 {"contraction", "q", 2},
                                 {"outcome", "status"},
                                 {"seconds", "seconds", 5}});
  text += table(columns, lines, view.width);
  if (lines.front().contains("curve"))
    text += "\nFrom iteration to iteration, the first of them\n\n" +
            table({{"iteration", "iteration"},
                   {"step", "step"},
                   {"error", "error"},
                   {"bound", "bound"}},
                  lines.front()["curve"].get<std::vector<ordered_json>>(),
                  view.width);
  if (!volumes.empty()) {
    columns = place;
    columns.insert(columns.end(), {{"value", "log det"},
                                   {"error_bar", "+-"},
                                   {"truncation", "cut off"},
                                   {"terms", "terms"},
                                   {"probes", "probes"},
                                   {"dense", "dense"}});
    text += "\nLogarithm of the volume's change\n\n" +
            table(columns, volumes, view.width);
  }
  if (view.quiet) return text;
  std::vector<Meaning> meanings = {
      {"enough",
       "this number of iterations is enough, known after the first step; '-' "
       "where nothing is proved"},
      {"error", "|X found - X|, measured where X is known"},
      {"bound", "it is at most this: (q step + rounding)/(1 - q)"},
      {"residual", "|g(X found) - Y|, measured"},
      {"ratio",
       "the largest step over the one before it, above rounding; at most q if "
       "there is a q, the contraction that is proved"},
      {"status",
       "diverged: the steps grew for ever; not-converged: neither that nor at "
       "rest"}};
  if (!volumes.empty())
    meanings.push_back(
        {"+-",
         "error bar of the random signs at 95 %; cut off: a bound on the rest "
         "of the series; dense: by LU, where n d is at most 512"});
  return text + "\n" + legend(meanings, view.width);
}

// The records of texts recovered from activations, as a person reads them: a
// line for each passage, the blocks of the first, and the texts.
std::string recovered_table(const std::vector<ordered_json>& records,
                            const View& view) {
  if (records.empty()) return "";
  const ordered_json& first = records.front();
  std::string text = fmt::format(
      "{}: text from the last layer's activations, kind {}, mask {}, norm "
      "{}\n\n",
      cell(first["model"]), cell(first["kind"]), cell(first["mask"]),
      cell(first["norm"]));
  std::vector<ordered_json> lines;
  for (const ordered_json& r : records) {
    lines.push_back(r);
    lines.back().update(r["details"]);
  }
  text += table({{"n", "n"},
                 {"sample", "sample", 1},
                 {"recovered", "recovered"},
                 {"proved", "proved"},
                 {"lower", "error"},
                 {"upper", "bound"},
                 {"margin", "margin", 2},
                 {"steps", "iterations", 4},
                 {"outcome", "status", 3},
                 {"seconds", "seconds", 5}},
                lines, view.width);
  text += "\nBlock by block, the first of them\n\n" +
          table({{"block", "block"},
                 {"iterations", "iterations"},
                 {"a_priori", "enough", 2},
                 {"contraction", "q"},
                 {"lipschitz", "Lip_inf <=", 1},
                 {"error_bound", "own bound"},
                 {"status", "status"}},
                first["details"]["blocks"].get<std::vector<ordered_json>>(),
                view.width);
  for (const ordered_json& line : lines)
    text +=
        fmt::format("\n--- text, n = {}, sample {} ---\n{}\n", cell(line["n"]),
                    cell(line["sample"]), line["text"].get<std::string>());
  if (view.quiet) return text;
  return text + "\n" +
         legend(
             {{"recovered",
               "characters that came out as they went in, where that is "
               "known"},
              {"proved",
               "characters of which no other is within the bound: the "
               "activations come from a text, and it has these"},
              {"error",
               "of the embeddings, in their worst entry, measured where they "
               "are known"},
              {"bound",
               "it is at most this; '-' where nothing is proved: then the "
               "text is what came out, and no more is known of it"},
              {"margin",
               "half the smallest distance of two characters' embeddings: a "
               "bound below it proves all"},
              {"enough",
               "this number of iterations is enough, known after the first "
               "step; own bound: of what the iteration of this block adds to "
               "the error"}},
             view.width);
}

// ---- what is asked

struct InvertArguments {
  audit::InvertRequest request;
  audit::TrainedOptions trained;
  OutputOptions output;
  bool strict = false;
};

void declare_trained(CLI::App& app, audit::TrainedOptions& o) {
  app.add_option("--given-error", o.given_error,
                 "of a trained folder: largest error of an entry of the "
                 "activations in --input [default: the rounding of bf16, f16 "
                 "or f32, if all are such numbers]")
      ->transform(number_not_negative())
      ->group("The inversion");
  app.add_option("--save-output", o.save_output,
                 "of a trained folder: write the last activations, [n, d], to "
                 "Y.npy (one passage only)")
      ->type_name("FILE")
      ->group("Output");
  auto* activations =
      add_parsed(app, "--activations", o.activations, parse_number_format,
                 "of a trained folder: f64, or rounded to f32")
          ->default_str(name_of(o.activations))
          ->group("Output");
  only(activations, {"f64", "f32"});
}

void declare_invert(CLI::App& app, InvertArguments& options) {
  audit::InvertRequest& o = options.request;
  app.description(
      "Invert residual attention g(X) = X + c f(X): find X from Y = g(X) by X "
      "<- Y - c f(X).\n"
      "For Contractive-L2 attention (f divided by its proved bound) the "
      "iteration converges from\n"
      "every Y, and the error shrinks at least by the factor c each time. For "
      "other kinds the\n"
      "program tries, and says what happened.\n\n"
      "For a folder made by train: compute the text from the activations of "
      "the last layer, block\n"
      "by block. With train --invertible this always succeeds.\n\n"
      "  lipscope invert runs/inv --text shakespeare.txt --length 256\n"
      "  lipscope invert --random d=64,heads=8,scale=0.125 --length 64 --scale "
      "0.9\n"
      "  lipscope invert --random d=64,heads=8,scale=0.125 --length 64 --kind "
      "dot --radius 50\n"
      "  lipscope invert --weights layer.safetensors --num-heads 8 --input "
      "Y.npy --save-input X.npy\n"
      "  lipscope invert --random d=4,heads=1,scale=1 --length 9 --scale 0.9 "
      "--log-det");
  declare_source(app, o.source);
  app.get_option("--kind")->description(
      "contractive-l2 (tied L2 attention divided by its bound in the "
      "inf-norm), l2, dot, l2-untied, cosine or sigmoid; auto: contractive-l2; "
      "for a folder made by train, its own");
  app.get_option("--input")->description(
      "Y, [n, d], from Y.npy: the output that is to be inverted. Without this "
      "option X is made by the options here, and the result is compared with "
      "X");
  declare_selection(app, o.selection);
  for (const char* other : {"--map", "--heads"})
    app.remove_option(app.get_option(other));
  app.get_option("--norm")->description(
      "norm of steps and errors: inf, in which contractive-l2 contracts; 2 or "
      "token");

  const char* group = "The inversion";
  app.add_option("--scale", o.scale, "c; below 1 for contractive-l2")
      ->transform(positive_number())
      ->capture_default_str()
      ->group(group);
  app.add_option("--depth", o.depth,
                 "blocks one after the other, all with these weights")
      ->transform(whole_number(1, 1000))
      ->capture_default_str()
      ->group(group);
  app.add_option("--tolerance", o.invert.tolerance,
                 "done when the error bound, or without one the step, is below "
                 "this times max(1, |Y|)")
      ->transform(positive_number())
      ->capture_default_str()
      ->group(group);
  app.add_option("--max-iterations", o.invert.max_iterations,
                 "largest number of iterations of each block")
      ->transform(whole_number(1, 100000000))
      ->capture_default_str()
      ->group(group);
  declare_effort(app, options.strict, o.source.seed, o.threads, group);

  const char* volume = "Volume";
  app.add_flag("--log-det", o.log_det,
               "also log det of the Jacobian of g at the X found, by a power "
               "series with random signs; needs a proved contraction")
      ->group(volume);
  app.add_option("--probes", o.series.probes, "vectors of random signs")
      ->transform(whole_number(2, 1000000))
      ->capture_default_str()
      ->group(volume);
  app.add_option("--truncation", o.series.truncation,
                 "largest sum of the terms of the series that are left out")
      ->transform(positive_number())
      ->capture_default_str()
      ->group(volume);

  declare_output(app, options.output);
  declare_trained(app, options.trained);
  app.add_option("--save-input", o.save_input,
                 "write the X found, [n, d], to X.npy (one inversion only)")
      ->type_name("FILE")
      ->group("Output");
}

void refuse_trained(const CLI::App& app) {
  for (const char* name : {"--given-error", "--save-output", "--activations"})
    if (app.count(name) > 0)
      throw InputError(fmt::format(
          "{}: for a folder that train made, without --kind", name));
}

// a whole model has no choice of these
void refuse_parts(const CLI::App& app, const std::string& folder) {
  for (const char* name :
       {"--scale", "--depth", "--log-det", "--probes", "--truncation",
        "--layers", "--mask", "--window", "--padding", "--embedded", "--norm",
        "--radius", "--dtype"})
    if (app.count(name) > 0)
      throw InputError(fmt::format(
          "{}: all of {} is inverted as it was trained, in f64 and in the "
          "inf-norm; --kind contractive-l2 takes the attention of its layers "
          "by itself",
          name, folder));
}

}  // namespace

Run invert_command(CLI::App& app) {
  const auto options = std::make_shared<InvertArguments>();
  declare_invert(app, *options);
  return [options, &app] {
    const audit::InvertRequest& o = options->request;
    OutputFiles files = files_of(o.source, options->output);
    files.writes(o.save_input, "--save-input", OutputKind::matrix);
    files.writes(options->trained.save_output, "--save-output",
                 OutputKind::matrix);
    files.check(options->output.force);
    const bool whole_model =
        o.source.kind == "auto" && audit::is_trained(o.source.model);
    if (whole_model)
      refuse_parts(app, o.source.model);
    else
      refuse_trained(app);
    Records records = records_for(options->output);
    ProgressBar bar(options->output.quiet);
    const audit::Outcome outcome =
        whole_model ? audit::recover({.source = o.source,
                                      .invert = o.invert,
                                      .trained = options->trained,
                                      .save_input = o.save_input,
                                      .threads = o.threads},
                                     records, bar.watch())
                    : audit::invert(o, records, bar.watch());
    bar.clear();
    if (whole_model)
      conclude(options->output, records.rows(),
               {.table = recovered_table,
                .answer = recovered_finding(records.rows())});
    else
      conclude(options->output, records.rows(),
               {.table = inverted_table,
                .answer = inverted_finding(records.rows())});
    return options->strict && !outcome.converged ? 3 : 0;
  };
}

}  // namespace lipscope::cli
