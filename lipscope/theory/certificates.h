#pragma once

#include <memory>

#include "lipscope/attention/multi_head.h"
#include "lipscope/theory/bound.h"

namespace lipscope {

/// Ways to bound ‖J(X)‖₂ from above at a given X.
enum class Certificate {
  castin24_ball,  ///< over the ball that holds X; no query bias
  castin24_data,  ///< from the diameter of X; no query bias
  yudin25_local,  ///< from the attention weights; no query bias
  covariances,    ///< covariances and column sums
  split_paths,    ///< the default for layers: as cheap as measuring
  token_pairs     ///< norms between all pairs; for one head, few tokens
};

std::string name_of(Certificate which);

/// Bounds from above on the Jacobian of a dot-product layer at given inputs.
/// What depends on the weights alone is made once, so that many inputs are
/// cheap.
///
/// Several heads: castin24, yudin25 and covariances are made for each head and
/// added up as in bounds.h. split_paths and token_pairs bound the whole layer.
///
/// token_pairs costs n² norms of matrices [d×e] for several heads (seconds at
/// n = 32, d = 384), and for one about as much as measuring.
class LocalCertificates {
 public:
  /// The options as for the map that is measured: mask, heads, projection,
  /// threads. Dot-product attention and one sequence only.
  LocalCertificates(const AttentionWeights& weights,
                    const AttentionOptions& options);
  ~LocalCertificates();
  LocalCertificates(LocalCertificates&&) noexcept;
  LocalCertificates& operator=(LocalCertificates&&) noexcept;

  /// Whether it is proved for this layer: with a query bias castin24 and
  /// yudin25 are not.
  bool offers(Certificate which) const;

  /// Throws std::invalid_argument if it is not offered.
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
