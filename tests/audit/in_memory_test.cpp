// Layers and tokens that are in memory, in place of files.

#include <gtest/gtest.h>

#include "lipscope/audit/invert.h"
#include "lipscope/audit/measure.h"
#include "lipscope/audit/search.h"
#include "lipscope/audit/subject.h"
#include "lipscope/core/errors.h"
#include "lipscope/record/key.h"

namespace lipscope::audit {
namespace in_memory_test {

const std::string recipe = "d=12,heads=3,scale=0.4";

SourceOptions made_up(const std::string& kind = "auto") {
  SourceOptions source;
  source.random = recipe;
  source.kind = kind;
  return source;
}

// the same weights, from memory
SourceOptions in_memory(const std::string& kind = "auto") {
  SourceOptions source;
  source.layer = load_subject(made_up(kind)).layer;
  source.kind = kind;
  return source;
}

TEST(LayerInMemory, IsMeasuredAsThatOfARecipe) {
  MeasureRequest by_recipe, by_memory;
  by_recipe.source = made_up();
  by_memory.source = in_memory();
  std::vector<Witness> seen;
  by_recipe.witness = [&](Witness w) { seen.push_back(std::move(w)); };
  by_recipe.source.lengths = "5,7";
  Records first, second;
  measure(by_recipe, first);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[1].row, 1u);
  EXPECT_EQ(seen[1].direction.rows(), 7);

  by_memory.source.tokens = std::make_shared<const Matrix>(seen[1].input);
  measure(by_memory, second);
  const auto &a = first.rows()[1], &b = second.rows()[0];
  EXPECT_EQ(a["lower"], b["lower"]);
  EXPECT_EQ(a["upper"], b["upper"]);
  EXPECT_EQ(b["model"], "in memory");
  EXPECT_EQ(b["input"]["from"], "memory");
  EXPECT_NE(key_of(b).find(b["model_sha256"].get<std::string>()),
            std::string::npos);
}

TEST(LayerInMemory, HasTheHashOfItsContent) {
  const Subject same = load_subject(in_memory()),
                again = load_subject(in_memory());
  EXPECT_EQ(same.sha256, again.sha256);
  LoneLayer changed = *same.layer;
  changed.weights.value(0, 0) += 1e-12;
  SourceOptions source;
  source.layer = std::make_shared<const LoneLayer>(changed);
  EXPECT_NE(load_subject(source).sha256, same.sha256);
}

TEST(LayerInMemory, IsNotOneOfTwoSources) {
  SourceOptions two = in_memory();
  two.random = recipe;
  EXPECT_THROW(load_subject(two), InputError);
  MeasureRequest nowhere;
  nowhere.source = in_memory();
  Records records;
  EXPECT_THROW(measure(nowhere, records), InputError);  // at which tokens?
}

TEST(SearchRequest, ShowsTheTokensOfTheBest) {
  SearchRequest request;
  request.source = in_memory();
  request.source.lengths = "3";
  request.source.radius = Radius::number(1.0);
  request.search.restarts = 0;
  std::vector<Witness> seen;
  request.witness = [&](Witness w) { seen.push_back(std::move(w)); };
  Records records;
  search(request, records);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(records.rows()[seen[0].row]["parameters"]["of"], "best");
  EXPECT_LE(seen[0].input.rowwise().norm().maxCoeff(), 1 + 1e-9);
}

TEST(InvertRequest, TakesYFromMemoryAndShowsX) {
  InvertRequest request;
  request.source = in_memory("l2");
  request.source.kind = "contractive-l2";
  const Matrix y = Matrix::Ones(4, 12);
  request.source.tokens = std::make_shared<const Matrix>(y);
  Matrix x;
  request.witness = [&](Witness w) { x = std::move(w.input); };
  Records records;
  EXPECT_TRUE(invert(request, records).converged);
  EXPECT_EQ(records.rows()[0]["parameters"]["given"], "Y");
  EXPECT_EQ(x.rows(), 4);
}

}  // namespace in_memory_test
}  // namespace lipscope::audit
