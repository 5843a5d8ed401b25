#include "lipscope/text/word_piece.h"

#include <gtest/gtest.h>

#include "lipscope/core/errors.h"
#include "lipscope/text/bert_files.h"
#include "lipscope/text/tokenizer.h"
#include "tests/text/vocabularies.h"

namespace lipscope {
namespace word_piece_test {

using Strings = std::vector<std::string>;

// The words of a text, blanks between them.
std::string words(std::string_view text, const BertNormalization& how = {}) {
  std::string all;
  for (const SourcedText& word :
       bert_words()(as_bert(how)(SourcedText(text)))) {
    if (!all.empty()) all += ' ';
    all += word.text();
  }
  return all;
}

const BertNormalization cased{.strip_accents = false, .lowercase = false};
const BertNormalization lower_only{.strip_accents = false};
const BertNormalization untouched{.clean_text = false,
                                  .split_ideographs = false,
                                  .strip_accents = false,
                                  .lowercase = false};

TEST(BertWords, AreSplitAtWhiteSpaceAndPunctuation) {
  EXPECT_EQ(words(" don't  \tstop.\r\n"), "don ' t stop .");
  EXPECT_EQ(words("a\u00a0b\u2003c\u3000d\u2028e"), "a b c d e");
  // all of ASCII that is no letter or digit, and category P, but not S
  EXPECT_EQ(words("a$b^c`d~e_f"), "a $ b ^ c ` d ~ e _ f");
  EXPECT_EQ(words("a\u00bfb\u2026c\u20acd"), "a \u00bf b \u2026 c\u20acd");
}

TEST(BertWords, LoseControlCharacters) {
  using namespace std::string_literals;
  EXPECT_EQ(words("a\0b\x01"
                  "c\x7f"
                  "d\u200be\ufefff\ufffdg\ue000h"s),
            "abcdefgh");
  // these separate elsewhere, but are control characters here
  EXPECT_EQ(words("a\x0b"
                  "b\x0c"
                  "c\u0085d"),
            "abcd");
  EXPECT_EQ(words("a\x0b"
                  "b\x01"
                  "c",
                  untouched),
            "a b\x01"
            "c");
}

TEST(BertWords, LoseAccentsAndCaseUnlessTold) {
  EXPECT_EQ(words("R\u00e9sume\u0301 \u00c5\u1e9b\u0323"), "resume a\u017f");
  EXPECT_EQ(words("R\u00e9sume\u0301", cased), "R\u00e9sume\u0301");
  EXPECT_EQ(words("R\u00c9sume\u0301", lower_only), "r\u00e9sume\u0301");
  EXPECT_EQ(words("R\u00c9", {.lowercase = false}), "RE");
  // Turkish: taken apart first, or lower case in two characters
  EXPECT_EQ(words("\u0130\u0131I"), "i\u0131i");
  EXPECT_EQ(words("\u0130\u0131I", lower_only), "i\u0307\u0131i");
  // no final sigma
  EXPECT_EQ(words("\u039f\u03a3"), "\u03bf\u03c3");
  // Hangul comes apart into its letters
  EXPECT_EQ(words("\ud55c"), "\u1112\u1161\u11ab");
}

TEST(BertWords, PutMarksThatStayInCanonicalOrder) {
  // U+302E (class 224) and U+1D165 (class 216) are marks, but not Mn
  EXPECT_EQ(words("a\u302e\U0001D165"), "a\U0001D165\u302e");
  EXPECT_EQ(words("a\u302e\U0001D165", cased), "a\u302e\U0001D165");
}

TEST(BertWords, IsolateIdeographsUnlessTold) {
  EXPECT_EQ(words("ab\u6771\u4eacc"), "ab \u6771 \u4eac c");
  EXPECT_EQ(words("ab\u6771\u4eacc", {.split_ideographs = false}),
            "ab\u6771\u4eacc");
  // of a late block; a compatibility ideograph is told
  // by what it was
  EXPECT_EQ(words("a\U0002B920b\U0002CEAFc"), "a \U0002B920 b \U0002CEAF c");
  // the block begins at U+2B820, but not for Hugging Face's tokenizers
  EXPECT_EQ(words("a\U0002B820b"), "a\U0002B820b");
  EXPECT_EQ(words("a\uf900b"), "a \u8c48 b");
  // kana are written like letters
  EXPECT_EQ(words("\u3042\u3044"), "\u3042\u3044");
}

TEST(BertWords, KnowWhereTheyStoodInTheText) {
  // bytes: 0-1 U+00C9, 2 'a', 3-4 U+0301, 5-7 U+200B, 8 'b'
  const SourcedText word =
      bert_words()(as_bert({})(SourcedText("\u00c9a\u0301\u200bb"))).at(0);
  ASSERT_EQ(word.text(), "eab");
  EXPECT_EQ(word.source(0, 1).begin, 0u);
  EXPECT_EQ(word.source(0, 1).end, 2u);
  EXPECT_EQ(word.source(1, 2).end, 3u);
  EXPECT_EQ(word.source(2, 3).begin, 8u);
}

Tokenizer small(const BertOptions& options = {}) {
  return Tokenizer(bert_pipeline("small",
                                 {"[UNK]", "un", "##aff", "##able", "##a", ".",
                                  "a", "caf\u00e9", "cafe", "##un"},
                                 options));
}

TEST(WordPiece, TakesTheLongestPieceFromTheLeft) {
  // the example of BERT's own documentation
  EXPECT_EQ(small().encode("unaffable."),
            (std::vector<Token>{{1, 0, 2}, {2, 2, 5}, {3, 5, 9}, {5, 9, 10}}));
  EXPECT_EQ(small().encode("  Una un"),
            (std::vector<Token>{{1, 2, 4}, {4, 4, 5}, {1, 6, 8}}));
  // a piece within a word is not the piece that begins one
  EXPECT_EQ(small().encode("aun"), (std::vector<Token>{{6, 0, 1}, {9, 1, 3}}));
  EXPECT_TRUE(small().encode(" \n").empty());
}

TEST(WordPiece, MakesAWordUnknownAsAWhole) {
  EXPECT_EQ(small().encode("a unaffx a"),
            (std::vector<Token>{{6, 0, 1}, {0, 2, 8}, {6, 9, 10}}));
  // brackets are punctuation, and "unk" is no word
  EXPECT_EQ(ids_by_piece("", small().pieces()).at("[UNK]"), 0);
  EXPECT_EQ(small().encode("[UNK]").size(), 3u);
}

TEST(WordPiece, StandsAtMarksThatChangedPlaces) {
  // U+302E at bytes 1 to 4 goes behind U+1D165 at bytes 4 to 8
  EXPECT_EQ(small().encode(".\u302e\U0001D165"),
            (std::vector<Token>{{5, 0, 1}, {0, 1, 8}}));
}

TEST(WordPiece, CountsTheCharactersOfALongWord) {
  const std::string hundred = std::string(100, 'a');
  EXPECT_EQ(small().encode(hundred).size(), 100u);
  EXPECT_EQ(small().encode(hundred + "a"), (std::vector<Token>{{0, 0, 101}}));
  BertOptions options;
  options.word_piece.longest_word = 3;
  EXPECT_EQ(small(options).encode("aaa aaaa").size(), 4u);
  // characters, not bytes, after normalisation
  options.word_piece.longest_word = 4;
  EXPECT_EQ(small(options).encode("caf\u00e9"),
            (std::vector<Token>{{8, 0, 5}}));
}

TEST(WordPiece, TakesAVeryLongWord) {
  BertOptions options;
  options.word_piece.longest_word = 1 << 30;
  const std::string text(1 << 18, 'a');
  EXPECT_EQ(small(options).encode(text).size(), text.size());
}

TEST(WordPiece, FollowsItsOptions) {
  BertOptions options;
  options.normalization = cased;
  EXPECT_EQ(small(options).encode("caf\u00e9 Una"),
            (std::vector<Token>{{7, 0, 5}, {0, 6, 9}}));
  options.word_piece.continuing_prefix = "";
  options.word_piece.unknown = "a";
  EXPECT_EQ(small(options).encode("una Q"),
            (std::vector<Token>{{1, 0, 2}, {6, 2, 3}, {6, 4, 5}}));
}

TEST(WordPiece, JoinsPiecesToWords) {
  const std::vector<TokenId> ids = {1, 2, 3, 5, 8};
  EXPECT_EQ(small().decode(ids), "unaffable . cafe");
}

TEST(WordPiece, ReadsAVocabularyOfLines) {
  const auto refusal = [](std::string_view text) {
    return test::message_of<InputError>(
        [&] { parse_bert_vocabulary("v.txt", text, {}); });
  };
  EXPECT_EQ(parse_bert_vocabulary("v.txt", "[UNK]\r\na\n##b", {}).pieces(),
            (Strings{"[UNK]", "a", "##b"}));
  EXPECT_TRUE(test::says(refusal("[UNK]\na\n\nb\n"), {"v.txt", "line 3"}));
  EXPECT_TRUE(test::says(refusal("[UNK]\na\na\n"), {"\"a\"", "1 and 2"}));
  EXPECT_TRUE(test::says(refusal("a\n"), {"\"[UNK]\"", "not in"}));
  EXPECT_TRUE(test::says(refusal(""), {"[UNK]"}));
}

}  // namespace word_piece_test
}  // namespace lipscope
