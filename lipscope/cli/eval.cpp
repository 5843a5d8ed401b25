// lipscope eval: how well a trained model predicts a text.

#include <fmt/format.h>

#include <numbers>

#include "lipscope/cli/commands.h"
#include "lipscope/core/errors.h"
#include "lipscope/io/sha256.h"
#include "lipscope/train/model_folder.h"

namespace lipscope::cli {
namespace {

struct Options {
  std::string folder, text, piece = "all";
  int threads = 0;
  bool json = false;
};

void declare(CLI::App& app, Options& o) {
  app.description(
      "The loss of a trained model on a text: the mean of -log p(character | "
      "those before it in\nits window), in nats and in bits.\n\n"
      "  lipscope eval runs/l2 --text shakespeare.txt --split test\n"
      "  lipscope eval runs/l2 --text alice.txt --json");
  app.add_option("DIR", o.folder, "what lipscope train made")->required();
  app.add_option("--text", o.text, "a text in UTF-8")
      ->required()
      ->type_name("FILE");
  app.add_option("--split", o.piece,
                 "all of it, or the piece that train makes of it")
      ->check(CLI::IsMember({"all", "train", "valid", "test"}))
      ->capture_default_str();
  app.add_option("--threads", o.threads, "0: all cores")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  app.add_flag("--json", o.json, "print a JSON object");
}

std::vector<int> characters_of(const Options& o,
                               const ModelDescription& model) {
  const std::string text = read_text(o.text);
  std::vector<int> all = model.vocabulary.encode(text, o.text);
  const Pieces pieces = pieces_of(static_cast<Index>(all.size()));
  const auto cut = [&](Index begin, Index end) {
    return std::vector<int>(all.begin() + begin, all.begin() + end);
  };
  if (o.piece == "train") all = cut(0, pieces.train_end);
  if (o.piece == "valid") all = cut(pieces.train_end, pieces.valid_end);
  if (o.piece == "test")
    all = cut(pieces.valid_end, static_cast<Index>(all.size()));
  if (all.size() < 2)
    throw InputError(fmt::format(
        "{}: {} characters to evaluate ({}); there must be two at least",
        o.text, all.size(), o.piece));
  return all;
}

int run(const Options& o) {
  const ModelDescription description = read_description(o.folder);
  LanguageModel<float> model(description.config);
  const std::filesystem::path file =
      std::filesystem::path(o.folder) / "model.safetensors";
  const VectorOf<float> weights = read_weights(file, model.layout());
  const std::vector<int> text = characters_of(o, description);
  const double nll = mean_nll(model, weights, text, o.threads);
  const double bits = nll / std::numbers::ln2;
  if (o.json)
    fmt::print("{}\n",
               nlohmann::ordered_json({{"command", "eval"},
                                       {"model", o.folder},
                                       {"model_sha256", sha256_file(file)},
                                       {"text", o.text},
                                       {"split", o.piece},
                                       {"characters", text.size() - 1},
                                       {"context", description.config.context},
                                       {"nll", nll},
                                       {"bpc", bits}})
                   .dump());
  else
    fmt::print(
        "{}: {:.4f} nats a character ({:.4f} bits) over {} characters of {} "
        "({}), in windows of {}\n",
        o.folder, nll, bits, text.size() - 1, o.text, o.piece,
        description.config.context);
  return 0;
}

}  // namespace

Run eval_command(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  declare(app, *options);
  return [options] { return run(*options); };
}

}  // namespace lipscope::cli
