// Reads a tokenizer.json, and encodes a text with what it says.

#include "lipscope/text/tokenizer_json.h"

#include "fuzz/fuzzing.h"
#include "lipscope/text/bert_files.h"

using namespace lipscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::may_refuse([&] { parse_bert_config("config", text); });
  fuzz::may_refuse([&] {
    const Tokenizer tokenizer = parse_tokenizer_json("tokenizer.json", text);
    fuzz::check_tokens(tokenizer, "ab  Ab'll \u00c9\u6771.\n[MASK] <s>a ab");
  });
  return 0;
}
