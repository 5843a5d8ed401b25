#include "lipscope/text/added_tokens.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "lipscope/core/errors.h"
#include "lipscope/text/tokenizer.h"
#include "lipscope/text/tokenizer_json.h"
#include "lipscope/text/words.h"
#include "tests/text/vocabularies.h"

namespace lipscope {
namespace added_tokens_test {

using nlohmann::json;

json golden() {
  std::ifstream file(LIPSCOPE_SOURCE "/tests/text/golden/added_tokens.json");
  return json::parse(file);
}

// ids, and for WordPiece places, that Hugging Face's tokenizers gave
// (golden/added_tokens.py): added tokens special and not, normalised and not,
// with white space stripped on either side, and single words
TEST(AddedTokens, AreThoseOfHuggingFace) {
  const json made = golden();
  int compared = 0;
  for (const json& c : made["cases"]) {
    const Tokenizer t = parse_tokenizer_json("t.json", c["tokenizer"].dump());
    for (const json& row : c["texts"]) {
      const std::string text = row["text"];
      const std::vector<Token> tokens = t.encode(text);
      EXPECT_EQ(json(ids_of(tokens)), row["ids"])
          << c["name"] << ": " << row["text"];
      ++compared;
      if (!row.contains("bytes") || json(ids_of(tokens)) != row["ids"])
        continue;
      for (std::size_t i = 0; i < tokens.size(); ++i)
        EXPECT_EQ(json({tokens[i].begin, tokens[i].end}), row["bytes"][i])
            << c["name"] << ": " << row["text"] << " token " << i;
    }
  }
  EXPECT_GE(compared, 150);
}

using Spans = std::vector<TextSpan>;
constexpr std::nullopt_t none = std::nullopt;

TEST(AddedTokens, CutATextFromLeftToRightAndTheLongestFirst) {
  const AddedTokens t({{.content = "<a>", .id = 1},
                       {.content = "<a><b>", .id = 2},
                       {.content = "", .id = 3}});
  EXPECT_EQ(t.split("x<a><b><a>y"),
            (Spans{{none, 0, 1}, {2, 1, 7}, {1, 7, 10}, {none, 10, 11}}));
  EXPECT_EQ(t.split("<a"), (Spans{{none, 0, 2}}));
  EXPECT_TRUE(t.split("").empty());
  EXPECT_EQ(AddedTokens().split("<a>"), (Spans{{none, 0, 3}}));
}

TEST(AddedTokens, TakeWhiteSpaceOnce) {
  const AddedTokens t({{.content = "L", .id = 1, .lstrip = true},
                       {.content = "R", .id = 2, .rstrip = true}});
  EXPECT_EQ(t.split("a L"), (Spans{{none, 0, 1}, {1, 1, 3}}));
  EXPECT_EQ(t.split("R  L"), (Spans{{2, 0, 3}, {1, 3, 4}}));
  EXPECT_EQ(t.split("R\u3000\n"), (Spans{{2, 0, 5}}));
}

TEST(AddedTokens, OfAListAreChecked) {
  const auto refusal = [](const json& list) {
    return test::message_of<InputError>(
        [&] { parse_added_tokens("t.json", list); });
  };
  EXPECT_TRUE(parse_added_tokens("t.json", nullptr).empty());
  EXPECT_TRUE(test::says(refusal("x"), {"t.json", "expected a list"}));
  EXPECT_TRUE(test::says(refusal({1}), {"t.json", "object with content"}));
  const json whole = {{"content", "a"}, {"special", true}, {"id", 3u}};
  for (const char* key : {"content", "special", "id", "lstrip", "normalized"}) {
    json bad = whole;
    bad[key] = json::array();
    EXPECT_TRUE(test::says(refusal(json::array({bad})), {"t.json"})) << key;
  }
  const AddedToken t = parse_added_tokens("t.json", json::array({whole})).at(0);
  EXPECT_FALSE(t.normalized);
  json plain = whole;
  plain["special"] = false;
  EXPECT_TRUE(
      parse_added_tokens("t.json", json::array({plain})).at(0).normalized);
}

// what no vocabulary has: nothing may be lost of any of these
const std::string nasty[] = {
    "",
    " ",
    "\n\t\r\n",
    "a",
    "  a  b ",
    "한국어 글자",                           // syllables
    "\u1112\u1161\u11ab\u1100\u116e\u11a8",  // the same as jamo
    "e\u0301 a\u0323\u0307 \u1e9b\u0323 q\u0307\u0323",
    "\u0301\u0301",
    "👨‍👩‍👧‍👦👍🏽🇰🇷 ok",
    "東京都 abc中d 𠮷野",
    "a\u0001b\u007fc\u0085d\u200be\ufefff",
    "שלום עולם مرحبا \u202eabc\u202c",
    "İstanbul ıI ŒUVRE ﬁ ½ Å",
    "\ud7ff\ue000\ufffd\uffff\U0010ffff",  // around the surrogates
    "[CLS] 한[MASK]국 [SEP]",
    "a<|endoftext|>\n<|endoftext|> b",
    "<s>a</s> <unk>한",
    std::string("a\0b", 3),
};

std::vector<std::pair<std::string, Tokenizer>> all_kinds_of_tokenizers() {
  std::vector<std::pair<std::string, Tokenizer>> all;
  const json cases = golden()["cases"];
  for (const json& c : cases)
    all.emplace_back(c["name"],
                     parse_tokenizer_json("t.json", c["tokenizer"].dump()));
  const std::string file =
      test::llama_file({{" ", -1}, {"a", -2}, {" a", -3}, {"한", -4}});
  LlamaTokenizer llama("l", std::as_bytes(std::span(file)));
  const std::vector<AddedToken> special = llama.special();
  all.emplace_back("Llama", Tokenizer(std::move(llama), special));
  return all;
}

void expect_rebuilt(const std::string& name, const Tokenizer& tokenizer,
                    const std::string& text) {
  const std::vector<Token> tokens = tokenizer.encode(text);
  const std::vector<std::string> words = words_of(text, tokens);
  ASSERT_EQ(words.size(), tokens.size());
  std::string rebuilt;
  for (const std::string& word : words) {
    EXPECT_NO_THROW(check_utf8(word)) << name << ": " << text;
    rebuilt += word;
  }
  // (a text of blanks has no tokens for BERT)
  EXPECT_EQ(rebuilt, tokens.empty() ? "" : text) << name;
}

TEST(Words, RebuildEveryTextOfEveryTokenizer) {
  const auto all = all_kinds_of_tokenizers();
  for (const auto& [name, tokenizer] : all) {
    for (const std::string& text : nasty) {
      expect_rebuilt(name, tokenizer, text);
      for (const std::string& other : nasty)
        expect_rebuilt(name, tokenizer, text + other + text);
    }
    for (const char* bad : {"a\xff", "\xed\xa0\x80", "a\xc3", "\xc0\x80"})
      EXPECT_THROW(tokenizer.encode(bad), InputError) << name;
  }
}

TEST(LlamaTokenizer, TakesItsSpecialPiecesForOneTokenInAText) {
  // llama2.c writes line ends around two of them
  std::string file = test::llama_file({{" ", -1}, {"a", -2}, {" a", -3}});
  LlamaTokenizer llama("l", std::as_bytes(std::span(file)));
  const std::vector<AddedToken> special = llama.special();
  const Tokenizer t(std::move(llama), special);
  // 261 is " a", 260 "a", 259 the blank
  EXPECT_EQ(ids_of(t.encode("a<s>a")), (std::vector<TokenId>{261, 1, 260}));
  EXPECT_EQ(ids_of(t.encode("<s> a</s><unk>")),
            (std::vector<TokenId>{1, 261, 2, 0}));
}

}  // namespace added_tokens_test
}  // namespace lipscope
