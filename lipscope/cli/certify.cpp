// lipscope certify: how far the predictions of a trained model hold.

#include "lipscope/audit/certify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
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
#include "lipscope/report/median.h"
#include "lipscope/report/record_fields.h"
#include "lipscope/report/table.h"
#include "lipscope/report/wrap.h"

namespace lipscope::cli {

using nlohmann::ordered_json;

namespace {

// ---- what is printed

constexpr double infinity = std::numeric_limits<double>::infinity();

// log10 of both sides at each position, where something is known
struct Sides {
  std::vector<double> lower, upper;
  std::vector<bool> right;
};

Sides sides_of(const std::vector<ordered_json>& records) {
  Sides s;
  for (const ordered_json& r : records) {
    const ordered_json& details = inside(r, "details");
    s.lower.push_back(number_of(details, "lower_log10").value_or(-infinity));
    s.upper.push_back(number_of(r, "upper_log10").value_or(infinity));
    s.right.push_back(details.value("right", false));
  }
  return s;
}

std::string number(double log10) {
  if (std::isinf(log10)) return log10 < 0 ? "0" : "-";
  return log10 < -6 || log10 > 300
             ? fmt::format("10^{:.2f}", log10)
             : fmt::format("{:.5g}", std::pow(10.0, log10));
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(
      std::floor(share * static_cast<double>(values.size() - 1)))];
}

ordered_json quantile_row(const char* name, double lower, double upper) {
  return {{"share", name}, {"lower", number(lower)}, {"upper", number(upper)}};
}

std::string quantiles(const Sides& s) {
  const auto at = [&](const char* name, double share) {
    return quantile_row(name, quantile(s.lower, share),
                        quantile(s.upper, share));
  };
  const std::vector<ordered_json> rows = {
      at("least", 0.0), at("10 %", 0.1),
      quantile_row("median", median_log10(s.lower), median_log10(s.upper)),
      at("90 %", 0.9), at("most", 1.0)};
  return table(
      {{"share", "position"}, {"lower", "proved"}, {"upper", "attacked at"}},
      rows);
}

std::string shares(const Sides& s, const std::vector<double>& radii) {
  std::vector<ordered_json> rows;
  const auto size = static_cast<double>(s.lower.size());
  const auto percent = [&](Index count) {
    return fmt::format("{:.1f} %", 100.0 * static_cast<double>(count) / size);
  };
  const auto row = [&](double radius) {
    Index certified = 0, right = 0, attacked = 0;
    for (std::size_t i = 0; i < s.lower.size(); ++i) {
      const bool holds = radius == 0.0 || s.lower[i] >= std::log10(radius);
      certified += holds;
      right += holds && s.right[i];
      attacked += radius > 0.0 && s.upper[i] <= std::log10(radius);
    }
    rows.push_back({{"radius", radius},
                    {"certified", percent(certified)},
                    {"right", percent(right)},
                    {"attacked", percent(attacked)}});
  };
  row(0.0);
  for (const double radius : radii) row(radius);
  return table({{"radius", "radius"},
                {"certified", "certified"},
                {"right", "and right"},
                {"attacked", "attacked"}},
               rows);
}

// The constants by part that a radius rests on, over the layers, at the
// position that reads the most tokens, the first of them.
std::string parts(const std::vector<ordered_json>& records) {
  const ordered_json* longest = nullptr;
  for (const ordered_json& r : records)
    if (inside(r, "details").contains("parts_log10") &&
        (!longest || r["n"] > (*longest)["n"]))
      longest = &r;
  if (!longest) return "";
  struct Part {
    std::string name;
    std::vector<double> log10;
  };
  std::vector<Part> found;
  for (const ordered_json& layer : inside(*longest, "details")["parts_log10"])
    for (const auto& [name, value] : layer.items()) {
      if (name == "layer" || !value.is_number()) continue;
      auto at = std::find_if(found.begin(), found.end(),
                             [&](const Part& p) { return p.name == name; });
      if (at == found.end()) at = found.insert(at, {name, {}});
      at->log10.push_back(value.get<double>());
    }
  std::vector<ordered_json> rows;
  for (const Part& p : found) {
    const auto [least, most] =
        std::minmax_element(p.log10.begin(), p.log10.end());
    rows.push_back({{"part", p.name},
                    {"count", p.log10.size()},
                    {"least", fmt::format("{:.2f}", *least)},
                    {"most", fmt::format("{:.2f}", *most)}});
  }
  return fmt::format(
             "\nlog10 of the constants by part, at position {} ({} tokens are "
             "read):\n",
             (*longest)["sample"].get<Index>(), (*longest)["n"].get<Index>()) +
         table({{"part", "part"},
                {"count", "layers"},
                {"least", "least"},
                {"most", "most"}},
               rows);
}

// The records of `certify` as tables for people: how far predictions hold, by
// quantiles of the positions, and how many hold at each radius; the model's
// constant above them, and unless quiet what the columns mean.
std::string certified_table(const std::vector<ordered_json>& records,
                            const std::vector<double>& radii,
                            const audit::Certified& found, const View& view) {
  if (records.empty()) return "";
  const ordered_json& first = records.front();
  const Sides sides = sides_of(records);
  const StackConstant& constant = found.constant;
  std::string text = fmt::format(
      "{}: kind {}, mask {}, norm 2, from the input of layer 0 to the {}; "
      "{} positions of {}\n",
      cell(first["model"]), cell(first["kind"]), cell(first["mask"]),
      cell(text_of(inside(first, "parameters"), "to")), records.size(),
      cell(text_of(inside(first, "input"), "name")));
  text += constant.logits
              ? fmt::format(
                    "constant to the logits, everywhere, from above: "
                    "{}\n\n",
                    number(constant.logits->log10()))
              : fmt::format("no constant holds everywhere: {}\n\n",
                            constant.unbounded);
  if (!found.unbounded.empty())
    text += fmt::format("no radius is proved: {}\n\n", found.unbounded);
  text += quantiles(sides) + "\n" + shares(sides, radii);
  text += parts(records);
  if (view.quiet) return text;
  text +=
      "\n" +
      legend({{"proved",
               "no change of the embeddings within this radius changes the "
               "prediction, however it is spread over the tokens; "
               "quantiles over the positions"},
              {"attacked at",
               "a change of this size does change it: found, and evaluated in "
               "f64"},
              {"certified",
               "share of the positions whose radius is at least this; 'and "
               "right': where the prediction is the next token of the text "
               "as well"},
              {"attacked",
               "share of the positions where a change of at most this size "
               "was found; of the rest nothing is known at this radius"},
              {"part",
               "by how much it multiplies the change of a token, at most, near "
               "this text; least and most over the layers"}},
             view.width);
  return text;
}

// ---- what is asked

struct CertifyArguments {
  audit::CertifyRequest request;
  std::vector<double> radii = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3};
  OutputOptions output;
};

void declare_certify(CLI::App& app, CertifyArguments& options) {
  audit::CertifyRequest& o = options.request;
  app.description(
      "How far the input of a language model can be changed before its "
      "prediction changes. After\n"
      "every token of a text the model predicts the next one (what lipscope "
      "train makes, the next\n"
      "character). BERT predicts the token itself, which is masked; its folder "
      "must have the head for\n"
      "that. The input is the embeddings of the tokens that are read (the "
      "input of layer 0); a change\n"
      "is measured in the Frobenius norm.\n\n"
      "  lower  PROVED: no change within this radius changes the prediction; "
      "proved by\n"
      "         constants of the layers at the states of this text\n"
      "  upper  FOUND: a change of this size changes the prediction; found by "
      "an attack,\n"
      "         evaluated in f64\n\n"
      "lower <= upper is checked at every position. Models with a small "
      "constant (train --model l2\n"
      "--norm none --max-lipschitz L) have useful radii; those of ordinary "
      "models are tiny and shown\n"
      "as powers of ten, with the constants by part. Where a part of the "
      "model has no bound\n"
      "(l2-untied attention), no radius is proved and the answer names the "
      "part.\n\n"
      "  lipscope certify runs/l2 --text shakespeare.txt --split test\n"
      "  lipscope certify runs/dot --text shakespeare.txt --split test "
      "--positions 200 --out dot.jsonl\n"
      "  lipscope certify runs/l2 --text alice.txt --radii 0.01,0.1 --targets "
      "0 --json");
  app.add_option("DIR", o.folder,
                 "a folder made by lipscope train, or a Hugging Face folder of "
                 "a model that predicts tokens")
      ->required();
  declare_text_piece(app, o.text);
  app.add_option("--positions", o.positions,
                 "predictions, from the beginning on; 0: all")
      ->transform(whole_number(0, Index{1} << 40))
      ->capture_default_str();
  app.add_option("--context", o.context,
                 "most tokens that are read for a prediction; 0: as many as "
                 "the model can, 32 for masked tokens")
      ->transform(whole_number(0, Index{1} << 40))
      ->capture_default_str();
  app.add_option("--radii", options.radii,
                 "radii at which positions are counted, separated by commas")
      ->delimiter(',')
      ->transform(positive_number())
      ->capture_default_str();

  const char* group = "Attack";
  app.add_option(
         "--targets", o.attack.targets,
         "number of other tokens tried, the nearest first; 0: no attack")
      ->transform(whole_number(0, 100000))
      ->capture_default_str()
      ->group(group);
  app.add_option("--restarts", o.attack.restarts,
                 "number of further starts, each of which has to come nearer")
      ->transform(whole_number(0, 100000))
      ->capture_default_str()
      ->group(group);
  app.add_option("--iterations", o.attack.iterations,
                 "largest number of gradients from each start")
      ->transform(whole_number(1, 100000))
      ->capture_default_str()
      ->group(group);
  app.add_option("--seed", o.attack.seed, "seed of the restarts")
      ->transform(seed_number())
      ->capture_default_str()
      ->group(group);
  app.add_option(
         "--threads", o.threads,
         "number of threads; 0: all cores; the numbers do not depend on it")
      ->transform(whole_number(0, 4096))
      ->capture_default_str()
      ->group(group);
  declare_share(app, options.output);
  declare_output(app, options.output);
}

OutputFiles read_by(const audit::CertifyRequest& o) {
  OutputFiles files;
  files.reads(o.folder, "DIR");
  files.reads(o.text.text, "--text");
  return files;
}

}  // namespace

Run certify_command(CLI::App& app) {
  const auto options = std::make_shared<CertifyArguments>();
  declare_certify(app, *options);
  return [options] {
    const audit::CertifyRequest& o = options->request;
    OutputFiles files = read_by(o);
    files.reads(options->output.plan, "--plan");
    files.writes(options->output.out, "--out", OutputKind::records);
    files.check(options->output.force);
    Records records = records_for(options->output);
    ProgressBar bar(options->output.quiet);
    const audit::Certified found = audit::certify(o, records, bar.watch());
    bar.clear();
    conclude(options->output, records.rows(),
             {.table =
                  [&](const Rows& rows, const View& view) {
                    return certified_table(rows, options->radii, found, view);
                  },
              .answer = certified_finding(records.rows())});
    return 0;
  };
}

PlannedQuestions certify_questions(CLI::App& app) {
  const auto options = std::make_shared<CertifyArguments>();
  declare_certify(app, *options);
  return questions_of(
      options,
      [](const audit::CertifyRequest& request, const auto& words,
         const audit::Watch& watch) {
        return audit::plan(request, words, watch);
      },
      read_by);
}

}  // namespace lipscope::cli
