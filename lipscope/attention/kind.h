#pragma once

#include <string>

namespace lipscope {

/// How a head compares tokens and what it mixes. What a kind is, is said once,
/// in the file of its name (see kinds.h).
enum class Kind {
  dot,  ///< softmax(q kᵀ/√k) v [Vaswani17]
  l2,  ///< softmax(−|q−k|²/√k) with W_K = W_Q and values X A_h W_V, where
       ///< A_h = W_Q W_Qᵀ/√k [Kim21]: Lipschitz everywhere
  l2_untied,  ///< softmax(−|q−k|²/√k) v, any W_Q and W_K: not Lipschitz
  cosine,  ///< ν softmax(τ q̂ k̂ᵀ) v̂, rows of q, k and v normalised [Qi23]
  sigmoid  ///< σ(q kᵀ/√k − log n) v [Ramapuram24]
};

/// All of them, in this order.
inline constexpr Kind all_kinds[] = {Kind::dot, Kind::l2, Kind::l2_untied,
                                     Kind::cosine, Kind::sigmoid};

std::string name_of(Kind kind);  ///< "dot", "l2", "l2-untied", …

}  // namespace lipscope
