#pragma once

#include <string>

#include "lipscope/train/layout.h"

/// Rules that bring the singular values of a matrix to at most a limit after
/// every step. With W = Σ σ u vᵀ and σ in parts of the limit, a step of Björck
/// [Bjorck71],
///
///   W ← 1.5 W − 0.5 WWᵀW/limit²,   has the singular values |f(σ)|,
///   f(σ) = 1.5σ − 0.5σ³.
///
/// None of them is above 1 as long as σ ≤ 2, since for σ in [0, 2]
///
///   1 − f(σ) = ½(σ − 1)²(σ + 2) ≥ 0,   1 + f(σ) = ½(σ + 1)²(2 − σ) ≥ 0;
///
/// and 1 − f(σ) is about 1.5(1 − σ)²: what is near 1 comes far nearer. Above √3
/// f is negative, so that a direction would turn round: matrices that may have
/// such a σ are divided by their norm first.
///
/// What is done depends on the weights alone, and its bits do not depend on the
/// number of threads.
namespace lipscope {

enum class SingularValues {
  free,      ///< as they are
  cap,       ///< W/‖W‖ · limit where the norm is above the limit
  soft,      ///< one step of Björck
  normalise  ///< steps of Björck until all that are not zero are the limit
};

inline constexpr SingularValues all_singular_values[] = {
    SingularValues::free, SingularValues::cap, SingularValues::soft,
    SingularValues::normalise};

/// "free", "cap", "soft", "normalise"
std::string name_of(SingularValues rule);

struct SingularValueLimit {
  SingularValues rule = SingularValues::cap;
  double limit = 1.0;  ///< above 0
  int threads = 0;     ///< 0: all cores
};

/// W under the rule; of zeros it is W.
///
/// The norm is then at most the limit. cap proves it in f64 (theory/norms.h).
/// The others aim a relative 1e-5 below the limit, as f32 rounds by less than
/// that, and prove only that σ ≤ √3·limit before the first step; whoever
/// promises a constant proves it for the weights as they are:
/// guessed_norm_above(w, limit) of theory/norms.h does so by one factorisation.
/// normalise leaves singular values below 1e-6 of the norm where they come to
/// after 40 steps, each of which makes small ones 1.5 times as large; all
/// others are within 1e-3 of the limit.
void limit_singular_values(View<float> w, const SingularValueLimit& rule);

/// The same for each matrix of the tensors that are chosen, each block of a
/// tensor by itself; for all matrices where nothing is chosen.
void limit_singular_values(const Layout& layout, VectorOf<float>& weights,
                           const SingularValueLimit& rule,
                           const TensorChoice& which = {});

}  // namespace lipscope
