// lipscope sample: what a language model writes.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "lipscope/audit/predictor.h"
#include "lipscope/cli/commands.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/cli/output.h"
#include "lipscope/core/errors.h"

namespace lipscope::cli {
namespace {

struct SampleArguments {
  std::string folder;
  std::optional<std::string> prompt;
  SampleOptions how;
};

void declare_sample(CLI::App& app, SampleArguments& o) {
  app.description(
      "Text that a language model writes after a prompt, one token at a time. "
      "The tokens of what\nlipscope train makes are characters.\n\n"
      "  lipscope sample runs/l2 --prompt 'ROMEO:' --length 300 --temperature "
      "0.8");
  app.add_option("DIR", o.folder,
                 "a folder made by lipscope train, or of GPT-2 or Llama")
      ->required();
  app.add_option("--prompt", o.prompt, "the beginning of the text")
      ->default_str(
          "a new line, or a blank, or the first token that the model knows");
  app.add_option("--length", o.how.length, "tokens to write")
      ->transform(whole_number(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--temperature", o.how.temperature,
                 "below 1: more likely tokens; above 1: less likely ones; "
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
std::string usual_prompt(const Tokenizer& tokenizer) {
  const std::vector<std::string>& known = tokenizer.pieces();
  for (const char* usual : {"\n", " "})
    if (std::find(known.begin(), known.end(), usual) != known.end())
      return usual;
  return known.front();  // a model knows one at least
}

std::vector<TokenId> encoded(const Tokenizer& tokenizer,
                             const std::string& prompt) {
  try {
    return ids_of(tokenizer.encode(prompt));
  } catch (const InputError& wrong) {
    throw InputError(fmt::format("--prompt: {}", wrong.what()));
  }
}

int run_sample(const SampleArguments& o) {
  if (o.prompt && o.prompt->empty()) throw InputError("--prompt: it is empty");
  const audit::Predictor model(o.folder, o.how.threads);
  const Tokenizer& tokenizer = model.tokenizer();
  const std::string begin = o.prompt ? *o.prompt : usual_prompt(tokenizer);
  const std::string text =
      begin +
      tokenizer.decode(sample(model.next(), model.context(),
                              encoded(tokenizer, begin), o.how)) +
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
