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

// What the parts of G are made of. Where queries and keys are their projections
// p_ij does not depend on j, and is kept once.
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

 private:
  Index at_pair(Index i, Index j) const { return l_.plain ? i : i * n_ + j; }
  auto step(Index h, Index i, Index j) const {  // z_ij^h
    return at_.v.row(j).segment(h * w_, w_) -
           centre_.row(i).segment(h * w_, w_);
  }
  void make_pulls();
  void make_own();
  double summed_sizes();
  Matrix through_keys(Index i, Index h, Index other, Index g) const;
  void add_values(Index i, Index other, Matrix& sum) const;
  void add_own(Index i, Index other, Matrix& sum) const;

  const LayerParts& l_;
  const LayerAt& at_;
  Index n_, H_, w_, d_;
  Matrix output_;  // F; empty where it is the identity
  Matrix centre_;
  // of each head: p_ij [·×d] and p_ijU_j [·×H·w], a row for each at_pair, and
  // |q_iS_j|
  std::vector<Matrix> pull_, pull_value_;
  std::vector<Vector> pull_size_;
  // U_j side by side [d×H·w] and their Gram matrices: one for all tokens, or
  // where values bend one for each
  std::vector<Matrix> value_, value_gram_;
  // of each token: E_iᵀU_i, E_iᵀE_i [H·w×H·w], p_i'i^g E_i [n·H×H·w]
  std::vector<Matrix> own_value_, own_gram_, own_pull_;
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
  make_pulls();
  make_own();
  size_ = summed_sizes();
}

void GramParts::make_pulls() {
  const Index pairs = l_.plain ? n_ : n_ * n_, k = l_.k;
  pull_.assign(H_, Matrix(pairs, d_));
  pull_value_.assign(H_, Matrix(pairs, H_ * w_));
  pull_size_.assign(H_, Vector(pairs));
  const Matrix shared = shared_direction(l_, at_, Feature::key);
  parallel_for(n_, l_.threads, [&](Index i) {
    // rows of the tokens j, or one for all of them
    const Matrix y =
        l_.plain ? Matrix(at_.q.row(i)) : query_at_keys(l_, at_, i, {0, n_});
    const Index first = at_pair(i, 0), rows = y.rows();
    for (Index h = 0; h < H_; ++h) {
      const auto of_head = y.middleCols(h * k, k);
      auto pull = pull_[h].middleRows(first, rows);
      pull.noalias() = of_head * l_.key.middleCols(h * k, k).transpose();
      if (shared.size() > 0) {
        const Vector along =
            of_head.cwiseProduct(shared.middleCols(h * k, k)).rowwise().sum();
        pull.noalias() -= (along.asDiagonal() * shared) * l_.key.transpose();
      }
      pull_size_[h].segment(first, rows) = of_head.rowwise().norm();
      auto through = pull_value_[h].middleRows(first, rows);
      if (value_.size() == 1)
        through.noalias() = pull * value_[0];
      else
        for (Index j = 0; j < n_; ++j)
          through.row(j).noalias() = pull.row(j) * value_[j];
    }
  });
}

void GramParts::make_own() {
  const Index k = l_.k;
  const Matrix queries = query_parts(l_, at_, centre_);
  const Matrix shared = shared_direction(l_, at_, Feature::query);
  own_value_.resize(n_);
  own_gram_.resize(n_);
  own_pull_.resize(n_);
  parallel_for(n_, l_.threads, [&](Index i) {
    Matrix own(d_, H_ * w_);
    for (Index h = 0; h < H_; ++h) {
      const Matrix c = queries.block(i * w_, h * k, w_, k).transpose();
      own.middleCols(h * w_, w_).noalias() = l_.query.middleCols(h * k, k) * c;
      if (shared.size() > 0)
        own.middleCols(h * w_, w_).noalias() -=
            (l_.query * shared.row(i).transpose()) *
            (shared.row(i).segment(h * k, k) * c);
    }
    own_value_[i] = own.transpose() * value_[value_.size() == 1 ? 0 : i];
    own_gram_[i] = gram_of_columns(own).g;
    Matrix pulls(n_ * H_, d_);
    for (Index other = 0; other < n_; ++other)
      for (Index g = 0; g < H_; ++g)
        pulls.row(other * H_ + g) = pull_[g].row(at_pair(other, i));
    own_pull_[i] = pulls * own;
  });
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
                         pull_size_[h].maxCoeff() * std::max(1.0, key)});
    for (Index i = 0; i < n_; ++i) {
      double own = 0.0;
      for (Index j = 0; j < n_; ++j) {
        const double moved = at_.slope(h)(i, j);
        const double z = Vector(step(h, i, j)).norm() + least_value;
        const double pull = key * (pull_size_[h][at_pair(i, j)] + least_query);
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
Matrix GramParts::through_keys(Index i, Index h, Index other, Index g) const {
  const TokenRange a = visible(l_.mask, i, n_);
  const TokenRange b = visible(l_.mask, other, n_);
  const Index begin = std::max(a.begin, b.begin);
  const Index m = std::max(Index{0}, std::min(a.end, b.end) - begin);
  Matrix left(2 * m, w_), right(2 * m, w_);
  double both = 0.0;
  if (l_.plain) both = pull_[h].row(i).dot(pull_[g].row(other));
  for (Index t = 0; t < m; ++t) {
    const Index j = begin + t, first = at_pair(i, j), last = at_pair(other, j);
    if (!l_.plain) both = pull_[h].row(first).dot(pull_[g].row(last));
    const double moved = at_.slope(h)(i, j), moves = at_.slope(g)(other, j);
    left.row(t) =
        (moved * moves * both) * step(h, i, j) +
        (at_.p[h](i, j) * moves) * pull_value_[g].row(last).segment(h * w_, w_);
    right.row(t) = step(g, other, j);
    left.row(m + t) = moved * step(h, i, j);
    right.row(m + t) =
        at_.p[g](other, j) * pull_value_[h].row(first).segment(g * w_, w_);
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
void GramParts::add_own(Index i, Index other, Matrix& sum) const {
  for (Index g = 0; g < H_; ++g) {
    auto to = sum.middleCols(g * w_, w_);
    to += at_.p[g](other, i) * own_value_[i].middleCols(g * w_, w_);
    to.noalias() += (at_.slope(g)(other, i) *
                     own_pull_[i].row(other * H_ + g).transpose()) *
                    step(g, other, i);
  }
}

Matrix GramParts::gram(double scale) const {
  const Index r = output_width(l_), full = H_ * w_;
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
        sum.block(h * w_, o * w_, w_, w_) = through_keys(i, h, other, o);
    add_values(i, other, sum);
    add_own(i, other, sum);
    add_own(other, i, back);
    sum += back.transpose();
    if (i == other) sum += own_gram_[i];
    if (output.size() > 0) {
      const Matrix half = sum * output;
      sum = output.transpose() * half;
    } else {
      sum /= scale;
      sum /= scale;
    }
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
  const double pairs = l.plain ? n : n * n;
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

Magnitude exact_norm(const LayerParts& l, const LayerAt& at) {
  const GramParts parts(l, at);
  const double share = share_of_weights(l, at);
  const double terms = static_cast<double>(2 * at.x.rows() + at.x.cols() +
                                           2 * l.heads * (l.w + l.k) + 64);
  const double gamma = 8 * unit_roundoff * terms;
  const double size = parts.size();
  require(std::isfinite(size), "exact_norm: its numbers are beyond double");
  const Magnitude rounding =
      Magnitude(size) * (4 * share + at.allowance + gamma) +
      slope_rounding(l, at);
  if (!parts.moderate()) return Magnitude(size) + rounding;
  const double scale = std::exp2(std::ceil(std::log2(size)));
  Matrix g = parts.gram(scale);
  if (!g.allFinite()) return Magnitude(size) + rounding;
  const double relative = size / scale;
  const double lambda = large_eigenvalue_above(
      std::move(g), well_above(gamma * relative * relative), l.threads);
  const double proved = well_above(scale * std::sqrt(lambda));
  return smaller(proved, size) + rounding;
}

}  // namespace lipscope
