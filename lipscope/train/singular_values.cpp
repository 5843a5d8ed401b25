#include "lipscope/train/singular_values.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "lipscope/core/errors.h"
#include "lipscope/theory/norms.h"
#include "lipscope/train/matrix_blocks.h"

namespace lipscope {
namespace {

// Scaling in f32 rounds each entry by a relative 2⁻²⁴, and so moves ‖W‖₂ by at
// most 2⁻²³‖W‖_F: less than this for matrices of rank up to 6000. That steps of
// Björck in f32 stay within it is not proved, but tested
// (tests/train/singular_values_test.cpp).
constexpr double rounding_margin = 1e-5;

constexpr double most_square = 3.0;  // of σ before a step of Björck

// p u/(1 − p u) of f32, generously: the relative error of sums of p products
double sum_slack(Index terms) {
  return 1.01 * (static_cast<double>(terms) + 2.0) * std::exp2(-24);
}

double frobenius(const MatrixOf<float>& m) {
  return std::sqrt(m.cast<double>().squaredNorm());
}

// W/‖W‖ · limit where the norm is not proved to be at most `most`
void divide_above(View<float> w, double most, double limit) {
  const double norm = guessed_norm_above(w.cast<double>(), most);
  if (norm > most)
    w *= static_cast<float>(limit / norm * (1.0 - rounding_margin));
}

// Whether all σ² ≤ most_square is proved at little cost, for X [p×q] and its
// smaller Gram matrix A as f32 found it, off by at most γ_q‖X‖_F²:
//
//   ‖A‖₂ ≤ max_i Σ_j |A_ij|  and  ‖A‖₂⁴ ≤ ‖(AᵀA)²‖_F
//
// where each of the two products of the latter adds an error of its own.
bool surely_small(const MatrixOf<float>& x, const MatrixOf<float>& gram,
                  const Products& how) {
  const double frobenius_x = frobenius(x);
  const double error =
      sum_slack(x.size() / gram.rows()) * frobenius_x * frobenius_x;
  const auto small = [&](double norm) { return norm + error <= most_square; };
  if (small(frobenius_x * frobenius_x)) return true;
  const double row_sum =
      gram.cast<double>().cwiseAbs().rowwise().sum().maxCoeff();
  if (small(row_sum)) return true;
  const double slack = sum_slack(gram.rows());
  const MatrixOf<float> square = smaller_gram(gram, how);
  const MatrixOf<float> fourth = smaller_gram(square, how);
  const double of_square =
      std::sqrt(frobenius(fourth) + slack * std::pow(frobenius(square), 2));
  return small(std::sqrt(of_square + slack * std::pow(frobenius(gram), 2)));
}

// (1.5 I − 0.5 A) X
MatrixOf<float> bjorck_step(const MatrixOf<float>& x, MatrixOf<float> gram,
                            const Products& how) {
  gram *= -0.5f;
  gram.diagonal().array() += 1.5f;
  return times_gram(x, gram, how);
}

// how far the smaller Gram matrix is from I, in the Frobenius norm
double from_identity(const MatrixOf<float>& gram) {
  Matrix rest = gram.cast<double>();
  rest.diagonal().array() -= 1.0;
  return rest.norm();
}

void bjorck(View<float> w, const SingularValueLimit& rule) {
  const Products how{.threads = rule.threads};
  const double aim = rule.limit * (1.0 - rounding_margin);
  const auto in_parts_of_aim = [&] {
    return MatrixOf<float>((w.cast<double>() / aim).cast<float>());
  };
  MatrixOf<float> x = in_parts_of_aim();
  if ((x.array() == 0.0f).all()) return;
  MatrixOf<float> gram = smaller_gram(x, how);
  const auto begin_again = [&] {
    x = in_parts_of_aim();
    gram = smaller_gram(x, how);
  };
  if (!surely_small(x, gram, how)) {
    divide_above(w, std::sqrt(most_square) * aim, aim);
    begin_again();
  }
  if (rule.rule == SingularValues::soft) {
    x = bjorck_step(x, gram, how);
  } else {
    // ‖A − I‖_F ≤ 0.03: |σ − 1| ≤ 0.0153, and after one more step 1 − f(σ) ≤
    // ½ 0.0153² 3.02 < 4e-4. Forty steps bring 1e-6 there: 1.5³⁵ > 1e6
    constexpr int most_steps = 40;
    constexpr double near = 0.03;
    // small is what is small beside the norm
    if (gram.diagonal().maxCoeff() < 0.25f) {
      w *= static_cast<float>(aim / weight_norm_above(w.cast<double>()));
      begin_again();
    }
    for (int i = 0; i < most_steps; ++i) {
      const bool last = from_identity(gram) <= near;
      x = bjorck_step(x, gram, how);
      if (last) break;
      gram = smaller_gram(x, how);
    }
  }
  w = (x.cast<double>() * aim).cast<float>();
}

}  // namespace

std::string name_of(SingularValues rule) {
  switch (rule) {
    case SingularValues::free:
      return "free";
    case SingularValues::cap:
      return "cap";
    case SingularValues::soft:
      return "soft";
    case SingularValues::normalise:
      return "normalise";
  }
  throw std::invalid_argument("name_of: no such rule for singular values");
}

void limit_singular_values(View<float> w, const SingularValueLimit& rule) {
  require(rule.limit > 0.0 && std::isfinite(rule.limit),
          "singular values: a limit of {}", rule.limit);
  if (w.size() == 0) return;
  switch (rule.rule) {
    case SingularValues::free:
      return;
    case SingularValues::cap:
      // nothing is above the Frobenius norm
      if (w.cast<double>().squaredNorm() <=
          rule.limit * rule.limit * (1.0 - rounding_margin))
        return;
      return divide_above(w, rule.limit, rule.limit);
    case SingularValues::soft:
    case SingularValues::normalise:
      return bjorck(w, rule);
  }
}

void limit_singular_values(const Layout& layout, VectorOf<float>& weights,
                           const SingularValueLimit& rule,
                           const TensorChoice& which) {
  require(weights.size() == layout.size(),
          "singular values: a buffer of {} numbers for a layout of {}",
          weights.size(), layout.size());
  if (rule.rule == SingularValues::free) return;
  for_matrices(matrix_blocks(layout, which), rule.threads,
               [&](const MatrixBlock& at, int threads) {
                 SingularValueLimit here = rule;
                 here.threads = threads;
                 limit_singular_values(block(weights, *at.tensor, at.number),
                                       here);
               });
}

}  // namespace lipscope
