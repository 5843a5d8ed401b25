// lipscope eval: how well a trained model predicts a text.

#include <fmt/format.h>

#include <numbers>

#include "lipscope/audit/text_piece.h"
#include "lipscope/cli/commands.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/shared_options.h"
#include "lipscope/io/json_text.h"
#include "lipscope/io/sha256.h"
#include "lipscope/train/model_folder.h"
#include "lipscope/train/training_memory.h"

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
      "The loss of a trained model on a text: the mean of -log p(character | "
      "those before it in\nits window), in nats and in bits.\n\n"
      "  lipscope eval runs/l2 --text shakespeare.txt --split test\n"
      "  lipscope eval runs/l2 --text alice.txt --json");
  app.add_option("DIR", o.folder, "a folder made by lipscope train")
      ->required();
  declare_text_piece(app, o.text);
  app.add_option("--threads", o.threads, "number of threads; 0: all cores")
      ->transform(whole_number(0, 4096))
      ->capture_default_str();
  app.add_flag("--json", o.json, "print a JSON object");
}

int run_eval(const EvalArguments& o) {
  const ModelDescription description = read_description(o.folder);
  require_model_memory(description.config, sizeof(float), o.folder);
  LanguageModel<float> model(description.config);
  const std::filesystem::path file =
      std::filesystem::path(o.folder) / "model.safetensors";
  const VectorOf<float> weights = read_weights(file, model.layout());
  const audit::TextPiece piece =
      audit::piece_of(o.text, description.vocabulary);
  const std::vector<int>& text = piece.characters;
  const double nll = mean_nll(model, weights, text, o.threads);
  const double bits = nll / std::numbers::ln2;
  if (o.json)
    print_out(json_line(nlohmann::ordered_json(
        {{"command", "eval"},
         {"model", o.folder},
         {"model_sha256", sha256_file(file)},
         {"text", o.text.text},
         {"split", o.text.piece},
         {"input", to_json(audit::input_of(o.text, piece))},
         {"characters", text.size() - 1},
         {"context", description.config.context},
         {"nll", nll},
         {"bpc", bits}})));
  else
    print_text(fmt::format(
        "{}: {:.4f} nats a character ({:.4f} bits) over {} characters of {} "
        "({}), in windows of {}\n",
        o.folder, nll, bits, text.size() - 1, o.text.text, o.text.piece,
        description.config.context));
  return 0;
}

}  // namespace

Run eval_command(CLI::App& app) {
  const auto options = std::make_shared<EvalArguments>();
  declare_eval(app, *options);
  return [options] { return run_eval(*options); };
}

}  // namespace lipscope::cli
