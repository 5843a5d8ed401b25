// Reads the two files of GPT-2's tokenizer, here one behind the other with a
// zero byte between, and the lines of BERT's.

#include <algorithm>

#include "fuzz/fuzzing.h"
#include "lipscope/text/bert_files.h"
#include "lipscope/text/gpt2_files.h"
#include "lipscope/text/token_ids.h"

using namespace lipscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const std::size_t cut = std::min(text.find('\0'), text.size());
  const std::string_view vocabulary = text.substr(0, cut);
  const std::string_view rest = text.substr(std::min(cut + 1, text.size()));
  const char* sample = "ab  Ab'll \u00c9\u6771.\n";
  fuzz::may_refuse([&] { parse_merges("merges.txt", rest); });
  fuzz::may_refuse([&] { parse_token_ids("ids", rest); });
  fuzz::may_refuse([&] {
    const Tokenizer tokenizer(
        parse_gpt2_files("vocab.json", vocabulary, "merges.txt", rest));
    fuzz::check_tokens(tokenizer, sample);
  });
  fuzz::may_refuse([&] {
    const Tokenizer tokenizer(parse_bert_vocabulary("vocab.txt", rest, {}));
    fuzz::check_tokens(tokenizer, sample);
  });
  return 0;
}
