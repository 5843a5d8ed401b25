#include "lipscope/search/search.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/attention/dense.h"
#include "lipscope/core/rng.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace search_test {

// d = 2, A = diag(−0.5, −0.05), V = I: γR² = 2 at R = 2
AttentionWeights castin_head() {
  AttentionWeights w;
  w.query = std::sqrt(2.0) * (Matrix(2, 2) << -0.5, 0, 0, -0.05).finished();
  w.key = w.value = Matrix::Identity(2, 2);
  return w;
}

TEST(Search, ReachesHalfOfTheBestBound) {
  for (const Mask mask : {Mask::none, Mask::causal}) {
    const AttentionOptions o{.mask = mask, .threads = 1};
    const SearchResult r =
        search(castin_head(), o, ball(2),
               {.n = 20, .restarts = 2, .max_evaluations = 60});
    const std::vector<Bound> all =
        bounds(castin_head(), {.mask = mask, .n = 20, .radius = 2.0});
    const Bound above = *best_bound(all, Norm::two);
    EXPECT_LE(r.best.value, above.value) << above.name;
    if (mask == Mask::none) {
      EXPECT_GE(r.best.value, 0.5 * above.value);
    }
    // and no less than at R(u, u/2, …, u/2), worked out by hand
    EXPECT_GE(r.best.value, mask == Mask::none ? 6.8825 : 6.0977);
  }
}

TEST(Search, FindsMoreThanAThirdOfTheBoundUnderWindowsAndPadding) {
  for (const Mask& mask :
       {Mask{.window = 4}, Mask{.hides_later = true, .window = 4},
        Mask{.padding_before = 5, .padding_after = 3},
        Mask{.hides_later = true, .padding_after = 8}}) {
    const AttentionOptions o{.mask = mask, .threads = 1};
    const SearchResult r =
        search(castin_head(), o, ball(2),
               {.n = 20, .restarts = 2, .max_evaluations = 60});
    const Bound above = *best_bound(
        bounds(castin_head(), {.mask = mask, .n = 20, .radius = 2.0}),
        Norm::two);
    EXPECT_EQ(above.name, "column_sums_masked");
    EXPECT_LE(r.best.value, above.value) << name_of(mask);
    EXPECT_GE(r.best.value, above.value / 3) << name_of(mask);
    // from the closed form of the Jacobian
    EXPECT_NEAR(test::norm2(dense_jacobian(castin_head(), o, r.best.x)),
                r.best.value, 1e-6 * r.best.value);
  }
}

TEST(Search, RefusesAllInputsForL2WithPadding) {
  const AttentionWeights w = test::tied(1, 1);
  const SearchOptions few{.n = 5, .restarts = 1, .max_evaluations = 5};
  const AttentionOptions padded{.kind = Kind::l2, .mask = {.padding_after = 2}};
  EXPECT_THROW(search(w, padded, everywhere(), few), std::invalid_argument);
  EXPECT_GT(search(w, padded, ball(3), few).best.value, 0.0);
  const AttentionOptions window{.kind = Kind::l2, .mask = {.window = 2}};
  const SearchResult r = search(w, window, everywhere(), few);
  EXPECT_LE(
      r.best.value,
      test::bound_value(w, {.kind = Kind::l2, .mask = window.mask, .n = 5},
                        "l2_diagonal_apart"));
  // every token of the mask must see one
  const AttentionOptions blind{
      .mask = {.hides_later = true, .padding_before = 1}};
  EXPECT_THROW(search(castin_head(), blind, ball(2), few),
               std::invalid_argument);
}

// Over all inputs an ascent may follow noise, to tokens whose distances f64
// does not hold: nothing that is found there counts.
TEST(Search, OverAllInputsStaysWhereScoresAreKnown) {
  for (const double scale : {0.5, 1.0, 2.0}) {
    AttentionWeights w;
    w.query = w.value = scale * Matrix::Ones(1, 1);
    const AttentionOptions o{.kind = Kind::l2, .threads = 1};
    const SearchResult r = search(
        w, o, everywhere(), {.n = 6, .restarts = 16, .max_evaluations = 200});
    const Bound above =
        *best_bound(bounds(w, {.kind = Kind::l2, .n = 6}), Norm::two);
    EXPECT_LE(r.best.value, above.value) << scale;
    for (const Found& f : r.all) EXPECT_LE(f.value, above.value) << f.start;
  }
}

TEST(Search, SaysWhatItFoundAndHow) {
  const AttentionOptions o{.threads = 1};
  const AttentionWeights w = castin_head();
  int told = 0;
  double last = 0;
  const SearchResult r = search(w, o, ball(2),
                                {.n = 6,
                                 .restarts = 2,
                                 .max_evaluations = 50,
                                 .improved = [&](const Found& f) {
                                   ++told;
                                   EXPECT_GT(f.value, last);
                                   EXPECT_GT(f.x.size(), 0);
                                   last = f.value;
                                 }});
  EXPECT_GT(told, 0);
  EXPECT_EQ(last, r.best.value);
  EXPECT_TRUE(r.complete);
  EXPECT_EQ(r.starts, static_cast<Index>(r.all.size()));

  // the value is that of the witness, from the closed form of the Jacobian
  const Matrix J = dense_jacobian(w, o, r.best.x);
  EXPECT_NEAR((J * r.best.direction).norm() / r.best.direction.norm(),
              r.best.value, 1e-12 * r.best.value);
  EXPECT_LE(r.best.x.rowwise().norm().maxCoeff(), 2 * (1 + 1e-14));
  Index evaluations = r.starts;  // one look at each start
  for (const Found& f : r.all) {
    EXPECT_GE(f.value, f.before);
    EXPECT_EQ(f.climbed, f.value > f.before);
    evaluations += f.evaluations;
  }
  EXPECT_EQ(evaluations, r.evaluations);
}

// one evaluation each: constructions are nudged, and not climbed from
TEST(Search, KeepsAConstructionThatClimbingDoesNotImprove) {
  const SearchResult r = search(castin_head(), {.threads = 1}, ball(2),
                                {.n = 6, .restarts = 0, .max_evaluations = 1});
  int kept = 0;
  for (const Found& f : r.all) {
    EXPECT_GE(f.value, f.before) << f.start;
    EXPECT_EQ(f.climbed, f.value > f.before) << f.start;
    kept += !f.climbed;
  }
  EXPECT_GT(kept, 0);
}

TEST(Search, FindsTheSameForASeedOnAnyNumberOfThreads) {
  const auto run = [](std::uint64_t seed, int threads) {
    return search(castin_head(), {.threads = threads}, ball(2),
                  {.n = 5, .restarts = 3, .max_evaluations = 30, .seed = seed});
  };
  const SearchResult a = run(7, 1), b = run(7, 2), c = run(8, 1);
  EXPECT_EQ(a.best.x, b.best.x);
  EXPECT_EQ(a.best.value, b.best.value);
  const auto random = [](const SearchResult& r) {
    double before = 0;
    for (const Found& f : r.all)
      if (f.start == "random 0") before = f.before;
    return before;
  };
  EXPECT_EQ(random(a), random(b));
  EXPECT_NE(random(a), random(c));
}

TEST(Search, IsCutByItsBudgetAndWhenToldTo) {
  const SearchResult told =
      search(castin_head(), {.threads = 1}, ball(2),
             {.n = 5, .keep_going = [](const SearchProgress& p) {
                return p.evaluations < 30;
              }});
  EXPECT_FALSE(told.complete);
  EXPECT_LE(told.evaluations, 32);
  EXPECT_GT(told.best.value, 0);

  const SearchResult late =
      search(castin_head(), {.threads = 1}, ball(2), {.n = 5, .budget = 1e-9});
  EXPECT_FALSE(late.complete);
  EXPECT_GT(late.best.value, 0);
}

TEST(Search, GoesOnUntilTheBestWasReachedFromSeveralStarts) {
  const SearchOptions few{.n = 4, .restarts = 2, .max_evaluations = 300};
  const SearchResult r = search(castin_head(), {.threads = 1}, ball(2), few);
  Index independent = 0, reached = 0, moved = 0;
  for (const Found& f : r.all) {
    independent += f.independent;
    reached += f.independent && f.value >= r.best.value * (1 - 1e-3);
    moved += f.start.starts_with("best, moved");
    EXPECT_EQ(f.independent, !f.start.starts_with("best, moved")) << f.start;
  }
  EXPECT_EQ(r.independent, independent);
  EXPECT_EQ(r.reached, reached);
  EXPECT_GE(r.reached, 3);
  EXPECT_GT(moved, 0);
  // without random starts there is nothing to go on with
  const SearchResult theory =
      search(castin_head(), {.threads = 1}, ball(2), {.n = 4, .restarts = 0});
  for (const Found& f : theory.all)
    EXPECT_FALSE(f.start.starts_with("random") ||
                 f.start.starts_with("best, moved"))
        << f.start;
}

// in the inf-norm beyond the rows that are swept
TEST(Search, TakesNoRowSweepOfLongSequences) {
  AttentionWeights w;
  w.query = w.value = Matrix::Ones(1, 1);
  const Index n = 301;
  const SearchResult r =
      search(w, {.kind = Kind::l2, .threads = 1}, everywhere(),
             {.norm = Norm::inf, .n = n, .restarts = 0, .max_evaluations = 5});
  EXPECT_EQ(r.best.value_by, NormMethod::alternating);
  // the largest row sum of the closed form, and no less than at the
  // construction
  const Matrix J = dense_jacobian(w, {.kind = Kind::l2}, r.best.x);
  const double exact = J.cwiseAbs().rowwise().sum().maxCoeff();
  EXPECT_LE(r.best.value, exact * (1 + 1e-12));
  EXPECT_GE(r.best.value, exact * (1 - 1e-9));
  const double p = 3.46195;  // p e^{p+1} = 300
  EXPECT_GE(r.best.value, 4 * p - 1 + 2 / (p + 1) - 1e-4);
}

// the constant of the linear map x ↦ xV over any set is ‖V‖; the weights of a
// single token are 1
TEST(Search, OfOneTokenIsTheNormOfTheValueMap) {
  AttentionWeights w = castin_head();
  w.value = gaussian(2, 2, Rng(3));
  EXPECT_NEAR(search(w, {}, ball(1), {.n = 1, .restarts = 1}).best.value,
              test::norm2(w.value), 1e-12);
}

TEST(Search, RefusesWhatItCannotAnswer) {
  const AttentionWeights w = castin_head();
  EXPECT_THROW(search(w, {}, ball(1), {.n = 0}), std::invalid_argument);
  EXPECT_THROW(search(w, {}, {.radius = -1}, {.n = 2}), std::invalid_argument);
  for (const Kind kind : {Kind::dot, Kind::l2_untied, Kind::sigmoid})
    EXPECT_THROW(search(w, {.kind = kind}, everywhere(), {.n = 2}),
                 std::invalid_argument);
  AttentionWeights wrong = w;
  wrong.query(0, 0) = std::nan("");
  EXPECT_THROW(search(wrong, {}, ball(1), {.n = 2}), std::invalid_argument);
}

}  // namespace search_test
}  // namespace lipscope
