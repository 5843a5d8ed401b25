#include <algorithm>
#include <cmath>

#include "lipscope/core/rng.h"
#include "lipscope/experiments/shared_steps.h"
#include "lipscope/spectral/dense.h"

namespace lipscope {
namespace {

enum RadiusStream : std::uint64_t {
  radius_tokens,
  radius_scores,
  radius_values
};

// max_j #{i : argmax_l x_iAx_lᵀ = j}: how many tokens look at the same one when
// each looks at one alone
Index most_looked_at(const Matrix& a, const Matrix& x) {
  const Matrix scores = x * a * x.transpose();
  std::vector<Index> looked(x.rows(), 0);
  for (const auto& row : scores.rowwise()) {
    Index j = 0;
    row.maxCoeff(&j);
    ++looked[j];
  }
  return *std::max_element(looked.begin(), looked.end());
}

}  // namespace

void large_radius(const ExperimentOptions& o, const Notebook& book) {
  book.open(
      {.name = "large-radius",
       .title = "An input scaled up ends at a constant that counts tokens",
       .explanation =
           "16 Gaussian tokens X of 8 features and a Gaussian head, scaled to "
           "a largest token of R. As R grows each token comes to look at one "
           "alone, and the norm tends to |V| times the root of the largest "
           "number of tokens that look at the same one. Before that, where two "
           "scores nearly tie, it may be far higher.",
       .x_name = "R",
       .y_name = "2-norm of the Jacobian",
       .log_x = true,
       .log_y = true});
  const Index n = 16, d = 8;
  const std::vector<double> radii = geometric(0.1, 1e4, o.full ? 101 : 31);
  for (Index sample = 0; sample < (o.full ? 10 : 3); ++sample) {
    const Rng rng = Rng(o.seed).split(sample);
    const double unit = 1.0 / std::sqrt(static_cast<double>(d));
    const Matrix a = unit * gaussian(d, d, rng.split(radius_scores));
    const Matrix v = unit * gaussian(d, d, rng.split(radius_values));
    Matrix x = gaussian(n, d, rng.split(radius_tokens));
    x /= x.rowwise().norm().maxCoeff();
    const AttentionWeights weights = head_of_forms(a, v);
    const AttentionOptions options{.threads = o.threads};
    for (const double radius : radii) {
      Record question =
          attention_question(fmt::format("d=8 gaussian, {}", sample));
      question.n = n;
      question.d = d;
      question.radius_max = radius;
      book.ask({fmt::format("input {}", sample), radius}, question,
               [&](Record& r) {
                 measure_attention(r, weights, options, radius * x, o.seed);
               });
      if (radius != radii.front() && radius != radii.back()) continue;
      question.scope = Scope::multiples;
      book.ask({fmt::format("limit of input {}", sample), radius}, question,
               [&](Record& r) {
                 const auto most = static_cast<double>(most_looked_at(a, x));
                 r.lower = dense_norm(v).value * std::sqrt(most);
                 r.lower_by = Procedure::formula;
                 r.details["most_looked_at"] = most;
               });
    }
  }
}

}  // namespace lipscope
