// lipscope eval: how well a model predicts a text.

#include "lipscope/audit/eval.h"

#include <fmt/format.h>

#include <numbers>

#include "lipscope/cli/choice.h"
#include "lipscope/cli/commands.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/shared_options.h"
#include "lipscope/io/json_text.h"

namespace lipscope::cli {
namespace {

using audit::EvalWindows;
using audit::SavedWeights;
using nlohmann::ordered_json;

struct EvalArguments {
  audit::EvalRequest request;
  bool json = false;
};

void declare_eval(CLI::App& app, EvalArguments& options) {
  audit::EvalRequest& o = options.request;
  app.description(
      "The loss of a language model on a text: the mean of -log p(token | "
      "those before it in its\nwindow), in nats and in bits, and the share of "
      "tokens that were the likeliest. The tokens of what\nlipscope train "
      "makes are characters.\n\n"
      "  lipscope eval runs/l2 --text shakespeare.txt --split test\n"
      "  lipscope eval runs/l2 --text shakespeare.txt --split last-tenth "
      "--weights last --ngrams 6\n"
      "  lipscope eval runs/l2 --text shakespeare.txt --split last-tenth "
      "--weights last --windows newhouse25\n"
      "  lipscope eval runs/l2 --text alice.txt --json");
  app.add_option("DIR", o.folder,
                 "a folder made by lipscope train, or of GPT-2 or Llama")
      ->required();
  declare_text_piece(app, o.text);
  auto* windows =
      app.add_option("--windows", o.windows,
                     "own: windows of the model's context, one after the "
                     "other; newhouse25: 1,280 windows of 256 characters that "
                     "begin at each of the first characters of the last tenth "
                     "(--split last-tenth)")
          ->default_str("own");
  only(windows, by_name({EvalWindows::own, EvalWindows::newhouse25}));
  auto* weights =
      app.add_option("--weights", o.weights,
                     "of a folder made by lipscope train: best (by validation "
                     "loss), or last (of the last step)")
          ->default_str("best");
  only(weights, by_name({SavedWeights::best, SavedWeights::last}));
  app.add_option("--ngrams", o.ngrams,
                 "beside the model, how well counted groups of 1, 2, ... N "
                 "characters predict the same piece; counted in the first "
                 "nine tenths of the text, smoothed as Witten and Bell do")
      ->transform(whole_number(0, 32))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--threads", o.threads, "number of threads; 0: all cores")
      ->transform(whole_number(0, 4096))
      ->capture_default_str();
  app.add_flag("--json", options.json, "print a JSON object");
}

ordered_json json_of(const audit::EvalRequest& o, const audit::Evaluated& e) {
  const std::string token = e.characters ? "character" : "token";
  const double bits = e.score.nll / std::numbers::ln2;
  ordered_json json = {{"command", "eval"},
                       {"model", o.folder},
                       {"model_sha256", e.model_sha256},
                       {"weights", name_of(o.weights)},
                       {"text", o.text.text},
                       {"split", o.text.piece},
                       {"windows", name_of(o.windows)},
                       {"input", to_json(audit::input_of(o.text, e.piece))},
                       {token + "s", e.predicted},
                       {"context", e.context},
                       {"nll", e.score.nll},
                       {e.characters ? "bpc" : "bits_a_token", bits},
                       {"accuracy", e.score.accuracy}};
  for (std::size_t i = 0; i < e.ngrams.size(); ++i)
    json["ngrams"].push_back({{"n", i + 1},
                              {"nll", e.ngrams[i].nll},
                              {"accuracy", e.ngrams[i].accuracy}});
  return json;
}

int run_eval(const EvalArguments& options) {
  const audit::EvalRequest& o = options.request;
  const audit::Evaluated e = audit::evaluate(o);
  if (options.json) {
    print_out(json_line(json_of(o, e)));
    return 0;
  }
  const std::string token = e.characters ? "character" : "token";
  const auto row = [&](const std::string& who, const TextScore& s) {
    return fmt::format("{}: {:.4f} nats a {} ({:.4f} bits), {:.1f} % predicted",
                       who, s.nll, token, s.nll / std::numbers::ln2,
                       100 * s.accuracy);
  };
  const std::string windows = o.windows == EvalWindows::own
                                  ? fmt::format("in windows of {}", e.context)
                                  : "in Newhouse25's 1,280 windows of 256";
  print_text(fmt::format("{}, over {} {}s of {} ({}), {}\n",
                         row(o.folder, e.score), e.predicted, token,
                         o.text.text, o.text.piece, windows));
  for (std::size_t i = 0; i < e.ngrams.size(); ++i)
    print_text(row(fmt::format("{}-grams", i + 1), e.ngrams[i]) + "\n");
  return 0;
}

}  // namespace

Run eval_command(CLI::App& app) {
  const auto options = std::make_shared<EvalArguments>();
  declare_eval(app, *options);
  return [options] { return run_eval(*options); };
}

}  // namespace lipscope::cli
