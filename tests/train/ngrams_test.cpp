#include "lipscope/train/ngrams.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "lipscope/core/rng.h"

namespace lipscope {
namespace ngrams_test {

// abab, of 3 characters: a and b twice each; after a two b, after b one a
TEST(NGrams, ProbabilitiesAreWorkedByHand) {
  const NGrams counted(std::vector<int>{0, 1, 0, 1}, 3, 2);
  // 1-grams: N = 4, T = 2, (count + 2/3)/6
  const double a1 = (2 + 2.0 / 3) / 6, b1 = a1, c1 = (2.0 / 3) / 6;
  // 2-grams after a: N = 2, T = 1, (count + p1)/3; after b: N = 1, T = 1
  const double b_after_a = (2 + b1) / 3, c_after_b = c1 / 2;
  const std::vector<int> text = {0, 1, 2, 0};  // c is followed by nothing
  const std::vector<TextScore> scores = counted.scores(text);
  ASSERT_EQ(scores.size(), 2u);
  EXPECT_NEAR(scores[0].nll, -(std::log(b1) + std::log(c1) + std::log(a1)) / 3,
              1e-15);
  EXPECT_NEAR(scores[1].nll,
              -(std::log(b_after_a) + std::log(c_after_b) + std::log(a1)) / 3,
              1e-15);
  // 1-grams say a, the first of equals; 2-grams b after a and a after b
  EXPECT_NEAR(scores[0].accuracy, 1.0 / 3, 1e-15);
  EXPECT_NEAR(scores[1].accuracy, 2.0 / 3, 1e-15);
}

std::vector<int> letters(Index size, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<int> text;
  for (Index i = 0; i < size; ++i)
    text.push_back(text.size() > 2 && rng.uniform() < 0.6
                       ? (text[text.size() - 1] + text[text.size() - 2]) % 5
                       : static_cast<int>(rng.next() % 5));
  return text;
}

TEST(NGrams, LogitsAreLogarithmsOfProbabilitiesThatSumToOne) {
  const NGrams counted(letters(400, 1), 5, 4);
  const std::vector<int> text = letters(60, 2);
  const std::vector<TextScore> scores = counted.scores(text);
  for (Index n = 1; n <= 4; ++n) {
    const NextToken next = counted.next(n);
    const auto& logits = next(text, {.length = 60});
    for (Index i = 0; i < 60; ++i)
      EXPECT_NEAR(logits.row(i).array().exp().sum(), 1.0, 1e-6);
    const TextScore same = score_of(next, text, 60, 1);
    EXPECT_NEAR(same.nll, scores[n - 1].nll, 1e-6) << n;
    EXPECT_EQ(same.accuracy, scores[n - 1].accuracy) << n;
  }
  EXPECT_LT(scores[2].nll, scores[0].nll);
}

// tests/train/golden/ngrams.py computes the same with dictionaries
TEST(NGrams, AreWhatAnIndependentProgramComputes) {
  std::ifstream file(LIPSCOPE_SOURCE "/tests/train/golden/ngrams.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  const std::vector<int> text = golden["text"], judged = golden["judged"];
  const NGrams counted(text, golden["characters"], golden["nll"].size());
  const std::vector<TextScore> scores = counted.scores(judged);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    EXPECT_NEAR(scores[i].nll, golden["nll"][i].get<double>(), 1e-12) << i + 1;
    EXPECT_NEAR(scores[i].accuracy, golden["accuracy"][i].get<double>(), 1e-12)
        << i + 1;
  }
}

TEST(NGrams, RefuseCharactersThatAreNotThere) {
  EXPECT_THROW(NGrams(std::vector<int>{0, 3}, 3, 2), std::invalid_argument);
  EXPECT_THROW(NGrams(std::vector<int>{0, 1}, 3, 0), std::invalid_argument);
  EXPECT_THROW(NGrams(std::vector<int>{0, 1}, 3, 2).next(3),
               std::invalid_argument);
}

}  // namespace ngrams_test
}  // namespace lipscope
