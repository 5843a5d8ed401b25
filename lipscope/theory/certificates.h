#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lipscope/attention/multi_head.h"
#include "lipscope/theory/bound.h"

namespace lipscope {

/// Ways to bound ‖J(X)‖₂ from above at a given X.
enum class Certificate {
  castin24_ball,  ///< over the ball that holds X; dot-product, no query bias
  castin24_data,  ///< from the diameter of X; dot-product, no query bias
  yudin25_local,  ///< from attention weights; dot-product, no query bias
  covariances,    ///< covariances and column sums; dot-product
  split_paths,    ///< any kind; the default for layers
  token_pairs,    ///< any kind; norms between all pairs, for few tokens
  leading_apart,  ///< any kind; for layers
  exact_norm      ///< any kind; the norm itself, for heads and few tokens
};

inline constexpr Certificate all_certificates[] = {
    Certificate::castin24_ball, Certificate::castin24_data,
    Certificate::yudin25_local, Certificate::covariances,
    Certificate::split_paths,   Certificate::token_pairs,
    Certificate::leading_apart, Certificate::exact_norm};

std::string name_of(Certificate which);

/// Bounds from above on the Jacobian of a layer at given inputs: any kind, mask
/// and grouping of heads, with or without rotary positions, q/k-norm and
/// relative positions. What depends on the weights alone is made once, so that
/// many inputs are cheap.
///
/// Several heads: castin24, yudin25 and covariances are made for each head and
/// added up as in bounds.h. The others bound the whole layer.
///
/// split_paths takes one to four times as long as measuring for dot-product and
/// sigmoid attention; where the keys of a token have a slope of their own
/// (rotary positions, q/k-norm, L2, cosine) it makes a product
/// [n×H·k]·[H·k×H·k] for every token. token_pairs costs n² norms of matrices
/// [d×e] (seconds at n = 32, d = 384), and for one dot-product head about as
/// much as measuring. leading_apart (seconds for a layer at 64 tokens) and
/// exact_norm are made within the limits of gram_cost.h.
class LocalCertificates {
 public:
  /// The options as for the map that is measured: mask, heads, projection,
  /// threads. One sequence only, of tokens without masses.
  LocalCertificates(const AttentionWeights& weights,
                    const AttentionOptions& options);
  ~LocalCertificates();
  LocalCertificates(LocalCertificates&&) noexcept;
  LocalCertificates& operator=(LocalCertificates&&) noexcept;

  /// Whether it is proved for this layer: split_paths, token_pairs,
  /// leading_apart and exact_norm always; covariances for dot-product attention
  /// without rotary positions and q/k-norm, and castin24 and yudin25 there
  /// without a query bias and relative positions.
  bool offers(Certificate which) const;

  /// Where it would take more than its limit at n tokens: how much, in words.
  std::optional<std::string> too_large(Certificate which, Index n) const;

  /// token_pairs for one dot-product head without rotary positions and
  /// q/k-norm and up to 64 tokens, otherwise split_paths.
  Certificate usual(Index n) const;

  /// Throws std::invalid_argument if it is not offered or too large.
  Bound at(const Matrix& x, Certificate which) const;

 private:
  struct Made;
  std::unique_ptr<Made> made_;
};

/// The same for a single input.
Bound local_certificate(const AttentionWeights& weights,
                        const AttentionOptions& options, const Matrix& x,
                        Certificate which);

}  // namespace lipscope
