// Bounds under windows and padding: worked by hand, attained where they can be,
// never below what is measured; and the forms of plain masks, which are false
// there.

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/attention/softmax.h"
#include "lipscope/search/ascent.h"
#include "lipscope/search/objective.h"
#include "lipscope/theory/attention_constants.h"
#include "lipscope/theory/column_sums.h"
#include "lipscope/theory/kim21.h"
#include "lipscope/theory/l2_kernel.h"
#include "lipscope/theory/regime.h"
#include "lipscope/theory/unbounded.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace masked_bounds_test {

using test::bound_value;
using test::expect_close;
using test::find;
using test::norm2;
using test::one_by_one;
using test::tied;

TEST(MaskedBounds, OfDotProductsWorkedByHand) {
  // A = 6, V = 5, R = ½: a = 1.5, s = 1.5; six tokens
  const AttentionWeights w = one_by_one(2, 3, 5);
  const double e = std::exp(-3.0);
  const auto expect = [&](const Mask& mask, double column) {
    const BoundSetting q{.mask = mask, .n = 6, .radius = 0.5};
    expect_close(bound_value(w, q, "column_sums_masked"),
                 5 * (1.5 + 2.5 * std::sqrt(column)));
    expect_close(bound_value(w, q, "row_sums"), 5 * (1 + 1.5 + 1.5));
    expect_close(bound_value(w, q, "castin24_ball"),
                 std::sqrt(3 * 25 * (2.25 * 25 + 6.0)));
  };
  // they see 2, 3, 3, 3, 3 and 2; the second is seen by the first three
  expect({.window = 2}, 1 / (1 + e) + 2 / (1 + 2 * e));
  // 1, 2, 2, …; the first by itself and the second
  expect({.hides_later = true, .window = 2}, 1 + 1 / (1 + e));
  // all see three
  expect({.padding_before = 1, .padding_after = 2}, 6 / (1 + 2 * e));
  // 1, 2, 3, 4, 4, 4, the first four by the integral
  expect({.hides_later = true, .padding_after = 2},
         1 + std::log1p(3 * e) / e + 2 / (1 + 3 * e));
  // 1, 2, 3, 3, 2, 1; the second is seen by the first three
  expect({.window = 2, .padding_before = 1, .padding_after = 1},
         1 + 1 / (1 + e) + 1 / (1 + 2 * e));
}

// logits s for one token and −s for all others: its column is as large as any
double column_reached(double s, Index n, const Mask& mask) {
  double most = 0.0;
  for (Index j = 0; j < n; ++j) {
    Matrix scores = Matrix::Constant(n, n, -s);
    scores.col(j).setConstant(s);
    most = std::max(most, softmax_rows(std::move(scores), mask).col(j).sum());
  }
  return most;
}

TEST(MaskedBounds, ColumnSumsAreAttained) {
  for (const double s : {0.0, 0.2, 1.0, 4.0, 30.0})
    for (const Index n : {2, 3, 7, 40}) {
      Rng dice(static_cast<std::uint64_t>(n));
      for (int tried = 0; tried < 10; ++tried) {
        const Mask mask = test::draw_mask(Kind::dot, n, dice);
        const double above = largest_column_sum(s, n, mask).value();
        const double reached = column_reached(s, n, mask);
        EXPECT_GE(above, reached * (1 - 1e-14))
            << name_of(mask) << ", n = " << n << ", s = " << s;
        // (the integral of a causal mask without a window is not a sum)
        if (mask.hides_later && !at_length(mask, n).window) continue;
        EXPECT_LE(above, reached * (1 + 1e-10))
            << name_of(mask) << ", n = " << n << ", s = " << s;
      }
    }
}

TEST(MaskedBounds, OfALongSequenceAreThoseOfItsEndsAndItsMiddle) {
  for (const bool later : {false, true})
    for (const Index window : {1, 2, 5})
      for (const Index padding : {Index{0}, window - 1}) {
        const Mask mask{.hides_later = later,
                        .window = window,
                        .padding_before = later ? 0 : padding,
                        .padding_after = padding / 2};
        const double s = 0.4, reached = column_reached(s, 120, mask);
        expect_close(largest_column_sum(s, 120, mask).value(), reached);
        expect_close(largest_column_sum(s, 1000000000, mask).value(), reached);
      }
}

TEST(MaskedBounds, OfAWindowThatHidesNothingAreThoseOfThePlainMask) {
  const AttentionWeights w = one_by_one(2, 3, 5);
  for (const Mask& plain : {Mask::none, Mask::causal}) {
    Mask wide = plain;
    wide.window = 6;
    const auto all = bounds(w, {.mask = plain, .n = 6, .radius = 0.5});
    const auto same = bounds(w, {.mask = wide, .n = 6, .radius = 0.5});
    ASSERT_EQ(all.size(), same.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].name, same[i].name);
      EXPECT_EQ(all[i].value, same[i].value);
    }
  }
}

TEST(FalseForms, OfPlainMasksUnderWindowsAndPadding) {
  // no scores: P is uniform over what is seen, and J = P
  const AttentionWeights w = one_by_one(0, 1, 1);
  const Matrix x = Matrix::Ones(6, 1);
  const auto reached = [&](const Mask& mask) {
    return norm2(dense_jacobian(w, {.mask = mask}, x));
  };
  const auto plain = [&](const Mask& mask, const std::string& name) {
    return bound_value(w, {.mask = mask, .n = 6, .radius = 1}, name);
  };
  // without a mask every column sums to one: what early tokens of a window are
  // seen by, having few to look at, is more
  const Mask causal_window{.hides_later = true, .window = 2};
  EXPECT_GT(reached(causal_window), 1.03 * plain(Mask::none, "column_sums"));
  EXPECT_GT(reached({.window = 2}), 1.005 * plain(Mask::none, "column_sums"));
  // five tokens of padding look at one: √6, above the unmasked form and both
  // arms of the causal one
  const Mask padded{.hides_later = true, .padding_after = 5};
  EXPECT_NEAR(reached(padded), std::sqrt(6.0), 1e-12);
  EXPECT_GT(reached(padded), 2.4 * plain(Mask::none, "column_sums"));
  EXPECT_GT(reached(padded), 1.2 * plain(Mask::causal, "column_sums_causal"));
  EXPECT_GT(reached(padded), 1.2 * plain(Mask::causal, "hardy_meanfield"));
  // attained
  expect_close(plain(padded, "column_sums_masked"), std::sqrt(6.0));
}

TEST(MaskedBounds, HaveNoFormOverMeasures) {
  const AttentionWeights w = one_by_one(2, 3, 5);
  for (const Mask& mask :
       {Mask{.window = 2}, Mask{.hides_later = true, .window = 2},
        Mask{.padding_after = 1}}) {
    const auto all = bounds(w, {.mask = mask, .n = 6, .radius = 0.5});
    EXPECT_EQ(all.size(), 3u);
    for (const Bound& b : all) {
      EXPECT_NE(b.norm, Norm::w2) << b.name;
      EXPECT_EQ(b.mask, "any") << b.name;
    }
    const auto twice = bounds(w, {.mask = mask, .n = 12, .radius = 0.5});
    EXPECT_NE(regime_of(all, twice).name, "mean-field");
  }
  EXPECT_THROW(bounds(w, {.mask = {.padding_after = 6}, .n = 6, .radius = 0.5}),
               std::invalid_argument);
}

// with one feature: |W_Q| = |W_V| = k = 1
TEST(MaskedBounds, OfL2UnderAWindowWorkedByHand) {
  const AttentionWeights w = tied(1, 1);
  const BoundSetting q{.kind = Kind::l2, .mask = {.window = 2}, .n = 9};
  const double p = kim21_phi_inverse(3);  // three tokens see and are seen
  expect_close(bound_value(w, q, "kim21_inf"), 4 * p + 1);
  expect_close(bound_value(w, q, "kim21_two"), std::sqrt(3.0) * (4 * p + 1));
  expect_close(bound_value(w, q, "l2_diagonal_apart"),
               2 * p + (1 + 2 * p) * std::sqrt(3.0));
  expect_close(bound_value(w, q, "l2_row_sums"), 4 * p + 1);
  // a column is at most (3 + 1)/2 < √6; of the two others each has at most
  // 0.2784647, as their mean may be ½
  EXPECT_NEAR(bound_value(w, q, "l2_kernel"),
              2 * p + std::sqrt(2.0) + 2 * std::sqrt(p * 2 * 0.2784647), 1e-6);
  // causal: two; a column 3/2 < 2
  const BoundSetting causal{
      .kind = Kind::l2, .mask = {.hides_later = true, .window = 2}, .n = 9};
  const double p2 = kim21_phi_inverse(2);
  expect_close(bound_value(w, causal, "kim21_inf"), 4 * p2 + 1);
  EXPECT_NEAR(bound_value(w, causal, "l2_kernel"),
              2 * p2 + std::sqrt(1.5) + 2 * std::sqrt(p2 * 0.2784647), 1e-6);
  // 101 that see one, at the root: √202; the mean over 100 others √200/100
  const double p101 = kim21_phi_inverse(101), t = std::sqrt(2.0) / 10;
  expect_close(l2_kernel_by_columns(5000, {.window = 51}).value(),
               std::pow(202, 0.25) +
                   2 * std::sqrt(p101 * 100 * t * std::log(1 / t - 1)));
}

TEST(FalseForms, L2WithThePOfFewerTokensThanAreSeen) {
  // the token in the middle sees 0 and ±√(p+1), one on each side [Kim21]
  const double p = kim21_phi_inverse(3), far = std::sqrt(p + 1);
  Matrix x(5, 1);
  x << 50, far, 0, -far, -50;
  const Matrix J =
      dense_jacobian(tied(1, 1), {.kind = Kind::l2, .mask = {.window = 2}}, x);
  const double reached = J.row(2).cwiseAbs().sum();
  EXPECT_NEAR(reached, 4 * p - 1 + 2 / (p + 1), 1e-6);
  EXPECT_GT(reached, 4 * kim21_phi_inverse(2) + 1);
  EXPECT_LT(reached, 4 * p + 1);
}

TEST(MaskedBounds, ColumnsOfL2WeightsAreAsTheKernelHasThem) {
  double closest = 0.0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Rng dice(seed);
    const Index n = 2 + static_cast<Index>(dice.uniform() * 20);
    const Mask mask = test::draw_mask(Kind::l2, n, dice);
    const Matrix y = std::exp(dice.normal()) *
                     gaussian(n, 1 + static_cast<Index>(seed % 4), Rng(seed));
    Matrix scores(n, n);
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j)
        scores(i, j) = -(y.row(i) - y.row(j)).squaredNorm();
    const Matrix P = softmax_rows(std::move(scores), mask);
    const double m = static_cast<double>(most_seeing(mask, n));
    const double above = std::min(std::sqrt(2 * m), (m + 1) / 2);
    const double reached = P.colwise().sum().maxCoeff();
    EXPECT_LE(reached, above * (1 + 1e-14)) << name_of(mask) << " n " << n;
    closest = std::max(closest, reached / above);
  }
  EXPECT_GT(closest, 0.9);
  // causal, window 2, two equal tokens: 1 + ½, above √2
  const Matrix P = softmax_rows<double>(Matrix::Zero(3, 3),
                                        {.hides_later = true, .window = 2});
  EXPECT_NEAR(P.col(0).sum(), 1.5, 1e-14);
}

TEST(MaskedBounds, AreNotThereForL2WithPadding) {
  const AttentionWeights w = tied(1, 1);
  for (const Mask& mask : {Mask{.padding_before = 1}, Mask{.padding_after = 2},
                           Mask{.hides_later = true, .padding_after = 2},
                           Mask{.window = 4, .padding_before = 1}}) {
    EXPECT_TRUE(bounds(w, {.kind = Kind::l2, .mask = mask, .n = 6}).empty());
    EXPECT_EQ(why_no_bounds(Kind::l2, mask),
              "l2 attention is not Lipschitz under the mask \"" +
                  name_of(mask) +
                  "\": padding does not see itself, and nothing holds it near "
                  "what it sees");
    EXPECT_EQ(AttentionConstants(w, Kind::l2, mask).name(), "");
    EXPECT_FALSE(AttentionConstants(w, Kind::l2, mask).over(6, 1.0));
    EXPECT_TRUE(unbounded(Kind::l2, mask));
    EXPECT_FALSE(unbounded(Kind::cosine, mask));
    EXPECT_EQ(why_no_bounds(Kind::dot, mask), "");
    // it grows as t² indeed
    const auto norm_at = [&](double t) {
      return norm2(dense_jacobian(w, {.kind = Kind::l2, .mask = mask},
                                  padded_l2_witness(head(w, 0), mask, 6, t)));
    };
    EXPECT_GT(norm_at(3000), 90 * norm_at(300)) << name_of(mask);
    EXPECT_GT(norm_at(3000), 9e6 / 2) << name_of(mask);
  }
  EXPECT_EQ(why_no_bounds(Kind::l2, {.window = 3}), "");
  EXPECT_FALSE(unbounded(Kind::l2, {.window = 3}));
  EXPECT_EQ(why_no_bounds(Kind::l2_untied, Mask::none),
            "nothing is proved of l2-untied attention");
  EXPECT_THROW(padded_l2_witness(head(w, 0), {.window = 3}, 6, 1.0),
               std::invalid_argument);
  EXPECT_THROW(padded_l2_witness(head(w, 0), {.padding_after = 5}, 6, 1.0),
               std::invalid_argument);
}

TEST(UnboundedWitness, GrowsUnderAMaskWhereItSaysSo) {
  const AttentionWeights w = one_by_one(1, -1, 1);
  for (const Kind kind : {Kind::dot, Kind::l2_untied})
    for (const Mask& mask :
         {Mask{.window = 1}, Mask{.window = 2}, Mask{.window = 3},
          Mask{.hides_later = true, .window = 3}, Mask{.padding_after = 2},
          Mask{.padding_before = 4}, Mask{.padding_before = 5}}) {
      const auto norm_at = [&](double t) {
        return norm2(dense_jacobian(w, {.kind = kind, .mask = mask},
                                    unbounded_witness(head(w, 0), kind, 6, t)));
      };
      EXPECT_EQ(norm_at(3000) > 60 * norm_at(300), witness_grows(kind, mask, 6))
          << name_of(kind) << ", " << name_of(mask);
    }
}

TEST(MaskedBounds, OfSigmoidsWorkedByHand) {
  // A = 6, V = 5, R = ½: logits to 1.5 < ln 6
  const auto sigma = [](double t) { return 1 / (1 + std::exp(-t)); };
  const AttentionWeights w = one_by_one(2, 3, 5);
  const double s = sigma(1.5 - std::log(6.0));
  const BoundSetting q{
      .kind = Kind::sigmoid, .mask = {.window = 2}, .n = 6, .radius = 0.5};
  EXPECT_NEAR(bound_value(w, q, "ramapuram24_ball"),
              3 * 5 * (s + 2 * 1.5 * s * (1 - s)), 1e-9);
  // padding is seen by none and sees: six rows
  BoundSetting padded = q;
  padded.mask = {.padding_after = 4};
  EXPECT_NEAR(bound_value(w, padded, "ramapuram24_ball"),
              6 * 5 * (s + 2 * 1.5 * s * (1 - s)), 1e-9);
  // no scores: σ(−ln 6) = 1/7 in a band of ones, of norm 1 + 2cos(π/7); two
  // tokens in place of three would be too few
  const AttentionWeights flat = one_by_one(0, 1, 1);
  const double reached =
      norm2(dense_jacobian(flat, {.kind = Kind::sigmoid, .mask = {.window = 2}},
                           Matrix::Ones(6, 1)));
  EXPECT_NEAR(reached, (1 + 2 * std::cos(M_PI / 7)) / 7, 1e-12);
  EXPECT_GT(reached, 2.0 / 7);
  EXPECT_LT(reached, bound_value(flat, q, "ramapuram24_ball"));
}

TEST(MaskedBounds, OfCosinesAreAttainedWhereAllLookAtOne) {
  // no queries, tokens near 0: values have the slope ε^{-1/2} = 2, P is 1e_1ᵀ
  const AttentionWeights w = one_by_one(0, 1, 1);
  const CosineScales scales{.tau = 2.0, .nu = 3.0, .epsilon = 0.25};
  const Mask mask{.hides_later = true, .padding_after = 5};
  AttentionOptions options{.kind = Kind::cosine, .mask = mask};
  options.cosine = scales;
  const double reached =
      norm2(dense_jacobian(w, options, Matrix::Constant(6, 1, 1e-6)));
  EXPECT_NEAR(reached, 3 * 2 * std::sqrt(6.0), 1e-6);
  BoundSetting q{.kind = Kind::cosine, .mask = mask, .n = 6, .cosine = scales};
  // √6 (τ + 1)
  expect_close(bound_value(w, q, "cosine_column_sums"),
               3 * 2 * std::sqrt(6.0) * (2 + 1));
  q.cosine.tau = options.cosine.tau = 1e-9;
  const double above = bound_value(w, q, "cosine_column_sums");
  EXPECT_LE(norm2(dense_jacobian(w, options, Matrix::Constant(6, 1, 1e-6))),
            above);
  EXPECT_GT(reached, 0.999 * above);
  // the unmasked form is false: all columns would sum to one
  q.mask = Mask::none;
  EXPECT_GT(reached, 2.4 * bound_value(w, q, "cosine_column_sums"));
}

class MaskedKind : public testing::TestWithParam<Kind> {};

TEST_P(MaskedKind, IsNeverAboveItsBounds) {
  const KindBounds& proved = kind_bounds(GetParam());
  double closest = 0.0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    test::Trial t = test::masked_trial(GetParam(), seed);
    const double R = test::radius(t.x);
    if (seed % 3 == 0) t.x = test::climb(t, R, 12, Rng(seed).split(50));
    if (seed % 3 == 1) {
      Objective f(t.weights, t.options, Norm::two, 1);
      t.x = ascend([&](const Matrix& at) { return f(at); }, ball(R), t.x,
                   {.max_evaluations = 20})
                .x;
    }
    const Matrix J = test::jacobian(t);
    const Index n = t.x.rows();
    const std::vector<Bound> all = bounds(t.weights, test::setting_of(t, R));
    EXPECT_TRUE(best_bound(all, Norm::two));
    EXPECT_EQ(best_bound(all, Norm::token).has_value(), proved.token);
    EXPECT_EQ(best_bound(all, Norm::inf).has_value(), proved.inf);
    for (const Bound& b : all) {
      const double reached = test::measured(J, b.norm, n, Rng(seed));
      EXPECT_LE(reached, b.value * (1 + 1e-9))
          << b.name << ", trial " << seed << ", " << name_of(t.options.mask);
      closest = std::max(closest, reached / b.value);
    }
    t.options.project = true;
    const AttentionConstants constants(t.weights, GetParam(), t.options.mask);
    if (constants.name().empty()) continue;
    const Matrix whole = test::jacobian(t);
    const AttentionGain gain = *constants.over(n, R);
    EXPECT_LE(norm2(whole), gain.two.value() * (1 + 1e-9)) << seed;
    const Index e = whole.rows() / n;
    for (Index i = 0; i < n; ++i)
      EXPECT_LE(norm2(whole.middleRows(i * e, e)),
                gain.row.value() * (1 + 1e-9))
          << seed;
  }
  // a bound that is half as large as it should be would be seen; that of cosine
  // attention is attained above
  EXPECT_GT(closest, GetParam() == Kind::cosine ? 0.4 : 0.5);
}

INSTANTIATE_TEST_SUITE_P(Kinds, MaskedKind,
                         testing::Values(Kind::dot, Kind::l2, Kind::cosine,
                                         Kind::sigmoid),
                         [](const auto& tried) {
                           return name_of(tried.param);
                         });

}  // namespace masked_bounds_test
}  // namespace lipscope
