#pragma once

#include <functional>
#include <optional>

#include "lipscope/attention/multi_head.h"

/// The inside of the dense oracle (dense.h), from which each kind makes its
/// closed form. It shares nothing with the code that it checks.
namespace lipscope {

using DenseRow = Eigen::Matrix<double, 1, Eigen::Dynamic>;

/// One head, cut out of the layer.
struct DenseHead {
  Matrix wq, wk;     ///< [d×k]
  DenseRow bq, bk;   ///< [k]
  Matrix wv;         ///< [d×w], its value weights alone
  DenseRow bv;       ///< [w]
  Matrix out;        ///< [w×e], from its values to the whole output
  Index number = 0;  ///< among all heads of the layer
};

/// A closed form by the means and covariances of tokens, for softmax weights:
///
///   B_ij = [δ_ij own Cov_i + P_ij (I + pull_ijᵀ (x_j − m_i))] value
struct CovarianceForm {
  /// s_ij, from q_i = x_iW_Q + b_Q and k_j = x_jW_K + b_K.
  std::function<double(const DenseRow& q, const DenseRow& k)> score;
  /// ∂s_ij/∂x_j, up to what is constant in j along the row.
  std::function<DenseRow(const DenseRow& xi, const DenseRow& xj)> pull;
  Matrix own;    ///< [d×d]
  Matrix value;  ///< [d×e]
};

void add_by_covariance(const DenseHead& head, const AttentionOptions& options,
                       const CovarianceForm& form, const Matrix& x,
                       Matrix& jacobian);

/// A feature made of a projection z, and its derivative, which is symmetric.
struct DenseFeature {
  DenseRow value;
  Matrix slope;
};

/// z itself.
DenseFeature as_projected(const DenseRow& z);

/// A score and its gradients by q_i and k_j.
struct DenseScore {
  double value = 0.0;
  DenseRow by_q, by_k;
};

/// A closed form from the gradient of each score, for any weights and with
/// rotary positions, q/k-norm of each head and a bias by distance:
///
///   B_ij = P'_ij (∂s_ij/∂x_j)ᵀ(v_j − c_i) + P_ij ∂v_j/∂x_j
///          + δ_ij Σ_l P'_il (∂s_il/∂x_i)ᵀ(v_l − c_i)
///
/// softmax: P' = P, c_i = Σ_j P_ij v_j; sigmoid: P' = P(1 − P), c_i = 0.
struct ScoreForm {
  std::function<DenseScore(const DenseRow& q, const DenseRow& k)> score;
  /// Of rows of q and k, and of v.
  std::function<DenseFeature(const DenseRow& z)> compared = as_projected;
  std::function<DenseFeature(const DenseRow& z)> mixed = as_projected;
  std::optional<double> sigmoid_shift = {};  ///< nothing: a softmax
};

void add_by_scores(const DenseHead& head, const AttentionOptions& options,
                   const ScoreForm& form, const Matrix& x, Matrix& jacobian);

}  // namespace lipscope
