#include "lipscope/control/contractive.h"

#include <cmath>

#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/kim21.h"
#include "lipscope/theory/norms.h"

namespace lipscope {
namespace {

Magnitude weight_factor(const AttentionWeights& w, bool project) {
  std::vector<L2HeadNorms> heads;
  for (Index h = 0; h < w.heads; ++h)
    heads.push_back(l2_head_norms(head(w, h)));
  const bool projected = project && w.output.size() > 0;
  return kim21_inf_weight_factor(
      heads, projected ? row_sum_above(w.output.transpose()) : 1.0);
}

}  // namespace

template <class Real>
Real contractive_factor(Magnitude lipschitz) {
  const double l = lipschitz.value();
  require(std::isfinite(l), "contractive: the bound is 10^{:.1f}",
          lipschitz.log10());
  if (l == 0.0) return 1;
  const double below = std::nextafter(1.0 / l, 0.0);
  const Real factor = static_cast<Real>(below);  // rounds to nearest
  return factor > below ? std::nextafter(factor, Real(0)) : factor;
}

template <class Real>
ContractiveL2<Real>::ContractiveL2(const AttentionWeights& weights,
                                   AttentionOptions options)
    : attention_(weights, options),
      sequences_(options.sequences),
      width_(weights.query_width()),
      mask_(options.mask),
      weights_(weight_factor(weights, options.project)) {
  require(options.kind == Kind::l2, "contractive: {} attention has no bound",
          name_of(options.kind));
  require(kind_of(options.kind).lipschitz_under(options.mask),
          "contractive: {}", why_no_bounds(options.kind, options.mask));
  require(options.heads.empty() && options.log_mass.size() == 0 &&
              options.seen.empty(),
          "contractive: the bound is that of all heads and of tokens that "
          "weigh alike");
  require(!options.relative_bias,
          "contractive: the bound does not hold with relative positions");
}

template <class Real>
Magnitude ContractiveL2<Real>::bound(Index n) const {
  return kim21_inf(most_visible(mask_, n), width_) * weights_;
}

template <class Real>
Real ContractiveL2<Real>::factor(const MatrixOf<Real>& x) const {
  return contractive_factor<Real>(bound(x.rows() / sequences_));
}

template <class Real>
MatrixOf<Real> ContractiveL2<Real>::operator()(const MatrixOf<Real>& x) const {
  return factor(x) * attention_(x);
}

template <class Real>
std::unique_ptr<LinearOperator<Real>> ContractiveL2<Real>::linearize(
    const MatrixOf<Real>& x) const {
  return scale(factor(x), attention_.linearize(x));
}

template <class Real>
MapPtr<Real> contractive_mlp(const MlpWeights& weights, Norm norm,
                             int threads) {
  return scale<Real>(contractive_factor<Real>(mlp_lipschitz(weights, norm)),
                     std::make_unique<Mlp<Real>>(weights, threads));
}

Matrix spectral_cap(const Matrix& w, double cap) {
  require(cap > 0.0 && std::isfinite(cap), "spectral_cap: a cap of {}", cap);
  Matrix capped = w;
  // scaling rounds every entry: what comes out is proved anew
  for (double norm = weight_norm_above(w); norm > cap;
       norm = weight_norm_above(capped))
    capped *= cap / norm * (1.0 - 0x1p-40);
  return capped;
}

template float contractive_factor(Magnitude);
template double contractive_factor(Magnitude);
template class ContractiveL2<float>;
template class ContractiveL2<double>;
template MapPtr<float> contractive_mlp(const MlpWeights&, Norm, int);
template MapPtr<double> contractive_mlp(const MlpWeights&, Norm, int);

}  // namespace lipscope
