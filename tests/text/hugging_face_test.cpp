// Against Hugging Face's `tokenizers`: the same ids for every text.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "lipscope/text/tokenizer.h"
#include "lipscope/text/tokenizer_json.h"
#include "lipscope/text/words.h"
#include "tests/text/vocabularies.h"

namespace lipscope {
namespace hugging_face_test {

using nlohmann::json;

// How many texts of a case have the same ids, and how many are refused.
struct Counts {
  int agreeing = 0, refused = 0;
  std::string refusal;  // the first
};

// Of texts, {"text": ..., "ids": ...} each, those that have these ids and come
// back from the words of their tokens. A text is refused where `tokenizers`
// leaves out a character that the vocabulary has no piece for.
Counts count_agreeing(const std::string& name, const Tokenizer& tokenizer,
                      const json& texts) {
  Counts counts;
  int shown = 0;
  for (const json& row : texts) {
    const std::string text = row["text"];
    std::vector<Token> tokens;
    try {
      tokens = tokenizer.encode(text);
    } catch (const InputError& wrong) {
      if (++counts.refused == 1) counts.refusal = wrong.what();
      continue;
    }
    std::string rebuilt;
    for (const std::string& word : words_of(text, tokens)) rebuilt += word;
    const json ids = ids_of(tokens);
    const bool agrees =
        ids == row["ids"] && (tokens.empty() || rebuilt == text);
    counts.agreeing += agrees ? 1 : 0;
    if (!agrees && ++shown <= 3)
      ADD_FAILURE() << name << ": " << row["text"].dump(-1, ' ', true)
                    << "\n  here  " << ids << "\n  there " << row["ids"];
  }
  return counts;
}

// golden/tokenizer_cases.py trains small tokenizers of each style
TEST(HuggingFace, HasTheSameIdsForSmallTokenizersOfEveryStyle) {
  const json made = json::parse(
      test::read_file(LIPSCOPE_SOURCE "/tests/text/golden/tokenizers.json"));
  EXPECT_GE(made["cases"].size(), 10u);
  for (const json& c : made["cases"]) {
    const std::string name = c["name"];
    const Tokenizer t = parse_tokenizer_json(name, c["tokenizer"].dump());
    EXPECT_EQ(count_agreeing(name, t, c["texts"]).agreeing,
              static_cast<int>(c["texts"].size()));
  }
}

// python/tests/test_torch_tokenizers.py writes a folder of cases, with many
// more texts and for real tokenizers where they are there
TEST(HuggingFace, HasTheSameIdsInTheCasesOfAFolder) {
  const char* folder = std::getenv("LIPSCOPE_TOKENIZER_CASES");
  if (folder == nullptr) GTEST_SKIP() << "no LIPSCOPE_TOKENIZER_CASES";
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  ASSERT_FALSE(files.empty());
  for (const std::filesystem::path& file : files) {
    const json c = json::parse(test::read_file(file));
    const std::string name = c["name"];
    try {
      const Tokenizer t = load_tokenizer(c["folder"].get<std::string>());
      const Counts counts = count_agreeing(name, t, c["texts"]);
      EXPECT_EQ(counts.agreeing, static_cast<int>(c["texts"].size()))
          << name << ": " << counts.refusal;
      std::cout << fmt::format("{}: {} of {} texts\n", name, counts.agreeing,
                               c["texts"].size());
      if (counts.refused > 0)
        std::cout << fmt::format("{}: {} texts are refused: {}\n", name,
                                 counts.refused, counts.refusal);
    } catch (const InputError& wrong) {
      ADD_FAILURE() << name << " is refused: " << wrong.what();
    }
  }
}

}  // namespace hugging_face_test
}  // namespace lipscope
