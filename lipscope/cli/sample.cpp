// lipscope sample: what a trained model writes.

#include "lipscope/train/sample.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "lipscope/cli/commands.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/cli/output.h"
#include "lipscope/core/errors.h"
#include "lipscope/text/utf8.h"
#include "lipscope/train/model_folder.h"
#include "lipscope/train/training_memory.h"

namespace lipscope::cli {
namespace {

struct SampleArguments {
  std::string folder;
  std::optional<std::string> prompt;
  SampleOptions how;
};

void declare_sample(CLI::App& app, SampleArguments& o) {
  app.description(
      "Text that a trained model writes after a prompt, one character at a "
      "time.\n\n"
      "  lipscope sample runs/l2 --prompt 'ROMEO:' --length 300 --temperature "
      "0.8");
  app.add_option("DIR", o.folder, "a folder made by lipscope train")
      ->required();
  app.add_option("--prompt", o.prompt, "the beginning of the text")
      ->default_str(
          "a new line, or a blank, or the first character that the "
          "model knows");
  app.add_option("--length", o.how.length, "characters to write")
      ->transform(whole_number(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--temperature", o.how.temperature,
                 "below 1: more likely characters; above 1: less likely ones; "
                 "0: always the likeliest")
      ->transform(number_between(0.0, 100.0))
      ->capture_default_str();
  app.add_option("--seed", o.how.seed, "seed of the random choice")
      ->transform(seed_number())
      ->capture_default_str();
  app.add_option("--threads", o.how.threads, "number of threads; 0: all cores")
      ->transform(whole_number(0, 4096))
      ->capture_default_str();
}

// where nothing is said: what most texts begin after, as far as it is known
std::string usual_prompt(const Vocabulary& vocabulary) {
  const std::vector<std::string>& known = vocabulary.pieces();
  for (const char* usual : {"\n", " "})
    if (std::find(known.begin(), known.end(), usual) != known.end())
      return usual;
  return known.front();  // a model knows one at least
}

int run_sample(const SampleArguments& o) {
  const ModelDescription description = read_description(o.folder);
  if (o.prompt && o.prompt->empty()) throw InputError("--prompt: it is empty");
  const std::string begin =
      o.prompt ? *o.prompt : usual_prompt(description.vocabulary);
  check_utf8(begin);
  const std::vector<int> prompt =
      description.vocabulary.encode(begin, "--prompt");
  require_model_memory(description.config, sizeof(float), o.folder);
  LanguageModel<float> model(description.config);
  const VectorOf<float> weights = read_weights(
      std::filesystem::path(o.folder) / "model.safetensors", model.layout());
  const std::string text =
      begin +
      description.vocabulary.decode(sample(model, weights, prompt, o.how)) +
      "\n";
  // a file gets every character as it is; a terminal would obey some of them
  if (isatty(STDOUT_FILENO))
    print_text(text);
  else
    print_out(text);
  return 0;
}

}  // namespace

Run sample_command(CLI::App& app) {
  const auto options = std::make_shared<SampleArguments>();
  declare_sample(app, *options);
  return [options] { return run_sample(*options); };
}

}  // namespace lipscope::cli
