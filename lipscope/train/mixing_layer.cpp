#include "lipscope/train/mixing_layer.h"

#include <numbers>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/model/heads_apart.h"

namespace lipscope {

template <class Real>
MixingLayer<Real>::MixingLayer(Layout& layout, const std::string& name,
                               const MixingShape& shape)
    : shape_(shape) {
  const Index d = shape.attention.width;
  require(heads() >= 1 && d % heads() == 0,
          "mixing layer: width {} does not divide into {} heads", d, heads());
  require(shape.apart || shape.position_heads == 0,
          "mixing layer: {} position heads that do not stand apart",
          shape.position_heads);
  if (shape.position_heads > 0)
    positions_.emplace(layout, name + ".p",
                       PositionHeadsShape{.width = d,
                                          .heads = shape.position_heads,
                                          .head_width = head_width(),
                                          .context = shape.attention.context});
  if (shape.attention.heads > 0) {
    AttentionShape attention = shape.attention;
    attention.head_width = head_width();
    attention.project = !shape.apart;
    attention_.emplace(layout, name, attention);
  }
  // c_h² begins halved from head to head: nearer characters tell more
  if (shape.apart)
    share_ = layout.add_table(
        name + ".share", 1, heads(), {.entry = [](Index, Index head, double) {
          return -std::numbers::ln2 * static_cast<double>(head);
        }});
}

// √softmax(s), in f64
template <class Real>
Vector MixingLayer<Real>::shares(const VectorOf<Real>& weights) const {
  return head_shares(
      tensor(weights, share_).row(0).transpose().template cast<double>());
}

template <class Real>
const MatrixOf<Real>& MixingLayer<Real>::forward(const VectorOf<Real>& weights,
                                                 const MatrixOf<Real>& x,
                                                 const Pass& pass) {
  x_ = &x;
  if (!shape_.apart) return attention_->forward(weights, x, pass);
  const Index k = head_width(), first = shape_.position_heads * k;
  c_ = shares(weights).template cast<Real>();
  heads_.resize(x.rows(), heads() * k);
  if (positions_)
    positions_->forward(weights, x, view(heads_, {0, 0, x.rows(), first}),
                        pass);
  if (attention_)
    heads_.rightCols(heads_.cols() - first) =
        attention_->forward(weights, x, pass);
  y_.resize(x.rows(), heads_.cols());
  for_row_pieces(x.rows(), pass.threads, [&](Index begin, Index count) {
    for (Index h = 0; h < heads(); ++h)
      y_.block(begin, h * k, count, k) =
          c_[h] * heads_.block(begin, h * k, count, k);
  });
  return y_;
}

template <class Real>
const MatrixOf<Real>& MixingLayer<Real>::backward(const VectorOf<Real>& weights,
                                                  VectorOf<Real>& gradients,
                                                  const MatrixOf<Real>& gy,
                                                  const Pass& pass) {
  if (!shape_.apart) return attention_->backward(weights, gradients, gy, pass);
  const Index k = head_width(), first = shape_.position_heads * k;
  // y_h = c_h z_h:  gz_h = c_h gy_h,  gc_h = ⟨gy_h, z_h⟩
  gheads_.resize(gy.rows(), gy.cols());
  Vector gc = Vector::Zero(heads());
  parallel_for(heads(), pass.threads, [&](Index h) {
    const auto g = gy.middleCols(h * k, k);
    gheads_.middleCols(h * k, k) = c_[h] * g;
    double sum = 0.0;
    for (Index i = 0; i < gy.rows(); ++i)
      sum += static_cast<double>(g.row(i).dot(heads_.row(i).segment(h * k, k)));
    gc[h] = sum;
  });
  // c² = softmax(s):  dc_h = c_h/2 (ds_h − Σ c²ds):  gs_h = (gc_h c_h − c_h² Σ
  // gc c)/2
  const Vector c = c_.template cast<double>();
  const double all = gc.dot(c);
  tensor(gradients, share_).row(0) =
      ((gc.array() * c.array() - c.array().square() * all) / 2)
          .matrix()
          .transpose()
          .template cast<Real>();
  if (attention_) {
    gattention_ = gheads_.rightCols(gheads_.cols() - first);
    gx_ = attention_->backward(weights, gradients, gattention_, pass);
  }
  if (!positions_) return gx_;
  const MatrixOf<Real>& gx = positions_->backward(
      weights, gradients,
      view(std::as_const(gheads_), {0, 0, gy.rows(), first}), pass);
  if (attention_)
    gx_ += gx;
  else
    gx_ = gx;
  return gx_;
}

template <class Real>
AttentionWeights MixingLayer<Real>::exported(
    const VectorOf<Real>& weights) const {
  if (!attention_) return {.heads = 0};
  AttentionWeights w = attention_->exported(weights);
  if (!shape_.apart) return w;
  const Index k = head_width();
  w.output = apart_output(shares(weights).tail(shape_.attention.heads),
                          {.first = shape_.position_heads * k,
                           .head_width = k,
                           .width = shape_.attention.width});
  return w;
}

template <class Real>
std::optional<PositionHeads> MixingLayer<Real>::exported_position_heads(
    const VectorOf<Real>& weights) const {
  if (!positions_) return std::nullopt;
  return PositionHeads{.weights = positions_->exported_weights(weights),
                       .value = positions_->value(weights),
                       .share = shares(weights).head(shape_.position_heads),
                       .width = shape_.attention.width};
}

template <class Real>
std::optional<RelativeBias> MixingLayer<Real>::exported_relative_bias(
    const VectorOf<Real>& weights) const {
  return attention_ ? attention_->exported_relative_bias(weights)
                    : std::nullopt;
}

template class MixingLayer<float>;
template class MixingLayer<double>;

}  // namespace lipscope
