// Reads a tokenizer.bin. Most of one is the 259 pieces that it has to begin
// with; they are put before what the fuzzer makes when it asks for that.

#include "fuzz/fuzzing.h"

using namespace lipscope;

namespace {

template <class Number>
std::string bytes_of(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

std::string beginning() {
  std::string content = bytes_of(std::int32_t{16});
  const auto add = [&](const std::string& piece) {
    content += bytes_of(0.0f) +
               bytes_of(static_cast<std::int32_t>(piece.size())) + piece;
  };
  for (const char* special : {"<unk>", "<s>", "</s>"}) add(special);
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte));
  return content;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  static const std::string start = beginning();
  if (size == 0) return 0;
  std::string content(fuzz::text_of(data + 1, size - 1));
  if (data[0] == '+') content = start + content;
  fuzz::may_refuse([&] {
    const LlamaTokenizer llama("tokenizer.bin",
                               std::as_bytes(std::span(content)));
    const std::string_view sample = "ab  Ab \u00c9\u6771.\n";
    const Tokenizer tokenizer{llama};
    fuzz::check_tokens(tokenizer, sample);
    fuzz::hold(tokenizer.decode(ids_of(tokenizer.encode(sample))) == sample,
               "a text comes back from its ids");
  });
  return 0;
}
