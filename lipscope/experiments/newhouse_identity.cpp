#include "lipscope/experiments/newhouse_identity.h"

#include <cmath>

#include "lipscope/attention/multi_head.h"
#include "lipscope/experiments/shared_steps.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/newhouse25.h"

namespace lipscope {
namespace {

constexpr Index identity_width = 256, identity_heads = 4;
constexpr double identity_radius = 16.0;  // root mean square 1

// y = [P_h v_h]/3 with q = k = v = x and scores q·k/k, as weights of plain
// scores q·k/√k
AttentionWeights identities() {
  const double k = static_cast<double>(identity_width / identity_heads);
  const Matrix one = Matrix::Identity(identity_width, identity_width);
  return {.query = std::pow(k, -0.25) * one,
          .key = std::pow(k, -0.25) * one,
          .value = one / 3.0,
          .output = one,
          .heads = identity_heads};
}

// m tokens at R u, m at −R u and a last one at s w, with unit u ⊥ w in one
// head, all in the features that rotary positions turn least. The last token
// sees the 2m others with the score 0 and itself with s²/k, so that they have
// the share c = 2m/(2m + e^{s²/k}) of its weights. Now let those at ±R u move
// by ±w and the last one by u: their scores move by ±(R + s)/k, and its output
// by
//
//   u (c R(R + s)/k + 1 − c)/3,   each token having moved by 1.
struct Example {
  Matrix tokens, change;
  double predicted;  // of the last token's output, without rotation
};

double last_output(Index m, double s) {
  const double k = static_cast<double>(identity_width / identity_heads);
  const double others = 2.0 * static_cast<double>(m);
  const double c = others / (others + std::exp(s * s / k));
  return (c * identity_radius * (identity_radius + s) / k + 1.0 - c) / 3.0;
}

Example example(Index m) {
  double s = 0.0;
  for (double tried = 0.0; tried <= identity_radius; tried += 0.25)
    if (last_output(m, tried) > last_output(m, s)) s = tried;
  const Index half = identity_width / identity_heads / 2, u = half - 1,
              w = half - 2;
  Matrix tokens = Matrix::Zero(2 * m + 1, identity_width), change = tokens;
  for (Index i = 0; i < 2 * m; ++i) {
    const double sign = i < m ? 1.0 : -1.0;
    tokens(i, u) = sign * identity_radius;
    change(i, w) = sign;
  }
  tokens(2 * m, w) = s;
  change(2 * m, u) = 1.0;
  return {tokens, change, last_output(m, s)};
}

}  // namespace

void newhouse_identity(const ExperimentOptions&, const Notebook& book) {
  book.open(
      {.name = "newhouse-shakespeare, identities",
       .title = "Attention with identities for weights",
       .explanation =
           "Attention as in Newhouse25 (width 256, 4 heads, rotary positions, "
           "scores q.k/k, values a third) with all matrices the identity, over "
           "tokens of root mean square at most 1, in the largest token norm. "
           "The formula of the released code takes the root mean square over "
           "all features for that of one head's, and says 1. From below a "
           "central difference at tokens that have all their length in one "
           "head; from above what is proved here. This is about the formula: "
           "that a trained model exceeds its printed constant is not shown.",
       .x_name = "tokens",
       .y_name = "constant, largest token norm",
       .log_x = true,
       .log_y = true});
  const AttentionWeights weights = identities();
  const AttentionOptions options{
      .kind = Kind::dot, .mask = Mask::causal, .rope = Rotary{}, .threads = 1};
  for (const Index m : {1, 2, 5, 10, 32, 127}) {
    const Index n = 2 * m + 1;
    Record question =
        attention_question("identities, width 256, 4 heads, rotary");
    question.mask = name_of(Mask::causal);
    question.norm = Norm::token;
    question.n = n;
    question.d = identity_width;
    question.scope = Scope::ball;
    question.radius_max = identity_radius;
    const auto x = static_cast<double>(n);
    book.ask({"central difference", x}, question, [&](Record& r) {
      const Example at = example(m);
      const MultiHeadAttention<double> f(weights, options);
      // errs by O(h²); h = ε^{1/3} times the size of the tokens balances that
      // with rounding
      const double h = 1e-4;
      const Matrix moved =
          (f(at.tokens + h * at.change) - f(at.tokens - h * at.change)) /
          (2 * h);
      r.lower = moved.rowwise().norm().maxCoeff();
      r.lower_by = KnownBy(Procedure::finite_difference).at("construction");
      r.details = {{"formula", at.predicted},
                   {"newhouse25_formula", newhouse25_attention(weights)}};
      set_bound(r, best_bound(bounds(weights, {.kind = Kind::dot,
                                               .mask = Mask::causal,
                                               .n = n,
                                               .radius = identity_radius,
                                               .rope = true}),
                              Norm::token));
    });
  }
}

}  // namespace lipscope
