// lipscope eval: how well a model predicts a text.

#include <fmt/format.h>

#include <numbers>

#include "lipscope/audit/predictor.h"
#include "lipscope/audit/text_piece.h"
#include "lipscope/cli/commands.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/shared_options.h"
#include "lipscope/io/json_text.h"

namespace lipscope::cli {
namespace {

struct EvalArguments {
  std::string folder;
  audit::TextPieceOptions text;
  int threads = 0;
  bool json = false;
};

void declare_eval(CLI::App& app, EvalArguments& o) {
  app.description(
      "The loss of a language model on a text: the mean of -log p(token | "
      "those before it in its\nwindow), in nats and in bits. The tokens of "
      "what "
      "lipscope train makes are characters.\n\n"
      "  lipscope eval runs/l2 --text shakespeare.txt --split test\n"
      "  lipscope eval runs/l2 --text alice.txt --json");
  app.add_option("DIR", o.folder,
                 "a folder made by lipscope train, or of GPT-2 or Llama")
      ->required();
  declare_text_piece(app, o.text);
  app.add_option("--threads", o.threads, "number of threads; 0: all cores")
      ->transform(whole_number(0, 4096))
      ->capture_default_str();
  app.add_flag("--json", o.json, "print a JSON object");
}

int run_eval(const EvalArguments& o) {
  const audit::Predictor model(o.folder, o.threads);
  const audit::TextPiece piece = audit::piece_of(o.text, model.tokenizer());
  const TextScore score = model.score(piece.tokens);
  const double nll = score.nll;
  const double bits = nll / std::numbers::ln2;
  const std::string token = model.reads_characters() ? "character" : "token";
  if (o.json)
    print_out(json_line(nlohmann::ordered_json(
        {{"command", "eval"},
         {"model", o.folder},
         {"model_sha256", model.sha256()},
         {"text", o.text.text},
         {"split", o.text.piece},
         {"input", to_json(audit::input_of(o.text, piece))},
         {token + "s", piece.tokens.size() - 1},
         {"context", model.context()},
         {"nll", nll},
         {model.reads_characters() ? "bpc" : "bits_a_token", bits},
         {"accuracy", score.accuracy}})));
  else
    print_text(
        fmt::format("{}: {:.4f} nats a {} ({:.4f} bits), {:.1f} % predicted, "
                    "over {} {}s of "
                    "{} ({}), in windows of {}\n",
                    o.folder, nll, token, bits, 100 * score.accuracy,
                    piece.tokens.size() - 1, token, o.text.text, o.text.piece,
                    model.context()));
  return 0;
}

}  // namespace

Run eval_command(CLI::App& app) {
  const auto options = std::make_shared<EvalArguments>();
  declare_eval(app, *options);
  return [options] { return run_eval(*options); };
}

}  // namespace lipscope::cli
