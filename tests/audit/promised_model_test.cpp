// The commands on models with position heads and other joins: what they answer,
// and what they refuse by name.

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/audit/bound.h"
#include "lipscope/audit/certify.h"
#include "lipscope/audit/invert.h"
#include "lipscope/audit/meanfield.h"
#include "lipscope/audit/measure.h"
#include "lipscope/audit/recover.h"
#include "lipscope/audit/search.h"
#include "lipscope/core/errors.h"
#include "lipscope/model/stack.h"
#include "lipscope/theory/stack_constant.h"
#include "tests/support/promised_folder.h"

namespace lipscope::audit {
namespace promised_model_test {

using test::message_of;
using test::says;

LanguageModelConfig config_of(Mixer mixer, Join join) {
  return {.mixer = mixer,
          .characters = 5,
          .layers = 2,
          .width = 8,
          .heads = 4,
          .context = 6,
          .position_heads = mixer == Mixer::position ? 4 : 2,
          .heads_apart = true,
          .positions = Positions::none,
          .hidden = 6,
          .activation = Activation::max_min,
          .norm = NormPlace::none,
          .join = join,
          .join_share = join == Join::convex ? 0.25 : 1.0,
          .head_bias = true};
}

class PromisedModel : public testing::Test {
 protected:
  void write(Mixer mixer, Join join) {
    const LanguageModelConfig c = config_of(mixer, join);
    test::write_promised(folder.path(), c, test::promised_tensors(c, 1));
    source.model = folder.path();
    source.lengths = "5";
  }
  std::string refusal_of_bound(const SelectionOptions& selection) {
    return message_of<InputError>([&] {
      Records records;
      bound({.source = source, .selection = selection}, records);
    });
  }

  const test::TemporaryFolder folder;
  SourceOptions source;
};

TEST_F(PromisedModel, IsMeasuredBelowWhatItIsBoundedBy) {
  for (const Mixer mixer : {Mixer::position, Mixer::dot, Mixer::l2})
    for (const Join join : {Join::add, Join::convex, Join::none})
      for (const Norm norm : {Norm::two, Norm::token}) {
        write(mixer, join);
        source.radius = Radius::number(3.0);
        Records bounded, measured;
        bound({.source = source, .selection = {.map = "model", .norm = norm}},
              bounded);
        ASSERT_EQ(bounded.rows().size(), 1u);
        const auto& row = bounded.rows()[0];
        EXPECT_EQ(row["upper_by"], "stack_constant");
        Stack stack = load_stack(load_model(folder.path()));
        stack.context = 5;
        const StackConstant exact =
            stack_constant(stack, {.norm = norm, .radius = 3.0});
        EXPECT_EQ(row["upper"].get<double>(), exact.hidden->value());
        EXPECT_EQ(row["details"]["parts"].size(), exact.parts.size());
        source.radius.reset();
        source.token_ids = {3, 1, 4, 1, 0};
        measure({.source = source, .selection = {.map = "model", .norm = norm}},
                measured);
        source.token_ids.clear();
        ASSERT_EQ(measured.rows().size(), 1u);
        EXPECT_GT(measured.rows()[0]["lower"].get<double>(), 0.0);
        // its tokens are shorter than 3
        EXPECT_LE(measured.rows()[0]["lower"].get<double>(),
                  row["upper"].get<double>())
            << name_of(mixer) << ", " << name_of(join) << ", " << name_of(norm);
      }
}

TEST_F(PromisedModel, IsBoundedEverywhereWhereItsPartsAre) {
  write(Mixer::position, Join::convex);
  Records records;
  bound({.source = source, .selection = {.map = "model", .norm = Norm::token}},
        records);
  EXPECT_EQ(records.rows()[0]["scope"], "everywhere");
  EXPECT_EQ(records.rows()[0]["kind"], "position");
  write(Mixer::dot, Join::convex);
  EXPECT_TRUE(says(refusal_of_bound({.map = "model", .norm = Norm::token}),
                   {"layer 0, attention", "--radius"}));
}

TEST_F(PromisedModel, HasNoBoundOfALayerAndSaysSo) {
  write(Mixer::dot, Join::convex);
  source.radius = Radius::number(3.0);
  for (const char* map : {"core", "attn", "residual", "block"})
    EXPECT_TRUE(says(refusal_of_bound({.map = map}),
                     {"--map", map, "position heads", "--map model"}));
  EXPECT_TRUE(says(refusal_of_bound({.map = "model", .norm = Norm::inf}),
                   {"--norm inf"}));
  source.radius = Radius::norm_layer();
  EXPECT_TRUE(says(refusal_of_bound({.map = "model"}), {"--radius ln"}));
}

TEST_F(PromisedModel, IsMeasuredByEveryMap) {
  write(Mixer::dot, Join::convex);
  source.token_ids = {3, 1, 4, 1, 0};
  for (const char* map : {"core", "attn", "residual", "block", "model"}) {
    Records records;
    EXPECT_TRUE(measure({.source = source, .selection = {.map = map}}, records)
                    .converged)
        << map;
    for (const auto& row : records.rows())
      if (row.contains("upper") && row["upper"].is_number()) {
        EXPECT_LE(row["lower"].get<double>(), row["upper"].get<double>())
            << map;
      }
  }
}

TEST_F(PromisedModel, RefusesWhatIsNotDoneByName) {
  write(Mixer::dot, Join::convex);
  Records records;
  const auto refused = [&](auto&& call) {
    return message_of<InputError>(call);
  };
  SourceOptions given = source;
  given.token_ids = {3, 1, 4, 1, 0};
  const auto measured = [&](const SelectionOptions& selection,
                            const std::string& kind,
                            const std::string& certificate) {
    MeasureRequest r{
        .source = given, .selection = selection, .certificate = certificate};
    r.source.kind = kind;
    return refused([&] { measure(r, records); });
  };
  EXPECT_TRUE(says(measured({.heads = "0"}, "auto", "auto"),
                   {"--heads 0", "position heads"}));
  EXPECT_TRUE(says(measured({.mask = "none"}, "auto", "auto"),
                   {"--mask", "position heads"}));
  EXPECT_TRUE(says(measured({.padding = "0:1"}, "auto", "auto"),
                   {"--padding", "position heads"}));
  EXPECT_TRUE(
      says(measured({}, "l2", "auto"), {"--kind l2", "position heads"}));
  EXPECT_TRUE(says(measured({}, "auto", "split"),
                   {"--certificate split", "position heads"}));
  given.token_ids.clear();
  given.radius = Radius::number(1.0);
  EXPECT_TRUE(says(refused([&] { search({.source = given}, records); }),
                   {"position heads"}));
  EXPECT_TRUE(says(refused([&] { invert({.source = given}, records); }),
                   {"position heads"}));
  EXPECT_TRUE(says(refused([&] { meanfield({.source = given}, records); }),
                   {"position heads"}));
  EXPECT_TRUE(says(refused([&] {
                     given.radius.reset();
                     given.token_ids = {3, 1, 4};
                     recover({.source = given}, records);
                   }),
                   {"0.75 x + 0.25 f(x)"}));
}

}  // namespace promised_model_test
}  // namespace lipscope::audit
