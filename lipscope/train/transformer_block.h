#pragma once

#include <optional>
#include <string>

#include "lipscope/model/language_model_config.h"
#include "lipscope/train/dropout.h"
#include "lipscope/train/mixing_layer.h"
#include "lipscope/train/mlp_layer.h"
#include "lipscope/train/norm_layer.h"

namespace lipscope {

struct TransformerBlockShape {
  MixingShape mixing;
  Index hidden = 0;  ///< width of the MLP inside
  Activation activation = Activation::gelu;
  NormPlace norm = NormPlace::post;
  Join join = Join::add;
  double join_share = 1.0;                 ///< of Join::convex
  std::optional<double> contraction = {};  ///< of the MLP, see MlpLayer
  std::optional<double> quiet_gain = {};   ///< see train/quiet_start.h
};

/// x += y, in pieces of rows.
template <class Real>
void add_rows(MatrixOf<Real>& x, const MatrixOf<Real>& y, int threads) {
  for_row_pieces(x.rows(), threads, [&](Index begin, Index count) {
    x.middleRows(begin, count) += y.middleRows(begin, count);
  });
}

/// f with what it is joined with, its dropout and its norm; f is a MixingLayer
/// or an MlpLayer, called by the functions that forward and backward are given.
///
///   carry·x + share·dropout(f(read))
///
/// where `read` is x, or in a pre-norm model its norm.
template <class Real>
class Residual {
 public:
  Residual(Layout& layout, const std::string& norm_name,
           const TransformerBlockShape& shape, const Initial& gain);

  template <class F>
  const MatrixOf<Real>& forward(const VectorOf<Real>& weights,
                                const MatrixOf<Real>& x, std::uint64_t place,
                                const Pass& pass, const F& f) {
    const MatrixOf<Real>& read =
        place_ == NormPlace::pre ? norm_->forward(weights, x, pass.threads) : x;
    const MatrixOf<Real>& y = f(read);
    sum_.resize(y.rows(), y.cols());
    const bool drops = pass.dropout > 0;
    for_row_pieces(x.rows(), pass.threads, [&](Index begin, Index count) {
      auto sum = sum_.middleRows(begin, count);
      sum = y.middleRows(begin, count);
      if (!drops) join(sum, x.middleRows(begin, count));
    });
    if (drops) {
      dropout(sum_, place, pass);
      for_row_pieces(x.rows(), pass.threads, [&](Index begin, Index count) {
        join(sum_.middleRows(begin, count), x.middleRows(begin, count));
      });
    }
    return place_ == NormPlace::post
               ? norm_->forward(weights, sum_, pass.threads)
               : sum_;
  }

  /// gy → gx, in place; f maps gy to gx.
  template <class F>
  void backward(const VectorOf<Real>& weights, VectorOf<Real>& gradients,
                MatrixOf<Real>& g, std::uint64_t place, const Pass& pass,
                const F& f) {
    if (place_ == NormPlace::post)
      norm_->backward(weights, gradients, g, pass.threads);
    // sum = carry·x + share·dropout(f(read)):  gx = carry·gsum + gread, through
    // the norm if pre
    const bool changed = pass.dropout > 0 || share_ != 1;
    if (changed) {
      gf_ = g;
      if (share_ != 1) gf_ *= share_;
      dropout(gf_, place, pass);
    }
    const MatrixOf<Real>& gread = f(changed ? gf_ : g);
    if (carry_ == 0) {
      g = gread;
      return;
    }
    if (carry_ != 1) g *= carry_;
    if (place_ == NormPlace::pre) {
      gf_ = gread;
      norm_->backward(weights, gradients, gf_, pass.threads);
    }
    add_rows(g, place_ == NormPlace::pre ? gf_ : gread, pass.threads);
  }

 private:
  // sum ← carry·x + share·sum
  template <class Sum, class Rows>
  void join(Sum&& sum, const Rows& x) const {
    if (share_ != 1) sum *= share_;
    if (carry_ == 1)
      sum += x;
    else if (carry_ != 0)
      sum += carry_ * x;
  }

  Real carry_, share_;
  NormPlace place_;
  std::optional<NormLayer<Real>> norm_;
  MatrixOf<Real> sum_, gf_;
};

/// A transformer block: attention and an MLP, each joined with what it reads,
/// with norms.
template <class Real>
class TransformerBlock {
 public:
  TransformerBlock(Layout& layout, const std::string& name,
                   const TransformerBlockShape& shape);

  /// `number` tells this block's dropout from that of others. x must stay where
  /// it is until backward.
  const MatrixOf<Real>& forward(const VectorOf<Real>& weights,
                                const MatrixOf<Real>& x, Index number,
                                const Pass& pass);
  /// gy → gx, in place.
  void backward(const VectorOf<Real>& weights, VectorOf<Real>& gradients,
                MatrixOf<Real>& g, Index number, const Pass& pass);

  const MixingLayer<Real>& mixing() const { return mixing_; }

 private:
  MixingLayer<Real> mixing_;
  Residual<Real> around_mixing_;
  MlpLayer<Real> mlp_;
  Residual<Real> around_mlp_;
};

}  // namespace lipscope
