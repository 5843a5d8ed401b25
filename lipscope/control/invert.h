#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lipscope/operators/map.h"
#include "lipscope/operators/norm.h"

/// Residual maps g(X) = X + c f(X) and their inverses [Kim21].
///
/// If Lip(f) ≤ L in some norm and q = cL < 1, then X ↦ Y − c f(X) is a
/// contraction: g(X) = Y has one solution X*, for every Y, and
///
///   X⁽⁰⁾ = Y,  X⁽ᵏ⁺¹⁾ = Y − c f(X⁽ᵏ⁾),  s_k = |X⁽ᵏ⁾ − X⁽ᵏ⁻¹⁾| ≤ qᵏ⁻¹ s_1,
///   |X⁽ᵏ⁾ − X*| ≤ q/(1−q) s_k ≤ qᵏ/(1−q) s_1      in that norm.
///
/// The last says beforehand how many iterations are enough, the one before it
/// afterwards how good the result is. Where q ≥ 1 or L is not known the same
/// iteration may converge or not, and nothing is proved.
///
/// In floating point f errs, and each iterate with it, by some δ; then
/// |X⁽ᵏ⁾ − X*| ≤ (q s_k + δ)/(1−q). Here δ = 4u|Y| + 1e-12 |c f(X⁽ᵏ⁻¹⁾)|: two
/// roundings of the sum, and an allowance, not a proof, for those inside f.
namespace lipscope {

/// |X| in the norm two, inf or token.
double sequence_norm(const Matrix& x, Norm norm);

/// g(X) = X + c f(X), and what is proved of f.
struct ResidualMap {
  const Map<double>* f = nullptr;  ///< borrowed: must outlive this
  double scale = 0.5;              ///< c > 0
  /// L ≥ Lip(f) in the norm of the inversion; nothing where none is known.
  std::optional<double> lipschitz = {};

  Matrix operator()(const Matrix& x) const;  ///< g(x)
  /// q = cL, rounded up, if it is below one.
  std::optional<double> contraction() const;
};

/// One step of the iteration, as it is made; valid during the call alone.
struct InvertStep {
  int iteration = 0;  ///< k ≥ 1
  const Matrix& x;    ///< X⁽ᵏ⁾
  double step = 0.0;  ///< s_k
  std::optional<double> error_bound = {};
};

struct InvertOptions {
  Norm norm = Norm::inf;
  /// Done when the error bound, or without one the step, is at most this times
  /// max(1, |Y|).
  double tolerance = 1e-10;
  int max_iterations = 1000;
  /// Of a stack: how far Y may be from the exact output, in the norm. It counts
  /// as the error that the last map is given.
  double given_error = 0.0;
  /// Told of each step; false ends the iteration, which is an outcome and not
  /// an error. May be empty.
  std::function<bool(const InvertStep&)> keep_going = {};
};

enum class InvertStatus {
  converged,
  not_converged,  ///< max_iterations, told to stop, or all but rounding done
  diverged        ///< steps grew 1e6-fold beyond the first and Y, or overflowed
};

std::string name_of(InvertStatus status);  ///< "converged", "not-converged", …

/// What the iteration found, and what is known of it.
struct Inversion {
  Matrix x;  ///< the last iterate that is finite
  InvertStatus status = InvertStatus::not_converged;
  int iterations = 0;
  std::vector<double> steps;  ///< s_1, s_2, …

  /// q, and what follows from it; nothing where nothing is proved.
  std::optional<double> contraction = {};
  std::optional<int> a_priori = {};  ///< enough iterations, from q and s_1
  std::optional<double> error_bound = {};  ///< |x − X*|, from above
  /// δ/(1−q), the part of it that is rounding: by so much another X may differ
  /// whose g(X) was rounded to Y.
  std::optional<double> rounding = {};

  /// The largest s_{k+1}/s_k while s_{k+1} > 1e3 δ, 0 if there is none:
  /// rounding alone takes it above q by no more than a relative 2e-3.
  double worst_ratio = 0.0;
  double residual = 0.0;  ///< |x + c f(x) − Y|, measured; ∞ where it overflows
};

/// X with g(X) = Y, by the iteration above.
Inversion invert(const ResidualMap& g, const Matrix& y,
                 const InvertOptions& options = {});

/// The inverse of g_m ∘ … ∘ g_1, and of each of them, the last first.
struct StackInversion {
  Matrix x;
  InvertStatus status = InvertStatus::converged;  ///< of the first that failed
  std::vector<Inversion> each;  ///< in the order they were inverted
  /// |x − X*| for the exact preimage under all maps. With q_i of g_i and
  /// the error ε_i of its own iteration
  ///
  ///   e_i = e_{i+1}/(1 − q_i) + ε_i,   e_{m+1} = given_error:
  ///
  /// the inverse of g_i stretches by at most 1/(1 − q_i).
  std::optional<double> error_bound = {};
  /// The same recurrence for the rounding of each map.
  std::optional<double> rounding = {};
};

/// After a map that diverged nothing more is inverted.
StackInversion invert_stack(const std::vector<ResidualMap>& maps,
                            const Matrix& y, const InvertOptions& options = {});

}  // namespace lipscope
