// With the vocabularies of real models, where they are there. None of the
// expected ids comes from this program.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lipscope/text/tokenizer.h"
#include "tests/io/test_files.h"
#include "tests/support/shared_files.h"
#include "tests/text/vocabularies.h"

namespace lipscope {
namespace real_vocabularies_test {

using nlohmann::json;
using Ids = std::vector<TokenId>;

class RealVocabularies : public testing::Test {
 protected:
  void SetUp() override {
    const auto found = test::shared_folder();
    if (!found)
      GTEST_SKIP() << "no ../shared, and LIPSCOPE_MODELS names no folder";
    shared = *found;
  }
  Tokenizer load(const char* folder) const {
    return load_tokenizer(shared / folder);
  }
  std::string read(const char* file) const {
    return test::read_file(shared / file);
  }
  json read_json(const std::string& file) const {
    return json::parse(read(file.c_str()));
  }

  std::filesystem::path shared;
};

TEST_F(RealVocabularies, MiniLMReadsAliceAsItsReferenceDoes) {
  const Tokenizer t = load("models/minilm-l6-v2-fp16");
  EXPECT_EQ(t.vocabulary_size(), 30522);
  const Ids ids = ids_of(t.encode(read("data/alice29.txt")));
  const json golden = read_json("golden/minilm.json");
  EXPECT_EQ(Ids(ids.begin(), ids.begin() + 40), golden["first_40_ids"]);
  for (const json& part : golden["cases"]) {
    const auto from = ids.begin() + part["offset"].get<int>();
    EXPECT_EQ(Ids(from, from + part["n"].get<int>()), part["ids"]);
  }
}

TEST_F(RealVocabularies, BertsLinesAndMiniLMsJsonAreOneTokenizer) {
  const Tokenizer json_file = load("models/minilm-l6-v2-fp16");
  const Tokenizer lines = load("tokenizers/bert-base-uncased");
  const std::string text = read("data/alice29.txt");
  EXPECT_EQ(json_file.encode(text), lines.encode(text));
}

TEST_F(RealVocabularies, Gpt2ReadsTheReferencePrompts) {
  const Tokenizer t = load("tokenizers/gpt2");
  EXPECT_EQ(t.vocabulary_size(), 50257);
  for (int i = 0; i < 5; ++i) {
    const json example =
        read_json(fmt::format("data/gpt2_reference_attention/ex{}.json", i));
    const std::vector<Token> tokens =
        t.encode(example["prompt"].get<std::string>());
    EXPECT_EQ(ids_of(tokens), example["tokenIds"]);
    for (std::size_t k = 0; k < tokens.size(); ++k)
      EXPECT_EQ(t.piece(tokens[k].id), example["tokens"][k]);
  }
}

TEST_F(RealVocabularies, Gpt2GivesBackAWholeBook) {
  const Tokenizer t = load("tokenizers/gpt2");
  const std::string text = read("data/moby_dick.txt");
  const Ids ids = ids_of(t.encode(text));
  EXPECT_EQ(ids.size(), 317756u);  // by Hugging Face's tokenizers 0.23.3
  EXPECT_EQ(t.decode(ids), text);
}

TEST_F(RealVocabularies, LlamaWritesAndReadsTheGreedyStory) {
  const Tokenizer t = load("models/stories15M");
  EXPECT_EQ(t.vocabulary_size(), 32000);
  const json golden = read_json("golden/stories15M.json");
  const Ids ids = golden["greedy_ids"];
  const std::string text = t.decode(ids);
  // the golden text has kept the blank that every text gets
  EXPECT_EQ(" " + text, golden["greedy_text"]);
  EXPECT_EQ(ids_of(t.encode(text)), Ids(ids.begin() + 1, ids.end()));
}

// Ids by Hugging Face's tokenizers 0.23.3, with GPT-2's vocabulary behind
// ByteLevel(add_prefix_space=False) and bert-base-uncased's behind
// BertNormalizer(lowercase=True); no special tokens.
struct Tricky {
  const char* name;
  std::string text;
  Ids gpt2, bert;
};

const Tricky tricky[] = {
    {"emoji",
     "I \360\237\230\200\360\237\221\250\342\200\215\360\237\221\251 ok",
     {40, 30325, 222, 41840, 101, 447, 235, 41840, 102, 12876},
     {1045, 100, 7929}},
    {"combining",
     "re\314\201sume\314\201 r\303\251sum\303\251 \341\272\233\314\243",
     {260, 136, 223, 82, 2454, 136, 223, 40560, 16345, 2634, 28053, 118, 249,
      136, 96},
     {13746, 13746, 100}},
    {"cjk",
     "\346\235\261\344\272\254 abc\344\270\255d \357\244\200",
     {30266, 109, 12859, 105, 450, 66, 40792, 67, 27332, 97, 222},
     {1879, 1755, 5925, 1746, 1040, 100}},
    {"nbsp",
     "a\302\240b\342\200\203c\343\200\200d",
     {64, 1849, 65, 447, 225, 66, 5099, 222, 67},
     {1037, 1038, 1039, 1040}},
    {"zero",
     "a\342\200\213b \357\273\277c \302\255-",
     {64, 9525, 65, 27332, 119, 123, 66, 22020, 12},
     {11113, 1039, 1011}},
    {"tabs",
     "\011a\011\011b\012\012  c  \015\012d ",
     {197, 64, 197, 197, 65, 628, 220, 269, 220, 220, 201, 198, 67, 220},
     {1037, 1038, 1039, 1040}},
    {"apos",
     "it's we'll 'tis I'd DON'T x''s",
     {270, 338, 356, 1183, 705, 48010, 314, 1549, 23917, 6, 51, 2124, 7061, 82},
     {2009, 1005, 1055, 2057, 1005, 2222, 1005, 22320, 1045, 1005, 1040, 2123,
      1005, 1056, 1060, 1005, 1005, 1055}},
    {"digits",
     "3.14 1,000 \331\243\331\244 \302\275 x2",
     {18, 13, 1415, 352, 11, 830, 18923, 96, 149, 97, 25208, 2124, 17},
     {1017, 1012, 2403, 1015, 1010, 2199, 100, 1092, 1060, 2475}},
    {"turkish",
     "\304\260stanbul \304\261I",
     {128, 108, 24179, 220, 30102, 40},
     {9960, 1104, 2072}},
    {"long",
     std::string(101, 'a') + " " + std::string(100, 'a'),
     {24794, 24794, 24794, 24794, 24794, 24794, 24794, 24794, 24794,
      24794, 24794, 24794, 24794, 24794, 24794, 24794, 24794, 24794,
      24794, 24794, 24794, 24794, 24794, 24794, 24794, 64,    257,
      24794, 24794, 24794, 24794, 24794, 24794, 24794, 24794, 24794,
      24794, 24794, 24794, 24794, 24794, 24794, 24794, 24794, 24794,
      24794, 24794, 24794, 24794, 24794, 24794, 46071},
     {100,   13360, 11057, 11057, 11057, 11057, 11057, 11057, 11057,
      11057, 11057, 11057, 11057, 11057, 11057, 11057, 11057, 11057,
      11057, 11057, 11057, 11057, 11057, 11057, 11057, 11057, 11057,
      11057, 11057, 11057, 11057, 11057, 11057, 11057, 11057, 11057,
      11057, 11057, 11057, 11057, 11057, 11057, 11057, 11057, 11057,
      11057, 11057, 11057, 11057, 11057, 2050}},
    {"control",
     "a\001b\177c\013d\302\205e\341\240\216f",
     {64, 189, 65, 221, 66, 199, 67, 126, 227, 68, 157, 254, 236, 69},
     {5925, 3207, 2546}},
    {"greek",
     "\316\237\316\224\316\237\316\243 \341\276\202",
     {138, 253, 138, 242, 138, 253, 138, 96, 28053, 122, 224},
     {1169, 29722, 29730, 29733, 1155}},
    {"hangul",
     "\355\225\234\352\265\255\354\226\264",
     {47991, 250, 166, 113, 255, 168, 244, 112},
     {1469, 30006, 30021, 29991, 30014, 30020, 29999, 30008}},
    {"special",
     "[CLS] <|endoftext|> [MASK]",
     {58, 5097, 50, 60, 220, 50256, 685, 31180, 42, 60},
     {101, 1026, 1064, 2203, 15794, 10288, 2102, 1064, 1028, 103}},
};

TEST_F(RealVocabularies, AgreeWithAnotherProgramOnTrickyText) {
  const Tokenizer gpt2 = load("tokenizers/gpt2");
  const Tokenizer bert = load("tokenizers/bert-base-uncased");
  for (const Tricky& example : tricky) {
    EXPECT_EQ(ids_of(gpt2.encode(example.text)), example.gpt2) << example.name;
    EXPECT_EQ(ids_of(bert.encode(example.text)), example.bert) << example.name;
  }
}

}  // namespace real_vocabularies_test
}  // namespace lipscope
