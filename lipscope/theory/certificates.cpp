#include "lipscope/theory/certificates.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "lipscope/core/errors.h"
#include "lipscope/theory/castin24.h"
#include "lipscope/theory/covariances.h"
#include "lipscope/theory/exact_norm.h"
#include "lipscope/theory/gram_cost.h"
#include "lipscope/theory/layer_at.h"
#include "lipscope/theory/leading_apart.h"
#include "lipscope/theory/norms.h"
#include "lipscope/theory/split_paths.h"
#include "lipscope/theory/token_pairs.h"
#include "lipscope/theory/yudin25.h"

namespace lipscope {
namespace {

const Statement& statement_of(Certificate which) {
  switch (which) {
    case Certificate::castin24_ball:
      return castin24_ball_statement;
    case Certificate::castin24_data:
      return castin24_data_statement;
    case Certificate::yudin25_local:
      return yudin25_local_statement;
    case Certificate::covariances:
      return covariances_statement;
    case Certificate::split_paths:
      return split_paths_statement;
    case Certificate::token_pairs:
      return token_pairs_statement;
    case Certificate::leading_apart:
      return leading_apart_statement;
    case Certificate::exact_norm:
      return exact_norm_statement;
  }
  throw std::invalid_argument("certificate: no such certificate");
}

// norms of the heads' weights, for the certificates made head by head
struct HeadwiseNorms {
  std::vector<double> score, value, projected;  // ‖A‖, ‖W_V‖, ‖W_V W_O‖
  std::vector<Matrix> query_factor;             // FFᵀ ⪰ W_QᵀW_Q, [k×k]
  double output = 1.0;                          // ‖W_O‖
};

HeadwiseNorms headwise_norms(const LayerParts& l) {
  HeadwiseNorms out;
  for (Index h = 0; h < l.heads; ++h) {
    const Matrix q = l.query.middleCols(h * l.k, l.k);
    const Matrix v = l.value.middleCols(h * l.w, l.w);
    out.score.push_back(product_norm_above(q, l.key.middleCols(h * l.k, l.k)));
    out.value.push_back(weight_norm_above(v));
    out.projected.push_back(
        l.projected ? product_norm_above(
                          v, l.output.middleRows(h * l.w, l.w).transpose())
                    : out.value.back());
    out.query_factor.push_back(factor_above(gram_of_columns(q)));
  }
  if (l.projected) out.output = weight_norm_above(l.output);
  return out;
}

double diameter(const Matrix& x) {
  double most = 0.0;
  for (Index i = 0; i < x.rows(); ++i)
    for (Index j = 0; j < i; ++j)
      most = std::max(most, length_above(x.row(i) - x.row(j)));
  return most;
}

// the certificate of one head at ‖V‖ = 1
Magnitude of_head(Certificate which, const LayerParts& l,
                  const HeadwiseNorms& norms, const LayerAt& at, Index h) {
  const Index n = at.x.rows();
  const Matrix& p = at.p[h];
  switch (which) {
    case Certificate::castin24_ball:
      return castin24_ball(norms.score[h], longest_row(at.x), n);
    case Certificate::castin24_data: {
      // x_iA and A x_iᵀ, without the biases of the features
      const Matrix q = l.query.middleCols(h * l.k, l.k);
      const Matrix k = l.key.middleCols(h * l.k, l.k);
      const double pull = std::max(longest_row((at.x * q) * k.transpose()),
                                   longest_row((at.x * k) * q.transpose()));
      return castin24_data(pull, diameter(at.x), n);
    }
    case Certificate::yudin25_local: {
      double g1 = 0.0;
      for (Index i = 0; i < n; ++i)
        g1 = std::max(g1, yudin25_g1(p.row(i).transpose()));
      return yudin25_local(nonnegative_norm_above(p), weight_norm_above(at.x),
                           norms.score[h], g1);
    }
    default:
      return covariances(l, norms.query_factor[h], at, h);
  }
}

Magnitude headwise(Certificate which, const LayerParts& l,
                   const HeadwiseNorms& norms, const LayerAt& at) {
  Magnitude sum = 0.0, squares = 0.0;
  for (Index h = 0; h < l.heads; ++h) {
    const Magnitude one = of_head(which, l, norms, at, h);
    const Magnitude alone = one * norms.value[h];
    squares = squares + alone * alone;
    sum = sum + one * norms.projected[h];
  }
  const Magnitude side_by_side = root(squares);
  return l.projected ? smaller(sum, side_by_side * norms.output) : side_by_side;
}

}  // namespace

// the two sets of norms and the map of the heads are made when first asked for
struct LocalCertificates::Made {
  AttentionWeights weights;
  AttentionOptions options;
  LayerParts layer;
  mutable std::once_flag split_once, norms_once, heads_once;
  mutable std::optional<SplitWeights> split_made;
  mutable std::optional<HeadwiseNorms> norms_made;
  mutable std::optional<MultiHeadAttention<double>> heads_made;

  Made(const AttentionWeights& w, const AttentionOptions& o)
      : weights(w), options(o), layer(layer_parts(w, o)) {}

  const SplitWeights& split() const {
    std::call_once(split_once, [&] { split_made = split_weights(layer); });
    return *split_made;
  }
  const HeadwiseNorms& norms() const {
    std::call_once(norms_once, [&] { norms_made = headwise_norms(layer); });
    return *norms_made;
  }
  /// Side by side, without W_O.
  const MultiHeadAttention<double>& heads() const {
    std::call_once(heads_once, [&] {
      AttentionOptions apart = options;
      apart.project = false;
      heads_made.emplace(weights, apart);
    });
    return *heads_made;
  }
};

LocalCertificates::LocalCertificates(const AttentionWeights& weights,
                                     const AttentionOptions& options)
    : made_(std::make_unique<Made>(weights, options)) {}
LocalCertificates::~LocalCertificates() = default;
LocalCertificates::LocalCertificates(LocalCertificates&&) noexcept = default;
LocalCertificates& LocalCertificates::operator=(LocalCertificates&&) noexcept =
    default;

std::string name_of(Certificate which) { return statement_of(which).name; }

bool LocalCertificates::offers(Certificate which) const {
  const LayerParts& l = made_->layer;
  if (which == Certificate::split_paths || which == Certificate::token_pairs ||
      which == Certificate::leading_apart || which == Certificate::exact_norm)
    return true;
  return l.plain &&
         (which == Certificate::covariances || (!l.biased && !l.relative));
}

std::optional<std::string> LocalCertificates::too_large(Certificate which,
                                                        Index n) const {
  if (which != Certificate::exact_norm && which != Certificate::leading_apart)
    return std::nullopt;
  const GramCost cost = which == Certificate::exact_norm
                            ? exact_cost(made_->layer, n)
                            : leading_cost(made_->layer, n);
  if (cost.fits()) return std::nullopt;
  return cost.text();
}

Certificate LocalCertificates::usual(Index n) const {
  constexpr Index few = 64;
  const LayerParts& l = made_->layer;
  return l.plain && l.heads == 1 && n <= few ? Certificate::token_pairs
                                             : Certificate::split_paths;
}

Bound LocalCertificates::at(const Matrix& x, Certificate which) const {
  const LayerParts& layer = made_->layer;
  require(offers(which), "certificate: {} is not proved {}", name_of(which),
          layer.plain ? "with a query bias or relative positions"
                      : "for other kinds than dot, nor for rotary positions "
                        "and q/k-norm");
  const std::optional<std::string> large = too_large(which, x.rows());
  require(!large, "certificate: {} needs {}", name_of(which),
          large.value_or(""));
  const LayerAt here = layer_at(layer, x);
  Magnitude value = 0.0;
  if (which == Certificate::split_paths)
    value = split_paths(layer, made_->split(), here);
  else if (which == Certificate::token_pairs)
    value = token_pairs(layer, here);
  else if (which == Certificate::leading_apart)
    value = smaller(leading_apart(layer, here, made_->heads()),
                    split_paths(layer, made_->split(), here));
  else if (which == Certificate::exact_norm)
    value = exact_norm(layer, here);
  else
    value = headwise(which, layer, made_->norms(), here);
  return make_bound(statement_of(which), value * (1.0 + here.allowance),
                    InputSet::one());
}

Bound local_certificate(const AttentionWeights& weights,
                        const AttentionOptions& options, const Matrix& x,
                        Certificate which) {
  return LocalCertificates(weights, options).at(x, which);
}

}  // namespace lipscope
