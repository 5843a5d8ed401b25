#pragma once

#include <optional>
#include <string>

#include "lipscope/model/language_model_config.h"
#include "lipscope/train/attention_layer.h"
#include "lipscope/train/dropout.h"
#include "lipscope/train/mlp_layer.h"
#include "lipscope/train/norm_layer.h"

namespace lipscope {

struct TransformerBlockShape {
  AttentionShape attention;
  Index hidden = 0;  ///< width of the MLP inside
  Activation activation = Activation::gelu;
  NormPlace norm = NormPlace::post;
  std::optional<double> contraction = {};  ///< of the MLP, see MlpLayer
};

/// x += y, in pieces of rows.
template <class Real>
void add_rows(MatrixOf<Real>& x, const MatrixOf<Real>& y, int threads) {
  for_row_pieces(x.rows(), threads, [&](Index begin, Index count) {
    x.middleRows(begin, count) += y.middleRows(begin, count);
  });
}

/// f with its residual, its dropout and its norm; f is an AttentionLayer or an
/// MlpLayer, called by the functions that forward and backward are given.
template <class Real>
class Residual {
 public:
  Residual(Layout& layout, const std::string& norm_name, Index width,
           NormPlace place);

  template <class F>
  const MatrixOf<Real>& forward(const VectorOf<Real>& weights,
                                const MatrixOf<Real>& x, std::uint64_t place,
                                const Pass& pass, const F& f) {
    const MatrixOf<Real>& read =
        place_ == NormPlace::pre ? norm_->forward(weights, x, pass.threads) : x;
    const MatrixOf<Real>& y = f(read);
    sum_.resize(x.rows(), x.cols());
    const bool drops = pass.dropout > 0;
    for_row_pieces(x.rows(), pass.threads, [&](Index begin, Index count) {
      if (drops)
        sum_.middleRows(begin, count) = y.middleRows(begin, count);
      else
        sum_.middleRows(begin, count) =
            y.middleRows(begin, count) + x.middleRows(begin, count);
    });
    if (drops) {
      dropout(sum_, place, pass);
      add_rows(sum_, x, pass.threads);
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
    // sum = x + dropout(f(read)):  gx = gsum + gread, through the norm if pre
    const bool drops = pass.dropout > 0;
    if (drops) {
      gf_ = g;
      dropout(gf_, place, pass);
    }
    const MatrixOf<Real>& gread = f(drops ? gf_ : g);
    if (place_ == NormPlace::pre) {
      gf_ = gread;
      norm_->backward(weights, gradients, gf_, pass.threads);
    }
    add_rows(g, place_ == NormPlace::pre ? gf_ : gread, pass.threads);
  }

 private:
  NormPlace place_;
  std::optional<NormLayer<Real>> norm_;
  MatrixOf<Real> sum_, gf_;
};

/// A transformer block: residual attention and a residual MLP, with norms.
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

  const AttentionLayer<Real>& attention() const { return attention_; }

 private:
  AttentionLayer<Real> attention_;
  Residual<Real> around_attention_;
  MlpLayer<Real> mlp_;
  Residual<Real> around_mlp_;
};

}  // namespace lipscope
