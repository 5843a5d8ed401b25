#include "lipscope/train/attention_layer.h"

#include <cmath>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/core/gemm.h"
#include "lipscope/model/coordinate_contraction.h"
#include "lipscope/train/linear_layer.h"
#include "lipscope/train/quiet_start.h"

namespace lipscope {

template <class Real>
AttentionLayer<Real>::AttentionLayer(Layout& layout, const std::string& name,
                                     AttentionShape shape)
    : shape_(shape) {
  const Index d = shape.width;
  require(kind().shares() && !kind().template features<Real>().reads_raw,
          "attention layer: {} does not learn here", name_of(shape.kind));
  require(!shape.contractive || tied(),
          "attention layer: only l2 has a bound to be divided by");
  require(shape.heads >= 1 && d >= 1 &&
              (shape.head_width > 0 || d % shape.heads == 0),
          "attention layer: width {} does not divide into {} heads", d,
          shape.heads);
  require(!shape.contractive || shape.project,
          "attention layer: contractive heads that stand side by side");
  require(!shape.contractive || !shape.relative || shape.by_coordinate,
          "attention layer: contractive heads with relative positions, for "
          "which the bound of the layer does not hold");
  require(!shape.by_coordinate || shape.contractive,
          "attention layer: divided by coordinate, but not contractive");
  require(!shape.quiet || (tied() && shape.project && shape.relative),
          "attention layer: a quiet start is that of l2 heads with relative "
          "positions and an output");
  if (shape_.head_width == 0) shape_.head_width = d / shape.heads;
  if (shape.rotary) {
    rotary_ = Rotary{};
    require_rotatable(*rotary_, head_width(), shape.kind);
  }
  const Index all = all_heads();
  if (shape.quiet) {
    in_ = layout.add_matrix(name + ".q.weight", d, all,
                            quiet_query(d, head_width()), shape.heads);
    value_ = layout.add_matrix(name + ".v.weight", d, all, quiet_value(d),
                               shape.heads);
  } else if (tied()) {
    // the starts are those of as many heads as share the width
    const Index sharing = d / head_width();
    in_ = layout.add_matrix(name + ".q.weight", d, all, tied_query(d, sharing),
                            shape.heads);
    value_ =
        layout.add_matrix(name + ".v.weight", d, all,
                          tied_value(d, sharing, shape.layers), shape.heads);
  } else {
    in_ = layout.add_matrix(
        name + ".qkv.weight", d, 3 * all,
        {.deviation = std::sqrt(2.0 / static_cast<double>(d + 3 * all))},
        3 * shape.heads);
  }
  if (shape.quiet)
    output_ = layout.add_matrix(name + ".o.weight", all, d, quiet_output(d));
  else if (shape.project)
    output_ = layout.add_matrix(name + ".o.weight", all, d);
  if (shape.relative)
    distances_ = layout.add_table(
        name + ".distance_bias", shape.heads, shape.context,
        shape.quiet ? quiet_distances(d, head_width()) : zeros());
}

template <class Real>
ConstL2Views<Real> AttentionLayer<Real>::l2_views(
    const VectorOf<Real>& weights) const {
  return {tensor(weights, in_), tensor(weights, value_),
          tensor(weights, output_)};
}

// what head h compares and mixes of one sequence; the square root of k is in q
template <class Real>
HeadFeatures<Real> AttentionLayer<Real>::features(Index sequence, Index h,
                                                  Index length) const {
  const Index k = head_width();
  const auto part = [&](Index which) {
    return projected_.block(sequence * length, which * all_heads() + h * k,
                            length, k);
  };
  HeadFeatures<Real> raw{part(0), part(tied() ? 0 : 1), part(tied() ? 0 : 2)};
  if (rotary_) Rope<Real>(length, k, *rotary_).rotate(raw);
  if (kind().query_over_root) raw.q /= std::sqrt(static_cast<Real>(k));
  const KindFeatures<Real>& how = kind().template features<Real>();
  return how.make ? how.make(raw, {}) : raw;
}

template <class Real>
Weighting AttentionLayer<Real>::weighting(const VectorOf<Real>& weights,
                                          Index h, Index length) const {
  Weighting causal{.mask = Mask::causal};
  if (!shape_.relative) return causal;
  require(length <= shape_.context, "attention layer: {} tokens, {} distances",
          length, shape_.context);
  causal.by_distance = Vector::Zero(2 * length - 1);
  causal.by_distance.head(length) = tensor(weights, distances_)
                                        .row(h)
                                        .head(length)
                                        .reverse()
                                        .transpose()
                                        .template cast<double>();
  return causal;
}

template <class Real>
const MatrixOf<Real>& AttentionLayer<Real>::forward(
    const VectorOf<Real>& weights, const MatrixOf<Real>& x, const Pass& pass) {
  const Index n = x.rows(), k = head_width();
  x_ = &x;
  projected_.resize(n, in_.cols);
  multiply_rows(view(x), as_is(tensor(weights, in_)), view(projected_), pass);

  mixed_.resize(n, all_heads());
  heads_.resize(pass.sequences * shape_.heads);
  // products of a head are small: two parts of tiles would not gain
  const Precision products =
      pass.products == Precision::bf16 ? Precision::bf16 : Precision::full;
  parallel_for(pass.sequences * shape_.heads, pass.threads, [&](Index i) {
    const Index sequence = i / shape_.heads, h = i % shape_.heads;
    heads_[i].emplace(features(sequence, h, pass.length),
                      weighting(weights, h, pass.length),
                      TiledHead<Real>::Keep::weights, products);
    mixed_.block(sequence * pass.length, h * k, pass.length, k) =
        heads_[i]->value();
  });

  if (tied()) make_effective_output(weights);
  if (!tied() && !shape_.project) return mixed_;
  const ConstView<Real> output =
      tied() ? view(std::as_const(effective_)) : tensor(weights, output_);
  y_.resize(n, output.cols());
  multiply_rows(view(std::as_const(mixed_)), as_is(output), view(y_), pass);
  return y_;
}

template <class Real>
const MatrixOf<Real>& AttentionLayer<Real>::backward(
    const VectorOf<Real>& weights, VectorOf<Real>& gradients,
    const MatrixOf<Real>& gy, const Pass& pass) {
  const Index n = gy.rows(), k = head_width();
  if (tied() || shape_.project) {
    // y = mixed W_O:  gmixed = gy W_Oᵀ,  gW_O = mixedᵀ gy  (tied: U for W_O)
    const ConstView<Real> output =
        tied() ? view(std::as_const(effective_)) : tensor(weights, output_);
    gmixed_.resize(n, all_heads());
    multiply_rows(view(gy), transposed(output), view(gmixed_), pass);
    if (tied()) geffective_.resize(effective_.rows(), effective_.cols());
    product_into<Real>(transposed(view(std::as_const(mixed_))), as_is(view(gy)),
                       tied() ? view(geffective_) : tensor(gradients, output_),
                       pass.threads, pass.products);
  } else {
    gmixed_ = gy;
  }

  // mixed_h = P_h v_h, head by head back to the projections
  gprojected_.resize(n, in_.cols);
  if (shape_.relative) gdistances_.resize(heads_.size());
  parallel_for(pass.sequences * shape_.heads, pass.threads, [&](Index i) {
    const Index row = i / shape_.heads * pass.length, h = i % shape_.heads;
    const auto place = [&](Index which) {
      return Rectangle{row, which * all_heads() + h * k, pass.length, k};
    };
    const ConstView<Real> gz = view(std::as_const(gmixed_), place(0));
    const TiledHead<Real>& head = *heads_[i];
    const auto cotangent = [&](HeadViews<Real> g) {
      if (shape_.relative)
        head.cotangent(gz, std::move(g), gdistances_[i]);
      else
        head.cotangent(gz, std::move(g));
    };
    const KindFeatures<Real>& how = kind().template features<Real>();
    if (!how.make && !rotary_) {  // they are the projections
      View<Real> gq = view(gprojected_, place(0));
      cotangent({gq, view(gprojected_, place(1)), view(gprojected_, place(2))});
      if (kind().query_over_root) gq /= std::sqrt(static_cast<Real>(k));
      return;
    }
    const HeadFeatures<Real>& at = head.at();
    HeadFeatures<Real> g{MatrixOf<Real>(pass.length, at.q.cols()),
                         MatrixOf<Real>(pass.length, at.k.cols()),
                         MatrixOf<Real>(pass.length, at.v.cols())};
    cotangent(view(g));
    HeadFeatures<Real> raw =
        how.make ? how.cotangent({}, at, g, {}) : std::move(g);
    if (kind().query_over_root) raw.q /= std::sqrt(static_cast<Real>(k));
    if (rotary_) Rope<Real>(pass.length, k, *rotary_).unrotate(raw);
    if (tied()) {  // q, k and v are all x W_Q
      view(gprojected_, place(0)) = raw.q + raw.k + raw.v;
    } else {
      view(gprojected_, place(0)) = raw.q;
      view(gprojected_, place(1)) = raw.k;
      view(gprojected_, place(2)) = raw.v;
    }
  });

  // b_h,t is added to all scores of the distance t, in every sequence
  if (shape_.relative) {
    Matrix sums = Matrix::Zero(shape_.heads, shape_.context);
    for (Index i = 0; i < pass.sequences * shape_.heads; ++i)
      sums.row(i % shape_.heads).head(pass.length) +=
          gdistances_[i].head(pass.length).reverse().transpose();
    tensor(gradients, distances_) = sums.template cast<Real>();
  }

  // projected = x W:  gx = gprojected Wᵀ,  gW = xᵀ gprojected
  gx_.resize(n, shape_.width);
  multiply_rows(view(std::as_const(gprojected_)),
                transposed(tensor(weights, in_)), view(gx_), pass);
  product_into<Real>(transposed(view(*x_)),
                     as_is(view(std::as_const(gprojected_))),
                     tensor(gradients, in_), pass.threads, pass.products);
  if (tied()) effective_output_backward(weights, gradients);
  return gx_;
}

template <class Real>
void AttentionLayer<Real>::make_effective_output(
    const VectorOf<Real>& weights) {
  const Index d = shape_.width, k = head_width();
  const ConstL2Views<Real> w = l2_views(weights);
  inner_.resize(all_heads(), k);
  effective_.setZero(all_heads(), shape_.project ? d : all_heads());
  for (Index h = 0; h < shape_.heads; ++h) {
    const Rectangle columns{0, h * k, d, k}, rows{h * k, 0, k, d};
    View<Real> inner = view(inner_, {h * k, 0, k, k});
    gemm<Real>(transposed(view(w.query, columns)),
               as_is(view(w.value, columns)), inner);
    inner /= std::sqrt(static_cast<Real>(k));
    if (shape_.project)
      gemm<Real>(as_is(read_only(inner)), as_is(view(w.output, rows)),
                 view(effective_, rows));
    else
      effective_.block(h * k, h * k, k, k) = inner;
  }
  if (shape_.by_coordinate) {
    divide_effective(weights);
    return;
  }
  divisor_ = divisor(weights);
  if (divisor_ != 1.0) effective_ /= static_cast<Real>(divisor_);
}

// p of the numbers for each distance, or of the context
template <class Real>
Vector AttentionLayer<Real>::phi_inverses(const VectorOf<Real>& weights) const {
  const std::optional<RelativeBias> bias = exported_relative_bias(weights);
  return head_phi_inverses(bias ? &*bias : nullptr, shape_.heads,
                           shape_.context);
}

// U → E = U diag(1/c)
template <class Real>
void AttentionLayer<Real>::divide_effective(const VectorOf<Real>& weights) {
  const Vector c = coordinate_contractions<Real>(
      tensor(weights, in_), view(std::as_const(effective_)),
      phi_inverses(weights));
  divisors_ = (c.array() > 0.0)
                  .select(c.array() / shape_.contraction, 1.0)
                  .matrix()
                  .template cast<Real>();
  for (Index j = 0; j < effective_.cols(); ++j)
    effective_.col(j) /= divisors_[j];
}

// gE → gU, with what comes back through c
template <class Real>
void AttentionLayer<Real>::divide_effective_backward(
    const VectorOf<Real>& weights, VectorOf<Real>& gradients) {
  // E_j = U_j/c_j:  gc_j = −⟨gE_j, E_j⟩/c_j,  gU_j = gE_j/c_j
  Vector gc(effective_.cols());
  for (Index j = 0; j < effective_.cols(); ++j) {
    gc[j] = -static_cast<double>(geffective_.col(j).dot(effective_.col(j))) /
            static_cast<double>(divisors_[j]) / shape_.contraction;
    geffective_.col(j) /= divisors_[j];
    effective_.col(j) *= divisors_[j];
  }
  const Vector gp = coordinate_contractions_backward<Real>(
      tensor(weights, in_), view(std::as_const(effective_)),
      phi_inverses(weights), gc, tensor(gradients, in_), view(geffective_));
  if (!shape_.relative) return;
  for (Index h = 0; h < shape_.heads; ++h) {
    Vector gbehind;
    distance_phi_inverse(
        tensor(weights, distances_).row(h).transpose().template cast<double>(),
        gbehind);
    tensor(gradients, distances_).row(h) +=
        (gp[h] * gbehind).transpose().template cast<Real>();
  }
}

template <class Real>
void AttentionLayer<Real>::effective_output_backward(
    const VectorOf<Real>& weights, VectorOf<Real>& gradients) {
  const Index d = shape_.width, k = head_width();
  const ConstL2Views<Real> w = l2_views(weights);
  L2Views<Real> g{tensor(gradients, in_), tensor(gradients, value_),
                  tensor(gradients, output_)};
  double gdivisor = 0.0;
  if (shape_.by_coordinate) {
    divide_effective_backward(weights, gradients);
  } else {
    // E = U/c:  gc = −⟨gE, E⟩/c,  gU = gE/c
    gdivisor =
        -geffective_.cwiseProduct(effective_).template cast<double>().sum() /
        divisor_;
    geffective_ /= static_cast<Real>(divisor_);
  }
  const Real scale = 1 / std::sqrt(static_cast<Real>(k));
  MatrixOf<Real> ginner(k, k);
  for (Index h = 0; h < shape_.heads; ++h) {
    const Rectangle columns{0, h * k, d, k}, rows{h * k, 0, k, d};
    if (shape_.project) {
      const ConstView<Real> geffective = view(std::as_const(geffective_), rows);
      // U_h = M_h W_O:  gW_O = M_hᵀ gU_h,  gM_h = gU_h W_Oᵀ
      gemm<Real>(transposed(view(std::as_const(inner_), {h * k, 0, k, k})),
                 as_is(geffective), view(g.output, rows));
      gemm<Real>(as_is(geffective), transposed(view(w.output, rows)),
                 view(ginner));
    } else {
      ginner = geffective_.block(h * k, h * k, k, k);
    }
    // M_h = W_Qᵀ W_V/√k:  gW_V = W_Q gM_h/√k,  gW_Q += W_V gM_hᵀ/√k
    ginner *= scale;
    gemm<Real>(as_is(view(w.query, columns)), as_is(ginner),
               view(g.value, columns));
    gemm<Real>(as_is(view(w.value, columns)), transposed(ginner),
               view(g.query, columns), Into::add);
  }
  if (shape_.contractive && !shape_.by_coordinate)
    contraction_backward(w, shape_.heads, shape_.context,
                         gdivisor / shape_.contraction, g);
}

template <class Real>
double AttentionLayer<Real>::divisor(const VectorOf<Real>& weights) const {
  require(!shape_.by_coordinate,
          "attention layer: each coordinate has a divisor of its own");
  return shape_.contractive
             ? contraction(l2_views(weights), shape_.heads, shape_.context) /
                   shape_.contraction
             : 1.0;
}

template <class Real>
AttentionWeights AttentionLayer<Real>::exported(
    const VectorOf<Real>& weights) const {
  const Index all = all_heads();
  const Matrix in = tensor(weights, in_).template cast<double>();
  AttentionWeights w{.query = in.leftCols(all), .heads = shape_.heads};
  if (tied()) {
    w.value = tensor(weights, value_).template cast<double>();
  } else {
    w.key = in.middleCols(all, all);
    w.value = in.rightCols(all);
  }
  if (!shape_.project) return w;
  w.output = tensor(weights, output_).template cast<double>();
  if (shape_.by_coordinate)
    divide_coordinates(w, phi_inverses(weights), shape_.contraction);
  else
    w.output /= divisor(weights);
  return w;
}

template <class Real>
std::optional<RelativeBias> AttentionLayer<Real>::exported_relative_bias(
    const VectorOf<Real>& weights) const {
  if (!shape_.relative) return std::nullopt;
  return RelativeBias{
      .table = tensor(weights, distances_).transpose().template cast<double>(),
      .looks_back = true};
}

template class AttentionLayer<float>;
template class AttentionLayer<double>;

}  // namespace lipscope
