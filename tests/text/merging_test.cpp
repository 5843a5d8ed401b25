// The two tokenizers that merge neighbours: GPT-2's and Llama's.

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>

#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"
#include "lipscope/text/byte_pair.h"
#include "lipscope/text/gpt2_files.h"
#include "lipscope/text/llama_tokenizer.h"
#include "lipscope/text/pair_merges.h"
#include "lipscope/text/tokenizer.h"
#include "tests/text/vocabularies.h"

namespace lipscope {
namespace merging_test {

using Strings = std::vector<std::string>;

std::size_t below(Rng& rng, std::size_t bound) { return rng.next() % bound; }

// Random characters of one to four bytes, runs of blanks among them.
std::string random_text(Rng& rng, std::size_t characters) {
  std::string text;
  for (std::size_t i = 0; i < characters; ++i) {
    switch (below(rng, 6)) {
      case 0:
        text += ' ';
        break;
      case 1:
        text += utf8_of(0x80 + below(rng, 0x780));
        break;
      case 2:
        text += utf8_of(0x800 + below(rng, 0xd000));
        break;
      case 3:
        text += utf8_of(0x10000 + below(rng, 0x100000));
        break;
      default:
        text += utf8_of(below(rng, 128));
    }
  }
  return text;
}

// Tokens of one byte each.
std::vector<Token> singles(const std::vector<TokenId>& ids) {
  std::vector<Token> tokens;
  for (const TokenId id : ids)
    tokens.push_back({id, tokens.size(), tokens.size() + 1});
  return tokens;
}

TEST(PairMerges, FindWhatLookingAtAllPairsAgainAndAgainFinds) {
  Rng rng(1);
  for (int round = 0; round < 200; ++round) {
    // orders from a small range, so that many are equal
    PairMerges merges;
    std::map<std::pair<TokenId, TokenId>, std::pair<double, TokenId>> table;
    for (int i = 0; i < 30; ++i) {
      const auto left = static_cast<TokenId>(below(rng, 12));
      const auto right = static_cast<TokenId>(below(rng, 12));
      const auto merged = static_cast<TokenId>(below(rng, 12));
      const auto order = static_cast<double>(below(rng, 8));
      EXPECT_EQ(merges.add(left, right, merged, order),
                table.try_emplace({left, right}, order, merged).second);
    }
    std::vector<TokenId> ids;
    for (int i = 0; i < 60; ++i)
      ids.push_back(static_cast<TokenId>(below(rng, 4)));
    std::vector<Token> slow = singles(ids);
    while (true) {
      std::optional<std::size_t> best;
      double order = 0;
      for (std::size_t i = 0; i + 1 < slow.size(); ++i) {
        const auto found = table.find({slow[i].id, slow[i + 1].id});
        if (found == table.end()) continue;
        if (best && found->second.first >= order) continue;
        best = i;
        order = found->second.first;
      }
      if (!best) break;
      Token& left = slow[*best];
      const Token right = slow[*best + 1];
      left = {table[{left.id, right.id}].second, left.begin, right.end};
      slow.erase(slow.begin() + static_cast<std::ptrdiff_t>(*best) + 1);
    }
    ASSERT_EQ(merges.apply(singles(ids)), slow) << "round " << round;
  }
}

TEST(Gpt2Words, AreCutWhereTheDescriptionSays) {
  const auto words = [](std::string_view text) {
    Strings all;
    for (const SourcedText& word : gpt2_words()(SourcedText(text)))
      all.push_back(word.text());
    return all;
  };
  EXPECT_EQ(words("Hello world"), (Strings{"Hello", " world"}));
  EXPECT_EQ(words("it's we'll I'D"),
            (Strings{"it", "'s", " we", "'ll", " I", "'", "D"}));
  EXPECT_EQ(words("x2y 3.14"), (Strings{"x", "2", "y", " 3", ".", "14"}));
  // of a run of white space the last goes with the word, if it is a blank
  EXPECT_EQ(words("a   b\n\nc \n"),
            (Strings{"a", "  ", " b", "\n", "\n", "c", " \n"}));
  // a no-break space separates, a zero-width one and U+180E do not
  EXPECT_EQ(words("a\u00a0b"), (Strings{"a", "\u00a0", "b"}));
  EXPECT_EQ(words("!\u200b\u180e!"), (Strings{"!\u200b\u180e!"}));
  // letters and numbers of any script
  EXPECT_EQ(words("\u0416\u4e2d\u0663\u00bd\U0001F600"),
            (Strings{"\u0416\u4e2d", "\u0663\u00bd", "\U0001F600"}));
  EXPECT_TRUE(words("").empty());
}

// "h" "e" → "he", "l" "l" → "ll", "he" "ll" → "hell", " " "hell" → " hell"
Tokenizer small_byte_pair(bool add_prefix_space = false) {
  Strings pieces;
  for (int byte = 0; byte < 256; ++byte)
    pieces.push_back(test::spelled_byte(byte));
  for (const char* piece : {"he", "ll", "hell", " hell"})
    pieces.push_back(test::spelled(piece));
  return Tokenizer(gpt2_pipeline(
      "small", pieces,
      {{"h", "e"}, {"l", "l"}, {"he", "ll"}, {test::spelled(" "), "hell"}},
      add_prefix_space));
}

TEST(Gpt2Tokenizer, MergesInTheOrderOfTheFile) {
  EXPECT_EQ(small_byte_pair().encode("hello hell\xc3\xa9"),
            (std::vector<Token>{{258, 0, 4},
                                {'o', 4, 5},
                                {259, 5, 10},
                                {0xc3, 10, 11},
                                {0xa9, 11, 12}}));
  // "lll": the leftmost two become one
  EXPECT_EQ(small_byte_pair().encode("lll"),
            (std::vector<Token>{{257, 0, 2}, {'l', 2, 3}}));
}

TEST(Gpt2Tokenizer, PutsABlankBeforeTheTextWhereAskedTo) {
  const Tokenizer t = small_byte_pair(true);
  EXPECT_EQ(t.encode("hello"), (std::vector<Token>{{259, 0, 4}, {'o', 4, 5}}));
  EXPECT_EQ(t.encode(" hello"), small_byte_pair().encode(" hello"));
  EXPECT_EQ(t.encode("!"), (std::vector<Token>{{' ', 0, 0}, {'!', 0, 1}}));
  EXPECT_TRUE(t.encode("").empty());
}

TEST(Gpt2Tokenizer, GivesBackEveryText) {
  const Tokenizer t = small_byte_pair();
  Rng rng(2);
  for (int round = 0; round < 50; ++round) {
    const std::string text = random_text(rng, 200) + "hello  hell";
    const std::vector<Token> tokens = t.encode(text);
    std::vector<TokenId> ids;
    std::size_t end = 0;
    for (const Token& token : tokens) {
      // the tokens stand side by side, each where its bytes are
      EXPECT_EQ(token.begin, end);
      end = token.end;
      EXPECT_EQ(text.substr(token.begin, token.end - token.begin),
                t.pieces()[token.id]);
      ids.push_back(token.id);
    }
    EXPECT_EQ(end, text.size());
    EXPECT_EQ(t.decode(ids), text);
  }
}

TEST(Gpt2Tokenizer, TakesAVeryLongWord) {
  // quadratic work would take minutes
  const std::string text(1 << 18, 'l');
  EXPECT_EQ(small_byte_pair().encode(text).size(), text.size() / 2);
}

TEST(Gpt2Tokenizer, RefusesAByteWithoutAPiece) {
  const Tokenizer t(gpt2_pipeline("small", {"a", "b"}, {}));
  EXPECT_EQ(t.encode("ab").size(), 2u);
  EXPECT_TRUE(test::says(test::message_of<InputError>([&] { t.encode("abc"); }),
                         {"\"c\"", "\"abc\""}));
}

// Pieces with a blank before them, as Llama's have.
LlamaTokenizer small_llama() {
  const std::string content = test::llama_file({{" ", -9},
                                                {"a", -9},
                                                {"b", -9},
                                                {"\u00e9", -9},
                                                {"ab", -2},
                                                {" a", -1},
                                                {"ba", -3},
                                                {" ab", -5},
                                                {"  ", -4}});
  return LlamaTokenizer("small", std::as_bytes(std::span(content)));
}

TEST(LlamaTokenizer, MergesTheBestScoreFirstBehindABlankOfItsOwn) {
  const LlamaTokenizer t = small_llama();
  // _ a b: " a" is better than "ab"; then " ab"
  EXPECT_EQ(t.encode("ab"), (std::vector<Token>{{266, 0, 2}}));
  // _ b a b: "ab" is better than "ba", and " b" is no piece
  EXPECT_EQ(t.encode("bab"),
            (std::vector<Token>{{259, 0, 0}, {261, 0, 1}, {263, 1, 3}}));
  // _ _ a: " a" before "  "
  EXPECT_EQ(t.encode(" a"), (std::vector<Token>{{259, 0, 0}, {264, 0, 2}}));
  EXPECT_TRUE(t.encode("").empty());
}

TEST(LlamaTokenizer, WritesWhatIsNotInTheVocabularyInBytes) {
  EXPECT_EQ(small_llama().encode("\u00e9\u00e8\n"),
            (std::vector<Token>{{259, 0, 0},
                                {262, 0, 2},
                                {3 + 0xc3, 2, 3},
                                {3 + 0xa8, 3, 4},
                                {3 + 10, 4, 5}}));
}

TEST(LlamaTokenizer, DoesNotMatchBytesOrSpecialPiecesInTheText) {
  for (const Token& token : small_llama().encode("<s><0x0A></s><unk>")) {
    EXPECT_GE(token.id, 3);
    EXPECT_NE(token.id, 3 + 0x0a);
  }
}

TEST(LlamaTokenizer, ReadsBytesInTheOlderSpellingToo) {
  std::string content = test::bytes_of(std::int32_t{8});
  const auto add = [&](const std::string& piece) {
    content += test::bytes_of(0.0f) +
               test::bytes_of(static_cast<std::int32_t>(piece.size())) + piece;
  };
  for (const char* special : {"<unk>", "\n<s>\n", "\n</s>\n"}) add(special);
  for (char32_t byte = 0; byte < 256; ++byte) add(utf8_of(byte));
  add("!");
  const LlamaTokenizer t("old", std::as_bytes(std::span(content)));
  EXPECT_EQ(t.pieces()[3 + 0xe9], "\xe9");
  // the piece of text and not the byte that is written like it
  EXPECT_EQ(t.encode("!").back(), (Token{259, 0, 1}));
}

TEST(LlamaTokenizer, GivesBackEveryText) {
  const LlamaTokenizer t = small_llama();
  Rng rng(3);
  for (int round = 0; round < 50; ++round) {
    const std::string text =
        random_text(rng, 100) + " ab  bab" + random_text(rng, 20);
    std::vector<TokenId> ids;
    for (const Token& token : t.encode(text)) ids.push_back(token.id);
    EXPECT_EQ(t.decode(ids), text);
    ids.insert(ids.begin(), 1);  // the beginning of a text
    ids.push_back(2);
    EXPECT_EQ(t.decode(ids), text);
  }
}

TEST(LlamaTokenizer, TakesAVeryLongWord) {
  const std::string text(1 << 18, 'b');
  EXPECT_EQ(small_llama().encode(text).size(), text.size() + 1);
}

TEST(LlamaTokenizer, RefusesWhatIsNotItsFormat) {
  const auto refusal = [](const std::string& content) {
    return test::message_of<InputError>(
        [&] { LlamaTokenizer("x.bin", std::as_bytes(std::span(content))); });
  };
  const std::string good = test::llama_file({{"a", -1}});
  for (std::size_t size = 0; size < good.size(); size += 7)
    EXPECT_TRUE(test::says(refusal(good.substr(0, size)), {"x.bin: "}));
  EXPECT_TRUE(test::says(refusal(good.substr(0, good.size() - 1)),
                         {"cut short", "1 more bytes expected, there are 0"}));

  const auto with_length = [&](std::int32_t length) {
    std::string bad = good;
    bad.replace(bad.size() - 5, 4, test::bytes_of(length));
    return bad;
  };
  EXPECT_TRUE(test::says(refusal(with_length(-1)),
                         {"piece 259 has -1 bytes", "expected 1 to 6"}));
  EXPECT_TRUE(test::says(refusal(with_length(0)), {"has 0 bytes"}));
  EXPECT_TRUE(test::says(refusal(with_length(0x7fffffff)), {"2147483647"}));
  EXPECT_TRUE(test::says(
      refusal(test::bytes_of(std::int32_t{1 << 30}) + good.substr(4)),
      {"longest", "1073741824"}));
  EXPECT_TRUE(test::says(refusal(test::llama_file({{"a", std::nanf("")}})),
                         {"score nan"}));
  EXPECT_TRUE(test::says(refusal(test::llama_file({{"a", -1}, {"a", -2}})),
                         {"259 and 260", "\"a\""}));
  std::string swapped = good;
  swapped[swapped.find("<0x41>") + 4] = '9';
  EXPECT_TRUE(
      test::says(refusal(swapped), {"piece 68", "\"<0x49>\"", "<0x41>"}));
  EXPECT_TRUE(test::says(refusal(good.substr(0, 4 + 13)), {"1 pieces"}));
}

}  // namespace merging_test
}  // namespace lipscope
