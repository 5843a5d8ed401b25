// Encodes a text with small vocabularies of the three kinds.

#include "fuzz/fuzzing.h"
#include "lipscope/text/bert_files.h"
#include "lipscope/text/gpt2_files.h"
#include "lipscope/text/utf8.h"

using namespace lipscope;

namespace {

template <class Number>
std::string bytes_of(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

// The 256 bytes in GPT-2's spelling, and some pairs.
Tokenizer byte_pair(bool add_prefix_space) {
  std::vector<std::string> pieces;
  char32_t next = 256;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool visible =
        (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    pieces.push_back(utf8_of(visible ? byte : next++));
  }
  const std::vector<SpelledMerge> merges = {
      {"a", "b"},         {"a", "a"},          {"aa", "aa"},
      {pieces[' '], "a"}, {pieces[' '], "ab"}, {pieces[0xc3], pieces[0xa9]}};
  for (const auto& [left, right] : merges) pieces.push_back(left + right);
  return Tokenizer(gpt2_pipeline("fuzz", pieces, merges, add_prefix_space));
}

Tokenizer word_piece(const BertNormalization& how) {
  BertOptions options;
  options.normalization = how;
  return Tokenizer(bert_pipeline("fuzz",
                                 {"[UNK]", "a", "b", "##a", "##b", "ab", "##ab",
                                  ".", "e", "\u6771"},
                                 options),
                   {{.content = "[UNK]", .id = 0, .lstrip = true},
                    {.content = "ab",
                     .id = 5,
                     .single_word = true,
                     .rstrip = true,
                     .normalized = true}});
}

Tokenizer llama() {
  std::string content = bytes_of(std::int32_t{8});
  const auto add = [&](const std::string& piece, float score) {
    content += bytes_of(score) +
               bytes_of(static_cast<std::int32_t>(piece.size())) + piece;
  };
  for (const char* special : {"<unk>", "<s>", "</s>"}) add(special, 0);
  for (int byte = 0; byte < 256; ++byte)
    add(fmt::format("<0x{:02X}>", byte), 0);
  float score = 0;
  for (const char* piece : {" ", "a", "b", "\u00e9", " a", "ab", "aa", "aab"})
    add(piece, --score);
  LlamaTokenizer made("fuzz", std::as_bytes(std::span(content)));
  const std::vector<AddedToken> special = made.special();
  return Tokenizer(std::move(made), special);
}

// The tokens lie side by side and cover the text, which comes back from them.
void check_cover(const Tokenizer& tokenizer, std::string_view text,
                 std::string_view blank) {
  const std::vector<Token> tokens = tokenizer.encode(text);
  std::size_t end = 0;
  for (const Token& token : tokens) {
    fuzz::hold(token.begin == end, "no gap and no overlap");
    end = token.end;
  }
  fuzz::hold(end == text.size(), "the text is covered");
  // the beginning and the end of a text are not seen in what comes back
  if (text.find("<s>") != text.npos || text.find("</s>") != text.npos) return;
  fuzz::hold(tokenizer.decode(ids_of(tokens)) ==
                 std::string(blank) + std::string(text),
             "the text comes back");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  static const Tokenizer gpt2 = byte_pair(false), roberta = byte_pair(true);
  static const Tokenizer stories = llama();
  static const Tokenizer berts[] = {
      word_piece({}), word_piece({.strip_accents = false, .lowercase = false}),
      word_piece({.clean_text = false, .split_ideographs = false}),
      word_piece({.clean_text = false, .strip_accents = false})};

  const std::string_view text = fuzz::text_of(data, size);
  bool valid = true;
  try {
    check_utf8(text);
  } catch (const InputError&) {
    valid = false;
  }
  fuzz::may_refuse([&] {
    const bool blank = !text.empty() && text.front() != ' ';
    check_cover(gpt2, text, "");
    check_cover(roberta, text, blank ? " " : "");
    check_cover(stories, text, "");
    for (const Tokenizer& bert : berts) fuzz::check_tokens(bert, text);
    fuzz::hold(valid, "what is not UTF-8 is refused");
  });
  return 0;
}
