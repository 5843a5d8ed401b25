#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lipscope/control/invert.h"
#include "lipscope/model/layer.h"

/// From the last activations of a model back to its text: a model without norms
/// is a stack of residual maps, and where each of them is proved to be a
/// contraction beside the identity the stack has an inverse that can be
/// computed (invert.h).
namespace lipscope {

/// InputError for a model with norms, which forget how long a token is.
void require_no_norms(const Model& model);

/// A model from the input of layer 0 to the output of the last layer as x +
/// f(x) again and again, f the attention and then the MLP of each layer. It
/// keeps the weights.
class ResidualModel {
 public:
  /// On sequences of n tokens; without norms.
  ResidualModel(const Model& model, Index n, int threads = 0);

  /// With scale 1 and, as far as it is known, Lip_inf(f) from above: Kim21's
  /// bound for tied L2 attention on n tokens, ‖W_upᵀ‖_inf L_act ‖W_downᵀ‖_inf
  /// for an MLP, both of the weights as they are applied. What an invertible
  /// model was divided by in training is in them, and is not relied on.
  /// They borrow from this model, which must outlive them.
  const std::vector<ResidualMap>& residuals() const { return residuals_; }
  const std::vector<std::string>& names() const { return names_; }

  Matrix operator()(Matrix x) const;

 private:
  void add(MapPtr<double> f, std::string name, std::optional<double> lipschitz);

  std::vector<MapPtr<double>> maps_;
  std::vector<ResidualMap> residuals_;
  std::vector<std::string> names_;
};

/// Which tokens stand nearest to embeddings, and where that is proved.
struct ReadTokens {
  std::vector<Index> ids;
  /// Of each: no other token's embedding is within the error bound.
  std::vector<bool> proved;
  /// Half the smallest distance between two tokens at one position, in the
  /// inf-norm: with a smaller error bound all are proved.
  double margin = 0.0;
  double farthest = 0.0;  ///< largest distance to the nearest token
};

/// Of x [n×d], the input of layer 0 up to an error in the inf-norm that is at
/// most the bound, if there is one.
ReadTokens read_tokens(const Model& model, const Matrix& x,
                       std::optional<double> error_bound);

/// How far numbers may have been moved when they were stored, if every entry of
/// y is one of bf16, f16 or f32: 2⁻⁹, 2⁻¹² or 2⁻²⁵ of the next power of two
/// above max|y|, and half of the smallest number there is. 0 if some entry is
/// none of f32. It does not know how y was computed.
double storage_rounding(const Matrix& y);

}  // namespace lipscope
