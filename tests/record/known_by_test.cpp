#include "lipscope/record/known_by.h"

#include <gtest/gtest.h>

#include <set>

#include "lipscope/record/record.h"

namespace lipscope {
namespace known_by_test {

TEST(KnownBy, NamesMethodsBoundsAndTheInput) {
  EXPECT_TRUE(KnownBy().empty());
  EXPECT_EQ(KnownBy(NormMethod::golub_kahan_f32).name(), "golub-kahan-f32");
  EXPECT_EQ(KnownBy(Procedure::a_posteriori).name(), "a-posteriori");
  Bound b;
  b.name = "column_sums";
  EXPECT_EQ(KnownBy(b).name(), "column_sums");
  EXPECT_EQ(KnownBy::deviation("l2_kernel").name(), "deviation(l2_kernel)");
  EXPECT_EQ(KnownBy(NormMethod::row_sweep).at("growth + ascent").name(),
            "growth + ascent, row-sweep");
}

TEST(KnownBy, IsNullInARecordWhereNothingIsKnown) {
  Record r;
  EXPECT_TRUE(to_json(r)["lower_by"].is_null());
  EXPECT_TRUE(to_json(r)["upper_by"].is_null());
  r.lower_by = NormMethod::dense_gram;
  EXPECT_EQ(to_json(r)["lower_by"], "dense-gram");
}

TEST(Scope, HasANameOfItsOwnForEachSetOfInputs) {
  std::set<std::string> names;
  for (const Scope s :
       {Scope::input, Scope::ball, Scope::norm_layer, Scope::everywhere,
        Scope::multiples, Scope::batch, Scope::batches, Scope::validation_text,
        Scope::test_text})
    EXPECT_TRUE(names.insert(name_of(s)).second) << name_of(s);
  EXPECT_EQ(scope_of(InputSet::one()), Scope::input);
  EXPECT_EQ(scope_of(InputSet::ball(2.0)), Scope::ball);
  EXPECT_EQ(scope_of(InputSet::after_norm_layer(2.0)), Scope::ball);
  EXPECT_EQ(scope_of(InputSet::everywhere()), Scope::everywhere);
}

TEST(InputSet, SaysItsRadius) {
  EXPECT_EQ(name_of(InputSet::one()), "at this input");
  EXPECT_EQ(name_of(InputSet::ball(2.0)), "ball of radius 2");
  EXPECT_EQ(name_of(InputSet::after_norm_layer(1.23456789)),
            "ball of radius 1.23457, after the norm layer");
  EXPECT_FALSE(InputSet::ball(1.0) == InputSet::ball(2.0));
  EXPECT_FALSE(InputSet::ball(1.0) == InputSet::after_norm_layer(1.0));
}

}  // namespace known_by_test
}  // namespace lipscope
