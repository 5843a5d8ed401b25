#include "lipscope/text/tokenizer.h"

#include <gtest/gtest.h>

#include "lipscope/core/errors.h"
#include "lipscope/text/bert_files.h"
#include "lipscope/text/gpt2_files.h"
#include "lipscope/text/token_ids.h"
#include "lipscope/text/tokenizer_json.h"
#include "tests/text/vocabularies.h"

namespace lipscope {
namespace tokenizer_test {

using nlohmann::json;
using Ids = std::vector<TokenId>;

class LoadTokenizer : public testing::Test {
 protected:
  void put(const char* name, const std::string& content) const {
    test::write_file(folder / name, content);
  }
  Ids ids(std::string_view text) const {
    return ids_of(load_tokenizer(folder.path()).encode(text));
  }
  std::string refusal() const {
    return test::message_of<InputError>([&] { load_tokenizer(folder.path()); });
  }

  const test::TemporaryFolder folder;
  const std::string vocabulary = test::byte_vocabulary({"ab", " ab"}).dump();
  const std::string merges =
      "#version: 0.2\na b\n" + test::spelled(" ") + " ab\n";
};

TEST_F(LoadTokenizer, ChoosesByTheFilesThatAreThere) {
  put("tokenizer.bin", test::llama_file({{" ", -1}, {"ab", -1}}));
  EXPECT_EQ(ids("a"), (Ids{259, 3 + 'a'}));
  put("vocab.txt", "[UNK]\nab\n");
  EXPECT_EQ(ids("AB x"), (Ids{1, 0}));
  put("encoder.json", vocabulary);
  put("vocab.bpe", merges);
  EXPECT_EQ(ids("ab ab"), (Ids{256, 257}));
  put("vocab.json", test::byte_vocabulary({"zz"}).dump());
  put("merges.txt", "z z");
  EXPECT_EQ(ids("zz ab"), (Ids{256, ' ', 'a', 'b'}));
  put("tokenizer.json", test::word_piece_json({"zz", "[UNK]"}).dump());
  EXPECT_EQ(ids("ZZ ab"), (Ids{0, 1}));
}

TEST_F(LoadTokenizer, SaysWhatIsMissing) {
  EXPECT_TRUE(test::says(refusal(), {folder.path().string(), "no tokenizer",
                                     "tokenizer.json", "tokenizer.bin"}));
  put("vocab.json", vocabulary);
  EXPECT_TRUE(test::says(refusal(), {"vocab.json", "merges.txt"}));
}

TEST_F(LoadTokenizer, TakesTheCaseOfAVocabularyFromItsConfiguration) {
  put("vocab.txt", "[UNK]\nab\nAB\n\u00e9\ne\n");
  EXPECT_EQ(ids("AB \u00c9"), (Ids{1, 4}));
  put("tokenizer_config.json", R"({"do_lower_case": true})");
  EXPECT_EQ(ids("AB \u00c9"), (Ids{1, 4}));
  put("tokenizer_config.json", R"({"do_lower_case": false, "x": [1]})");
  EXPECT_EQ(ids("AB \u00e9"), (Ids{2, 3}));
  put("tokenizer_config.json", R"({"strip_accents": false})");
  EXPECT_EQ(ids("AB \u00c9"), (Ids{1, 3}));
  put("tokenizer_config.json", R"({"unk_token": "ab"})");
  EXPECT_EQ(ids("x"), (Ids{1}));
  put("tokenizer_config.json", R"({"do_lower_case": 1})");
  EXPECT_TRUE(test::says(
      refusal(), {"tokenizer_config.json", "do_lower_case is 1", "true or"}));
}

TEST_F(LoadTokenizer, RefusesMalformedMerges) {
  put("vocab.json", vocabulary);
  const auto refusal_of = [&](const std::string& text) {
    put("merges.txt", text);
    return refusal();
  };
  EXPECT_TRUE(
      test::says(refusal_of("a b\nab\n"), {"merges.txt", "line 2", "\"ab\""}));
  EXPECT_TRUE(test::says(refusal_of("a b\n\n"), {"line 2"}));
  EXPECT_TRUE(test::says(refusal_of("a b c\n"), {"line 1"}));
  EXPECT_TRUE(test::says(refusal_of(" b\n"), {"line 1"}));
  EXPECT_TRUE(test::says(refusal_of("a \n"), {"line 1"}));
  EXPECT_TRUE(test::says(refusal_of("a b\na xy\n"),
                         {"merge 2", "\"xy\"", "not in the vocabulary"}));
  EXPECT_TRUE(test::says(refusal_of("a c\n"), {"merge 1", "\"ac\""}));
  EXPECT_TRUE(test::says(refusal_of("a b\na b\n"), {"merge 2", "twice"}));
}

// CLIP's files are called like GPT-2's
TEST_F(LoadTokenizer, RefusesMergesWithMarksAtTheEndOfWords) {
  put("vocab.json", test::byte_vocabulary({"ab</w>", "b</w>"}).dump());
  put("merges.txt", "#version: 0.2\na b</w>\n");
  EXPECT_TRUE(test::says(refusal(), {"merges.txt", "line 2", "\"a b</w>\"",
                                     "expected a tokenizer.json"}));
}

TEST_F(LoadTokenizer, RefusesFilesOfTokenizersThatCutInOtherWays) {
  const auto with_class = [&](const char* name) {
    put("tokenizer_config.json",
        fmt::format(R"({{"tokenizer_class": "{}"}})", name));
  };
  put("vocab.txt", "[UNK]\nab\n");
  for (const char* name : {"BertTokenizer", "DistilBertTokenizerFast"}) {
    with_class(name);
    EXPECT_EQ(ids("AB"), (Ids{1})) << name;
  }
  with_class("BertJapaneseTokenizer");
  EXPECT_TRUE(
      test::says(refusal(), {"tokenizer_config.json", "tokenizer_class",
                             "\"BertJapaneseTokenizer\"", "vocab.txt"}));
  put("vocab.json", vocabulary);
  put("merges.txt", merges);
  for (const char* name : {"GPT2Tokenizer", "GPT2TokenizerFast"}) {
    with_class(name);
    EXPECT_EQ(ids("ab ab"), (Ids{256, 257})) << name;
  }
  with_class("Qwen2Tokenizer");
  EXPECT_TRUE(test::says(refusal(), {"tokenizer_config.json", "tokenizer_class",
                                     "\"Qwen2Tokenizer\"", "vocab.json"}));
}

// where no class is named, the model tells whose files they are
TEST_F(LoadTokenizer, RefusesFilesOfModelsWhoseTokenizersCutInOtherWays) {
  put("vocab.json", vocabulary);
  put("merges.txt", merges);
  put("config.json", R"({"model_type": "gpt2"})");
  EXPECT_EQ(ids("ab ab"), (Ids{256, 257}));
  put("config.json", R"({"model_type": "qwen2"})");
  EXPECT_TRUE(test::says(refusal(), {"config.json", "model_type", "\"qwen2\"",
                                     "tokenizer.json", "vocab.json"}));
  put("tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer"})");
  EXPECT_EQ(ids("ab ab"), (Ids{256, 257}));
}

TEST(TokenizerJson, RefusesIdsThatAreNoNumbering) {
  const auto refusal = [](const json& vocabulary) {
    return test::message_of<InputError>([&] {
      parse_tokenizer_json(
          "t.json", test::byte_pair_json(vocabulary, json::array()).dump());
    });
  };
  EXPECT_TRUE(test::says(refusal({{"a", 0}, {"b", 0}}),
                         {"t.json", "\"a\"", "\"b\"", "both have id 0"}));
  EXPECT_TRUE(test::says(refusal({{"a", 0}, {"b", 2000000000}}),
                         {"2 pieces", "ids up to 2000000000"}));
  EXPECT_TRUE(test::says(refusal({{"a", 1002}}), {"1 pieces", "1002"}));
  EXPECT_TRUE(test::says(refusal({{"a", 3000000000}}), {"3000000000"}));
  EXPECT_TRUE(test::says(refusal({{"a", -1}}), {"\"a\"", "-1"}));
  EXPECT_TRUE(test::says(refusal({{"a", 0.5}}), {"0.5"}));
  EXPECT_TRUE(test::says(refusal({{"a", "0"}}), {"\"0\""}));
  EXPECT_TRUE(test::says(refusal(json::object()), {"empty"}));
  EXPECT_TRUE(test::says(refusal({1, 2}), {"[1,2]"}));
  EXPECT_TRUE(test::says(refusal(nullptr), {"null"}));
}

TEST(TokenizerJson, LeavesOutIdsThatNoPieceHas) {
  const Tokenizer t = parse_tokenizer_json(
      "t", test::byte_pair_json({{"a", 0}, {"b", 3}}, json::array()).dump());
  EXPECT_EQ(t.vocabulary_size(), 4);
  EXPECT_EQ(t.piece(1), "");
  EXPECT_EQ(ids_of(t.encode("ba")), (Ids{3, 0}));
}

std::string refusal(const json& file) {
  return test::message_of<InputError>(
      [&] { parse_tokenizer_json("t.json", file.dump()); });
}

TEST(TokenizerJson, ReadsMergesInBothSpellings) {
  const json vocabulary = test::byte_vocabulary({"ab", "abc"});
  const json pairs = json::parse(R"([["a", "b"], ["ab", "c"]])");
  for (const json& merges : {json{"a b", "ab c"}, pairs}) {
    const Tokenizer t = parse_tokenizer_json(
        "t", test::byte_pair_json(vocabulary, merges).dump());
    EXPECT_EQ(ids_of(t.encode("abcab")), (Ids{257, 256}));
    EXPECT_EQ(t.vocabulary_size(), 258);
  }
  for (const json& bad : {json("ab"), json("a b c"), json{"a"}, json(3),
                          json{"a", "b", "c"}, json{"a", 1}})
    EXPECT_TRUE(test::says(
        refusal(test::byte_pair_json(vocabulary, json::array({bad}))),
        {"model", "merge 1"}));
}

TEST(TokenizerJson, NamesTheTypeThatItCannotRead) {
  const json pair =
      test::byte_pair_json(test::byte_vocabulary({}), json::array());
  const auto with = [](json file, const char* pointer, const json& value) {
    file[json::json_pointer(pointer)] = value;
    return refusal(file);
  };
  EXPECT_TRUE(test::says(with(pair, "/model/type", "WordLevel"),
                         {"t.json: model: type is", "WordLevel", "Unigram"}));
  EXPECT_TRUE(test::says(with(pair, "/pre_tokenizer/type", "UnicodeScripts"),
                         {"t.json: pre_tokenizer: type is", "UnicodeScripts"}));
  EXPECT_TRUE(test::says(with(pair, "/normalizer", {{"type", "Nmt"}}),
                         {"t.json: normalizer: type is", "Nmt"}));
  const json sequence = {
      {"type", "Sequence"},
      {"normalizers", {{{"type", "NFC"}}, {{"type", "Nmt"}}}}};
  EXPECT_TRUE(
      test::says(with(pair, "/normalizer", sequence),
                 {"t.json: normalizer: normalizers[1]: type is", "Nmt"}));
  EXPECT_TRUE(test::says(with(pair, "/model/dropout", 0.5),
                         {"dropout is 0.5", "not implemented"}));
  EXPECT_TRUE(test::says(with(pair, "/model/unk_token", "<none>"),
                         {"unknown token \"<none>\""}));
}

// what is wrong in a step, and what the refusal says of it
TEST(TokenizerJson, NamesTheKeyAndTheValueThatItRefuses) {
  const json pair =
      test::byte_pair_json(test::byte_vocabulary({}), json::array());
  json unigram = pair;
  unigram["model"] = {
      {"type", "Unigram"},
      {"unk_id", 0},
      {"vocab", json::parse(R"([["<unk>", 0.0], ["a", -1.5]])")}};
  struct Bad {
    json file;
    const char* pointer;
    json value;
    std::vector<const char*> says;
  };
  const Bad all[] = {
      {pair, "/pre_tokenizer", {{"type", "Split"}}, {"pattern"}},
      {pair,
       "/pre_tokenizer",
       {{"type", "Split"}, {"pattern", {{"Regex", "["}}}},
       {"pre_tokenizer: pattern", "ends early"}},
      {pair,
       "/pre_tokenizer",
       {{"type", "Split"}, {"pattern", {{"String", "a"}}}, {"behavior", "x"}},
       {"behavior is \"x\"", "Isolated"}},
      {pair,
       "/pre_tokenizer",
       {{"type", "Metaspace"}, {"replacement", "__"}},
       {"replacement is \"__\"", "one character"}},
      {pair,
       "/pre_tokenizer",
       {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "x"}},
       {"prepend_scheme is \"x\""}},
      {pair,
       "/pre_tokenizer",
       {{"type", "Sequence"}},
       {"pretokenizers is null", "a list"}},
      {pair,
       "/normalizer",
       {{"type", "Precompiled"}, {"precompiled_charsmap", "?"}},
       {"precompiled_charsmap", "base64"}},
      {pair,
       "/normalizer",
       {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAA"}},
       {"precompiled_charsmap", "3 bytes"}},
      {pair, "/normalizer", {{"type", "Strip"}}, {"strip_left is null"}},
      {pair, "/normalizer", {{"type", "Prepend"}}, {"prepend is null"}},
      {unigram, "/model/vocab", json::array(), {"vocab is []"}},
      {unigram, "/model/vocab/1", json::array({"a"}), {"piece 1", "its score"}},
      {unigram, "/model/vocab/1/0", "<unk>", {"\"<unk>\"", "twice"}},
      {unigram, "/model/unk_id", 2, {"unk_id is 2", "vocabulary of 2"}},
      {unigram, "/model/unk_id", -1, {"unk_id", "-1"}},
      {unigram, "/model/byte_fallback", "x", {"byte_fallback", "true or"}},
  };
  for (const Bad& bad : all) {
    json file = bad.file;
    file[json::json_pointer(bad.pointer)] = bad.value;
    const std::string message = refusal(file);
    EXPECT_TRUE(message.starts_with("t.json: ")) << message;
    for (const char* part : bad.says)
      EXPECT_NE(message.find(part), message.npos) << message << " | " << part;
  }
}

TEST(TokenizerJson, RefusesWrongTypesOfJson) {
  const json pair = test::byte_pair_json(test::byte_vocabulary({}), {});
  const json piece = test::word_piece_json({"[UNK]", "a"});
  for (const json& file : {pair, piece}) {
    const json values = file.flatten();
    for (const auto& [pointer, value] : values.items()) {
      json bad = file;
      bad[json::json_pointer(pointer)] = json::array({1});
      EXPECT_TRUE(test::says(refusal(bad), {"t.json"})) << pointer;
    }
  }
  for (const char* text : {"", "{", "[]", "3", "{\"model\": 1}", "{}"})
    EXPECT_TRUE(test::says(test::message_of<InputError>(
                               [&] { parse_tokenizer_json("t.json", text); }),
                           {"t.json"}))
        << text;
  using namespace std::string_literals;
  const std::pair<std::string, const char*> texts[] = {
      {R"({"model": 1, "model": 2})", "\"model\" stands there twice"},
      {std::string(100, '['), "nested more than 64 deep"},
      {"{}\0"s, "byte 2 of 3 is zero"},
      {"[1e999]", "beyond the range"},
      {"[\"\xff\"]", "at byte 3 of 5"}};
  for (const auto& [text, says] : texts)
    EXPECT_TRUE(test::says(test::message_of<InputError>(
                               [&] { parse_tokenizer_json("t.json", text); }),
                           {"t.json: ", says}));
  json bad = pair;
  bad["model"]["merges"] = "a b";
  EXPECT_TRUE(test::says(refusal(bad), {"merges", "expected a list"}));
  bad = piece;
  bad["model"]["unk_token"] = "?";
  EXPECT_TRUE(test::says(refusal(bad), {"\"?\"", "not in the vocabulary"}));
}

TEST(TokenizerJson, FollowsItsOptions) {
  json file = test::word_piece_json(
      {"?", "a", "@@b", "\u00c9", "[UNK]", "##b", "\u4e2d\u4e2d", "A", "E"});
  const auto ids = [&](std::string_view text) {
    return ids_of(parse_tokenizer_json("t", file.dump()).encode(text));
  };
  EXPECT_EQ(ids("ab A"), (Ids{1, 5, 1}));
  file["model"]["continuing_subword_prefix"] = "@@";
  file["model"]["unk_token"] = "?";
  file["model"]["max_input_chars_per_word"] = 2;
  EXPECT_EQ(ids("ab abb"), (Ids{1, 2, 0}));
  EXPECT_EQ(ids("\u4e2d\u4e2d"), (Ids{0, 0}));
  file["normalizer"]["handle_chinese_chars"] = false;
  EXPECT_EQ(ids("\u4e2d\u4e2d"), (Ids{6}));
  file["normalizer"]["lowercase"] = false;  // and with it the accents stay
  EXPECT_EQ(ids("A \u00c9"), (Ids{7, 3}));
  file["normalizer"]["strip_accents"] = true;
  EXPECT_EQ(ids("A \u00c9"), (Ids{7, 8}));
  EXPECT_EQ(ids("a\x01"), (Ids{1}));
  file["normalizer"]["clean_text"] = false;
  EXPECT_EQ(ids("a\x01"), (Ids{0}));
  // a file that does not name its model
  file["model"].erase("type");
  EXPECT_EQ(ids("ab"), (Ids{1, 2}));

  file = test::byte_pair_json(test::byte_vocabulary({}), json::array());
  file["model"].erase("type");
  EXPECT_EQ(ids("a"), (Ids{'a'}));
  file["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_EQ(ids("a"), (Ids{' ', 'a'}));
}

TEST(TokenizerJson, LooksForAddedTokensFirst) {
  json file = test::byte_pair_json(test::byte_vocabulary({}), json::array());
  const auto token = [](int id, const char* content, bool special) {
    return json{{"id", id}, {"content", content}, {"special", special}};
  };
  file["added_tokens"] = {token(256, "<|end|>", true), token('a', "a", true)};
  const Tokenizer t = parse_tokenizer_json("t", file.dump());
  EXPECT_EQ(t.vocabulary_size(), 257);
  EXPECT_EQ(t.piece(256), "<|end|>");
  EXPECT_EQ(t.encode("x<|end|>"),
            (std::vector<Token>{{'x', 0, 1}, {256, 1, 8}}));

  file["added_tokens"] = {token(256, "new", false)};
  EXPECT_EQ(ids_of(parse_tokenizer_json("t", file.dump()).encode("new")),
            (Ids{256}));
  file["added_tokens"] = {token(7, "a", true)};
  EXPECT_TRUE(test::says(refusal(file), {"\"a\"", "id 97", "7"}));
  file["added_tokens"] = {token(300, "b2", true)};
  EXPECT_TRUE(test::says(refusal(file), {"b2", "id 300", "expected 256"}));
  for (const json& bad : {json("x"), json{{"id", 1}}, json{{"content", 1}}}) {
    file["added_tokens"] = json::array({bad});
    EXPECT_TRUE(test::says(refusal(file), {"added_tokens"}));
  }
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8) {
  const std::string llama = test::llama_file({});
  const Tokenizer all[] = {
      Tokenizer(LlamaTokenizer("l", std::as_bytes(std::span(llama)))),
      Tokenizer(bert_pipeline("w", {"[UNK]"})),
      Tokenizer(gpt2_pipeline("b", {"a"}, {}))};
  for (const Tokenizer& t : all)
    for (const char* bad :
         {"aaa\xff", "aaa\xc3", "aaa\xc0\x80", "aaa\xed\xa0\x80",
          "aaa\xf4\x90\x80\x80", "aaa\x80"})
      EXPECT_TRUE(
          test::says(test::message_of<InputError>([&] { t.encode(bad); }),
                     {"not UTF-8", "byte 3 of"}));
}

TEST(Tokenizer, RefusesIdsThatItDoesNotKnow) {
  const Tokenizer t(bert_pipeline("w", {"[UNK]", "a"}));
  EXPECT_EQ(t.vocabulary_size(), 2);
  EXPECT_EQ(t.piece(1), "a");
  EXPECT_THROW(t.piece(2), std::invalid_argument);
  EXPECT_THROW(t.piece(-1), std::invalid_argument);
  EXPECT_THROW(t.decode(Ids{0, 2}), std::invalid_argument);
}

TEST(TokenIds, AreIntegersBetweenWhiteSpace) {
  EXPECT_EQ(parse_token_ids("f", "  1 22\t333\r\n\n0 2147483647"),
            (Ids{1, 22, 333, 0, 2147483647}));
  EXPECT_TRUE(parse_token_ids("f", " \n ").empty());
  const auto refusal = [](const char* text) {
    return test::message_of<InputError>([&] { parse_token_ids("f", text); });
  };
  EXPECT_TRUE(test::says(refusal("1 2\n3 x4 5"), {"f: line 2", "\"x4\""}));
  for (const char* bad : {"-1", "-0", "+1", "1.5", "1,2", "2147483648", "0x1"})
    EXPECT_TRUE(test::says(refusal(bad), {"line 1", bad}));
}

TEST_F(LoadTokenizer, ReadsIdsFromAFile) {
  put("ids.txt", "5 6\n7\n");
  EXPECT_EQ(read_token_ids(folder / "ids.txt"), (Ids{5, 6, 7}));
  EXPECT_THROW(read_token_ids(folder / "none"), InputError);
}

}  // namespace tokenizer_test
}  // namespace lipscope
