// Reads the config.json and the state.json of a folder that `lipscope train`
// made; the same bytes are taken for either.

#include "fuzz/fuzzing.h"
#include "lipscope/model/config.h"
#include "lipscope/text/vocabulary.h"
#include "lipscope/train/state_file.h"

using namespace lipscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::may_refuse([&] {
    const LanguageModelConfig c =
        parse_language_model_config(text, "config.json");
    require_sound(c);
    if (c.mixer != Mixer::lstm) require_sound(model_config(c));
    const Vocabulary vocabulary = parse_vocabulary("config.json", text);
    fuzz::hold(vocabulary.size() == c.characters, "all characters are read");
    for (const std::string& piece : vocabulary.pieces())
      fuzz::hold(vocabulary.decode(
                     std::vector{vocabulary.encode(piece)[0].id}) == piece,
                 "a character comes back");
  });
  fuzz::may_refuse([&] {
    const StateFile state = parse_state(text, "state.json");
    const StateFile again = parse_state(to_text(state), "state.json");
    fuzz::hold(again.step == state.step && again.sha256 == state.sha256 &&
                   again.best_nll == state.best_nll &&
                   again.best_step == state.best_step,
               "what is written is read");
  });
  return 0;
}
