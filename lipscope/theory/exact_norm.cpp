#include "lipscope/theory/exact_norm.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/memory.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rounding.h"
#include "lipscope/theory/magnitude.h"
#include "lipscope/theory/norms.h"
#include "lipscope/theory/token_slopes.h"

namespace lipscope {
namespace {

constexpr double most_flops = 1e12, most_bytes = 2e9;

bool values_bend(const LayerParts& l) {
  return !kind_of(l.options.kind).values_as_they_are;
}

// r of exact_norm.h
Index output_width(const LayerParts& l) {
  return l.projected ? std::min(l.output.cols(), l.heads * l.w) : l.heads * l.w;
}

// The part of what token i does by its query: E_iᵀU_i and E_iᵀE_i [H·w×H·w],
// and p_i'i^g E_i for the heads g of some tokens i' [·H×H·w].
struct OwnParts {
  Matrix value, gram, pull;
  Index first = 0;  // of these tokens
};

// What the logits of token i say of the tokens j, for each head: p_ij [·×d] and
// p_ijU_j [·×H·w]. Where queries and keys are their projections p_ij does not
// depend on j, and there is one row for all.
struct Pulls {
  std::vector<Matrix> pull, value;
};

// What the parts of G are made of.
class GramParts {
 public:
  GramParts(const LayerParts& l, const LayerAt& at);

  /// S.
  double size() const { return size_; }
  /// Whether products of these numbers stay within the range of double.
  bool moderate() const {
    constexpr double least = 1e-40, most = 1e100;
    return size_ > least && size_ < most && largest_ < most;
  }

  /// G/scale², for a power of two.
  Matrix gram(double scale) const;
  /// Its part G_ii/scale².
  Matrix own_gram(Index i, double scale) const;

 private:
  Index at_token(Index j) const { return l_.plain ? 0 : j; }
  auto step(Index h, Index i, Index j) const {  // z_ij^h
    return at_.v.row(j).segment(h * w_, w_) -
           centre_.row(i).segment(h * w_, w_);
  }
  // q_iS_j, a row for each j or one for all
  Matrix queries_at_keys(Index i) const {
    return l_.plain ? Matrix(at_.q.row(i)) : query_at_keys(l_, at_, i, {0, n_});
  }
  Pulls pulls_of(Index i) const;
  Matrix own_of(Index i) const;  // E_i [d×H·w]
  double summed_sizes();
  Matrix through_keys(Index i, const Pulls& a, Index h, Index other,
                      const Pulls& b, Index g) const;
  void add_values(Index i, Index other, Matrix& sum) const;
  void add_own(const OwnParts& own, Index i, Index other, Matrix& sum) const;
  void through_output(const Matrix& output, double scale, Matrix& sum) const;

  const LayerParts& l_;
  const LayerAt& at_;
  Index n_, H_, w_, d_;
  Matrix output_;  // F; empty where it is the identity
  Matrix centre_, queries_;
  Matrix shared_key_, shared_query_;  // of q/k-norm over heads
  // U_j side by side [d×H·w] and their Gram matrices: one for all tokens, or
  // where values bend one for each
  std::vector<Matrix> value_, value_gram_;
  double size_ = 0.0, largest_ = 0.0;
};

GramParts::GramParts(const LayerParts& l, const LayerAt& at)
    : l_(l),
      at_(at),
      n_(at.x.rows()),
      H_(l.heads),
      w_(l.w),
      d_(l.value.rows()),
      centre_(centres(l, at)) {
  if (l.projected)
    output_ = l.output.cols() > H_ * w_ ? factor_above(gram_of_rows(l.output))
                                        : l.output;
  const bool bend = values_bend(l);
  value_.resize(bend ? n_ : 1);
  value_gram_.resize(value_.size());
  parallel_for(static_cast<Index>(value_.size()), l.threads, [&](Index j) {
    value_[j] = l.value;
    if (bend)
      for (Index h = 0; h < H_; ++h)
        value_[j].middleCols(h * w_, w_) =
            l.value.middleCols(h * w_, w_) *
            to_projections(l, at, h, Feature::value, Matrix::Identity(w_, w_),
                           j)
                .transpose();
    value_gram_[j] = gram_of_columns(value_[j]).g;
  });
  queries_ = query_parts(l, at, centre_);
  shared_key_ = shared_direction(l, at, Feature::key);
  shared_query_ = shared_direction(l, at, Feature::query);
  size_ = summed_sizes();
}

Pulls GramParts::pulls_of(Index i) const {
  const Index k = l_.k;
  const Matrix y = queries_at_keys(i);
  Pulls out;
  for (Index h = 0; h < H_; ++h) {
    const auto of_head = y.middleCols(h * k, k);
    Matrix pull = of_head * l_.key.middleCols(h * k, k).transpose();
    if (shared_key_.size() > 0) {
      const Vector along =
          of_head.cwiseProduct(shared_key_.middleCols(h * k, k))
              .rowwise()
              .sum();
      pull.noalias() -= (along.asDiagonal() * shared_key_) * l_.key.transpose();
    }
    Matrix through(pull.rows(), H_ * w_);
    if (value_.size() == 1)
      through.noalias() = pull * value_[0];
    else
      for (Index j = 0; j < n_; ++j)
        through.row(j).noalias() = pull.row(at_token(j)) * value_[j];
    out.pull.push_back(std::move(pull));
    out.value.push_back(std::move(through));
  }
  return out;
}

Matrix GramParts::own_of(Index i) const {
  const Index k = l_.k;
  Matrix own(d_, H_ * w_);
  for (Index h = 0; h < H_; ++h) {
    const Matrix c = queries_.block(i * w_, h * k, w_, k).transpose();
    own.middleCols(h * w_, w_).noalias() = l_.query.middleCols(h * k, k) * c;
    if (shared_query_.size() > 0)
      own.middleCols(h * w_, w_).noalias() -=
          (l_.query * shared_query_.row(i).transpose()) *
          (shared_query_.row(i).segment(h * k, k) * c);
  }
  return own;
}

// S: the sizes of the terms of B_ijF with nothing cancelled. Numbers that are
// sums of products of x with weights are given a thousandth of the size of the
// terms of those sums at least (more for very many terms).
double GramParts::summed_sizes() {
  const Index k = l_.k, width = at_.k.cols() / H_;
  const double terms = static_cast<double>(d_ + n_);
  const double share = 1e-3 * std::max(1.0, terms / 4000.0);
  const double longest = at_.x.rowwise().norm().maxCoeff();
  // sizes of features with slopes are looked after by slope_rounding
  const double projected = at_.bent.empty() && !at_.query_norm ? share : 0.0;
  Matrix sizes = Matrix::Zero(n_, n_);
  // |q_iS_j| of each head, [n×n] or [n×1]
  std::vector<Matrix> asked(H_, Matrix(n_, l_.plain ? 1 : n_));
  parallel_for(n_, l_.threads, [&](Index i) {
    const Matrix y = queries_at_keys(i);
    for (Index h = 0; h < H_; ++h)
      asked[h].row(i) = y.middleCols(h * k, k).rowwise().norm().transpose();
  });
  for (Index h = 0; h < H_; ++h) {
    const auto of_head = [&](const Matrix& weights, Index columns) {
      return l_.normed_over_heads()
                 ? weights.norm()
                 : weights.middleCols(h * columns, columns).norm();
    };
    const double query = of_head(l_.query, k), key = of_head(l_.key, k);
    const double value = l_.value_size[h];
    const double output =
        output_.size() > 0 ? output_.middleRows(h * w_, w_).norm() : 1.0;
    const double least_query =
        projected * (longest * query + l_.query_bias.segment(h * k, k).norm());
    const double least_key =
        projected * (longest * key + l_.key_bias.segment(h * k, k).norm());
    const double least_value =
        share * (at_.v.middleCols(h * w_, w_).rowwise().norm().maxCoeff() +
                 (values_bend(l_) ? 0.0 : longest * value));
    const Vector keys = at_.k.middleCols(h * width, width).rowwise().norm();
    Vector slopes(n_);  // of values
    for (Index j = 0; j < n_; ++j)
      slopes[j] =
          value *
          (values_bend(l_) ? slope_size(l_, at_, h, Feature::value, j) : 1.0);
    largest_ = std::max({largest_, value, key, query, output, least_value,
                         slopes.maxCoeff(), keys.maxCoeff(),
                         asked[h].maxCoeff() * std::max(1.0, key)});
    for (Index i = 0; i < n_; ++i) {
      double own = 0.0;
      for (Index j = 0; j < n_; ++j) {
        const double moved = at_.slope(h)(i, j);
        const double z = Vector(step(h, i, j)).norm() + least_value;
        const double pull = key * (asked[h](i, at_token(j)) + least_query);
        sizes(i, j) += output * (at_.p[h](i, j) * slopes[j] + moved * pull * z);
        own += moved * (keys[j] + least_key) * z;
        largest_ = std::max(largest_, z);
      }
      const double slope = slope_size(l_, at_, h, Feature::query, i);
      sizes(i, i) += output * query * slope * own;
    }
  }
  if (!sizes.allFinite()) return INFINITY;
  return nonnegative_norm_above(sizes) * (1.0 + 1e-9);
}

// the terms with keys, for head h of token i and head g of the other
Matrix GramParts::through_keys(Index i, const Pulls& a, Index h, Index other,
                               const Pulls& b, Index g) const {
  const TokenRange mine = visible(l_.mask, i, n_);
  const TokenRange its = visible(l_.mask, other, n_);
  const Index begin = std::max(mine.begin, its.begin);
  const Index m = std::max(Index{0}, std::min(mine.end, its.end) - begin);
  Matrix left(2 * m, w_), right(2 * m, w_);
  double both = 0.0;
  if (l_.plain) both = a.pull[h].row(0).dot(b.pull[g].row(0));
  for (Index t = 0; t < m; ++t) {
    const Index j = begin + t, at = at_token(j);
    if (!l_.plain) both = a.pull[h].row(at).dot(b.pull[g].row(at));
    const double moved = at_.slope(h)(i, j), moves = at_.slope(g)(other, j);
    left.row(t) =
        (moved * moves * both) * step(h, i, j) +
        (at_.p[h](i, j) * moves) * b.value[g].row(at).segment(h * w_, w_);
    right.row(t) = step(g, other, j);
    left.row(m + t) = moved * step(h, i, j);
    right.row(m + t) =
        at_.p[g](other, j) * a.value[h].row(at).segment(g * w_, w_);
  }
  return left.transpose() * right;
}

void GramParts::add_values(Index i, Index other, Matrix& sum) const {
  for (Index h = 0; h < H_; ++h)
    for (Index g = 0; g < H_; ++g) {
      const auto shares =
          at_.p[h].row(i).cwiseProduct(at_.p[g].row(other)).eval();
      auto to = sum.block(h * w_, g * w_, w_, w_);
      if (value_gram_.size() == 1)
        to += shares.sum() * value_gram_[0].block(h * w_, g * w_, w_, w_);
      else
        for (Index j = 0; j < n_; ++j)
          if (shares[j] != 0.0)
            to += shares[j] * value_gram_[j].block(h * w_, g * w_, w_, w_);
    }
}

// E_iᵀB_i'i, where i' is the other token
void GramParts::add_own(const OwnParts& own, Index i, Index other,
                        Matrix& sum) const {
  for (Index g = 0; g < H_; ++g) {
    auto to = sum.middleCols(g * w_, w_);
    to += at_.p[g](other, i) * own.value.middleCols(g * w_, w_);
    to.noalias() += (at_.slope(g)(other, i) *
                     own.pull.row((other - own.first) * H_ + g).transpose()) *
                    step(g, other, i);
  }
}

// FᵀTF/scale², with `output` for F/scale
void GramParts::through_output(const Matrix& output, double scale,
                               Matrix& sum) const {
  if (output.size() == 0) {
    sum /= scale;
    sum /= scale;
    return;
  }
  const Matrix half = sum * output;
  sum = output.transpose() * half;
}

Matrix GramParts::own_gram(Index i, double scale) const {
  const Pulls pulls = pulls_of(i);
  const Matrix own = own_of(i);
  OwnParts parts{.value = own.transpose() * value_[value_.size() == 1 ? 0 : i],
                 .gram = gram_of_columns(own).g,
                 .pull = Matrix(H_, d_),
                 .first = i};
  for (Index g = 0; g < H_; ++g)
    parts.pull.row(g) = pulls.pull[g].row(at_token(i));
  parts.pull = parts.pull * own;
  Matrix sum(H_ * w_, H_ * w_), back = Matrix::Zero(H_ * w_, H_ * w_);
  for (Index h = 0; h < H_; ++h)
    for (Index g = 0; g < H_; ++g)
      sum.block(h * w_, g * w_, w_, w_) =
          through_keys(i, pulls, h, i, pulls, g);
  add_values(i, i, sum);
  add_own(parts, i, i, back);
  sum += back + back.transpose() + parts.gram;
  through_output(output_ / scale, scale, sum);
  sum.triangularView<Eigen::StrictlyUpper>() = sum.transpose();
  return sum;
}

Matrix GramParts::gram(double scale) const {
  const Index r = output_width(l_), full = H_ * w_;
  std::vector<Pulls> pulls(n_);
  parallel_for(n_, l_.threads, [&](Index i) { pulls[i] = pulls_of(i); });
  std::vector<OwnParts> own(n_);
  parallel_for(n_, l_.threads, [&](Index i) {
    const Matrix of_token = own_of(i);
    own[i].value = of_token.transpose() * value_[value_.size() == 1 ? 0 : i];
    own[i].gram = gram_of_columns(of_token).g;
    Matrix all(n_ * H_, d_);
    for (Index other = 0; other < n_; ++other)
      for (Index g = 0; g < H_; ++g)
        all.row(other * H_ + g) = pulls[other].pull[g].row(at_token(i));
    own[i].pull = all * of_token;
  });
  Matrix g(n_ * r, n_ * r);
  const Matrix output = output_ / scale;
  std::vector<std::pair<Index, Index>> pairs;
  for (Index i = 0; i < n_; ++i)
    for (Index other = 0; other <= i; ++other) pairs.emplace_back(i, other);
  parallel_for(static_cast<Index>(pairs.size()), l_.threads, [&](Index number) {
    const auto [i, other] = pairs[number];
    Matrix sum(full, full), back = Matrix::Zero(full, full);
    for (Index h = 0; h < H_; ++h)
      for (Index o = 0; o < H_; ++o)
        sum.block(h * w_, o * w_, w_, w_) =
            through_keys(i, pulls[i], h, other, pulls[other], o);
    add_values(i, other, sum);
    add_own(own[i], i, other, sum);
    add_own(own[other], other, i, back);
    sum += back.transpose();
    if (i == other) sum += own[i].gram;
    through_output(output, scale, sum);
    g.block(i * r, other * r, r, r) = sum;
    if (i != other)
      g.block(other * r, i * r, r, r) = sum.transpose();
    else  // a symmetric matrix but for rounding
      g.block(i * r, i * r, r, r).triangularView<Eigen::StrictlyUpper>() =
          sum.transpose();
  });
  return g;
}

// by what share a number of P may err: twice the error of a logit
double share_of_weights(const LayerParts& l, const LayerAt& at) {
  if (at.query_norm || values_bend(l)) return 0.0;  // bounded scores
  const double longest = at.x.rowwise().norm().maxCoeff();
  double most = 0.0;
  for (Index h = 0; h < l.heads; ++h) {
    const auto size = [&](const Matrix& weights, const Vector& bias) {
      return longest * weights.middleCols(h * l.k, l.k).norm() +
             bias.segment(h * l.k, l.k).norm();
    };
    const double q = size(l.query, l.query_bias);
    const double k = size(l.key, l.key_bias);
    most = std::max(most, at.bent.empty() ? q * k : (q + k) * (q + k));
  }
  const double error =
      8 * unit_roundoff * static_cast<double>(at.x.cols() + 8) * most;
  return std::expm1(std::min(2 * error, 600.0));
}

}  // namespace

bool ExactCost::fits() const {
  return flops <= most_flops && bytes <= most_bytes;
}

std::string ExactCost::text() const {
  return fmt::format(
      "a matrix of {} rows at n = {}: {} and {:.1e} operations, of at most {} "
      "and {:.0e}",
      rows, tokens, bytes_text(bytes), flops, bytes_text(most_bytes),
      most_flops);
}

ExactCost exact_cost(const LayerParts& l, Index tokens) {
  const double n = static_cast<double>(tokens);
  const double heads = static_cast<double>(l.heads);
  const double d = static_cast<double>(l.value.rows());
  const double full = heads * static_cast<double>(l.w);
  const double pairs = l.plain ? n : n * n;  // of which p_ij is kept
  ExactCost cost{.tokens = tokens, .rows = n * double(output_width(l))};
  cost.flops = cost.rows * cost.rows * cost.rows / 3 +
               n * n * n * (2 * full * full + heads * heads * d) +
               n * n * full * full * cost.rows / n;
  cost.bytes = 8 * (cost.rows * cost.rows + pairs * heads * (d + full) +
                    n * n * heads * full + 2 * n * full * full);
  return cost;
}

const Statement exact_norm_statement{
    .name = "exact_norm",
    .norm = Norm::two,
    .mask = "any",
    .citation =
        "lipscope: the Gram matrix of J, in the coordinates of the heads, by a "
        "Cholesky factorisation, theory/exact_norm.h"};

namespace {

// the shares γ, and ε + γ, of exact_norm.h
struct Shares {
  double sums = 0.0, all = 0.0;
};

Shares shares_of(const LayerParts& l, const LayerAt& at) {
  const double terms = static_cast<double>(2 * at.x.rows() + at.x.cols() +
                                           2 * l.heads * (l.w + l.k) + 64);
  const double gamma = 8 * unit_roundoff * terms;
  return {gamma, 4 * share_of_weights(l, at) + at.allowance + gamma};
}

double finite_size(const GramParts& parts) {
  require(std::isfinite(parts.size()), "certificate: numbers beyond double");
  return parts.size();
}

}  // namespace

Magnitude exact_norm(const LayerParts& l, const LayerAt& at) {
  const GramParts parts(l, at);
  const double size = finite_size(parts);
  const Shares shares = shares_of(l, at);
  const Magnitude rounding =
      Magnitude(size) * shares.all + slope_rounding(l, at);
  if (!parts.moderate()) return Magnitude(size) + rounding;
  const double scale = std::exp2(std::ceil(std::log2(size)));
  Matrix g = parts.gram(scale);
  if (!g.allFinite()) return Magnitude(size) + rounding;
  const double relative = size / scale;
  const double lambda = large_eigenvalue_above(
      std::move(g), well_above(shares.sums * relative * relative), l.threads);
  const double proved = well_above(scale * std::sqrt(lambda));
  return smaller(proved, size) + rounding;
}

Vector row_norms_above(const LayerParts& l, const LayerAt& at) {
  const Index n = at.x.rows();
  const GramParts parts(l, at);
  const double size = finite_size(parts);
  const Shares shares = shares_of(l, at);
  const double most = well_above(size * (1.0 + shares.all));
  Vector norms = Vector::Constant(n, most);
  if (!parts.moderate()) return norms;
  const double scale = std::exp2(std::ceil(std::log2(size)));
  const double relative = size / scale;
  const double error = well_above(shares.sums * relative * relative);
  parallel_for(n, l.threads, [&](Index i) {
    const Matrix g = parts.own_gram(i, scale);
    if (!g.allFinite()) return;
    const double lambda = eigenvalue_above(g, error);
    norms[i] = std::min(
        most, well_above(scale * std::sqrt(lambda) + shares.all * size));
  });
  return norms;
}

}  // namespace lipscope
