#include "lipscope/theory/gram_parts.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "lipscope/attention/kinds.h"
#include "lipscope/core/gemm.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rounding.h"
#include "lipscope/theory/norms.h"
#include "lipscope/theory/token_slopes.h"

namespace lipscope {
namespace {

bool values_bend(const LayerParts& l) {
  return !kind_of(l.options.kind).values_as_they_are;
}

}  // namespace

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

// q_iS_j, a row for each j or one for all
Matrix GramParts::queries_at_keys(Index i) const {
  return l_.plain ? Matrix(at_.q.row(i)) : query_at_keys(l_, at_, i, {0, n_});
}

GramParts::Pulls GramParts::pulls_of(Index i) const {
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
    out.query.push_back(pull * l_.query);
    out.pull.push_back(std::move(pull));
    out.value.push_back(std::move(through));
  }
  return out;
}

// E_i is W_Q times a matrix of blocks on the diagonal, but for q/k-norm over
// heads.
Matrix GramParts::own_times(Index i, const Matrix& m) const {
  const Index k = l_.k;
  Matrix out(H_ * w_, m.cols());
  for (Index h = 0; h < H_; ++h) {
    const auto slope = queries_.block(i * w_, h * k, w_, k);
    auto to = out.middleRows(h * w_, w_);
    to.noalias() = slope * m.middleRows(h * k, k);
    if (shared_query_.size() > 0)
      to.noalias() -=
          (slope * shared_query_.row(i).segment(h * k, k).transpose()) *
          (shared_query_.row(i) * m);
  }
  return out;
}

void GramParts::prepare() {
  pulls_.resize(n_);
  parallel_for(n_, l_.threads, [&](Index i) { pulls_[i] = pulls_of(i); });
  const Matrix to_queries = l_.query.transpose();
  query_gram_ = to_queries * l_.query;
  const bool one_value = value_.size() == 1;
  const Matrix value = one_value ? Matrix(to_queries * value_[0]) : Matrix();
  own_.resize(n_);
  parallel_for(n_, l_.threads, [&](Index i) {
    own_[i] = own_times(i, one_value ? value : to_queries * value_[i]);
  });
}

// p_i'i^gE_i for all heads g of the other token i', in columns [H·w×H]
Matrix GramParts::pulled_own(Index i, Index other) const {
  Matrix queries(H_ * l_.k, H_);
  for (Index g = 0; g < H_; ++g)
    queries.col(g) = pulls_[other].query[g].row(at_token(i)).transpose();
  return own_times(i, queries);
}

Matrix GramParts::part(Index i, Index other) const {
  Matrix sum(H_ * w_, H_ * w_);
  each_head_of_part(i, other, [&](Index h, const Matrix& rows) {
    sum.middleRows(h * w_, w_) = rows;
  });
  return sum;
}

void GramParts::each_head_of_part(
    Index i, Index other,
    const std::function<void(Index, const Matrix&)>& use) const {
  const Matrix pulled_mine = pulled_own(i, other);
  const Matrix pulled_its = pulled_own(other, i);
  const Matrix own_gram =
      i == other ? own_times(i, own_times(i, query_gram_).transpose())
                 : Matrix();
  const bool one_gram = value_gram_.size() == 1;
  std::optional<ThroughKeys> through;
  std::optional<RightFactor<double>> right;
  if (l_.plain) {
    through = through_keys(i, other);
    right.emplace(as_is(through->right));
  }
  Matrix steps(w_, H_ * w_), rows(w_, H_ * w_);
  Matrix outer_left(w_, 4), outer_right(4, w_);
  for (Index h = 0; h < H_; ++h) {
    if (through) {
      const Matrix left = through->left.middleCols(h * w_, w_);
      gemm(transposed(left), *right, view(steps));
    }
    for (Index g = 0; g < H_; ++g) {
      auto to = rows.middleCols(g * w_, w_);
      // what has E, and the vectors of the keys
      to = at_.p[g](other, i) * own_[i].block(h * w_, g * w_, w_, w_) +
           at_.p[h](i, other) *
               own_[other].block(g * w_, h * w_, w_, w_).transpose();
      outer_left.col(0) =
          at_.slope(g)(other, i) * pulled_mine.col(g).segment(h * w_, w_);
      outer_right.row(0) = step(g, other, i);
      outer_left.col(1) = step(h, i, other);
      outer_right.row(1) = at_.slope(h)(i, other) *
                           pulled_its.col(h).segment(g * w_, w_).transpose();
      Index vectors = 2;
      if (through) {
        const Pulls &a = pulls_[i], &b = pulls_[other];
        outer_left.col(2) = b.value[g].row(0).segment(h * w_, w_);
        outer_right.row(2) = through->mixed.row(h).segment(g * w_, w_);
        outer_left.col(3) = through->its_mixed.row(g).segment(h * w_, w_);
        outer_right.row(3) = a.value[h].row(0).segment(g * w_, w_);
        vectors = 4;
        to += a.pull[h].row(0).dot(b.pull[g].row(0)) *
              steps.middleCols(g * w_, w_);
      } else {
        to += through_bent_keys(i, h, other, g);
      }
      to += outer_left.leftCols(vectors).lazyProduct(
          outer_right.topRows(vectors));
      const Vector shares =
          at_.p[h].row(i).cwiseProduct(at_.p[g].row(other)).transpose();
      if (one_gram)
        to += shares.sum() * value_gram_[0].block(h * w_, g * w_, w_, w_);
      else
        for (Index j = 0; j < n_; ++j)
          if (shares[j] != 0.0)
            to += shares[j] * value_gram_[j].block(h * w_, g * w_, w_, w_);
      if (i == other) to += own_gram.block(h * w_, g * w_, w_, w_);
    }
    use(h, rows);
  }
}

TokenRange GramParts::seen_by_both(Index i, Index other) const {
  const TokenRange mine = visible(l_.mask, i, n_);
  const TokenRange its = visible(l_.mask, other, n_);
  const Index begin = std::max(mine.begin, its.begin);
  return {begin, std::max(begin, std::min(mine.end, its.end))};
}

Matrix GramParts::sloped_steps(Index i, const TokenRange& tokens) const {
  Matrix steps =
      at_.v.middleRows(tokens.begin, tokens.size()).rowwise() - centre_.row(i);
  for (Index h = 0; h < H_; ++h)
    steps.middleCols(h * w_, w_).array().colwise() *=
        at_.slope(h)
            .row(i)
            .segment(tokens.begin, tokens.size())
            .transpose()
            .array();
  return steps;
}

// where p_ij does not depend on j
GramParts::ThroughKeys GramParts::through_keys(Index i, Index other) const {
  const TokenRange both = seen_by_both(i, other);
  Matrix left = sloped_steps(i, both), right = sloped_steps(other, both);
  Matrix shares(H_, both.size()), its_shares(H_, both.size());
  for (Index h = 0; h < H_; ++h) {
    shares.row(h) = at_.p[h].row(i).segment(both.begin, both.size());
    its_shares.row(h) = at_.p[h].row(other).segment(both.begin, both.size());
  }
  Matrix mixed = shares * right, its_mixed = its_shares * left;
  return {std::move(left), std::move(right), std::move(mixed),
          std::move(its_mixed)};
}

// the terms with keys of head h of token i and head g of the other, where p_ij
// depends on j
Matrix GramParts::through_bent_keys(Index i, Index h, Index other,
                                    Index g) const {
  const Pulls &a = pulls_[i], &b = pulls_[other];
  const TokenRange both = seen_by_both(i, other);
  const Index m = both.size();
  Matrix left(2 * m, w_), right(2 * m, w_);
  for (Index t = 0; t < m; ++t) {
    const Index j = both.begin + t;
    const double along = a.pull[h].row(j).dot(b.pull[g].row(j));
    const double moved = at_.slope(h)(i, j), moves = at_.slope(g)(other, j);
    left.row(t) =
        (moved * moves * along) * step(h, i, j) +
        (at_.p[h](i, j) * moves) * b.value[g].row(j).segment(h * w_, w_);
    right.row(t) = step(g, other, j);
    left.row(m + t) = moved * step(h, i, j);
    right.row(m + t) =
        at_.p[g](other, j) * a.value[h].row(j).segment(g * w_, w_);
  }
  return left.transpose() * right;
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

// by what share a number of P may err: twice the error of a logit
double GramParts::share_of_weights() const {
  if (at_.query_norm || values_bend(l_)) return 0.0;  // bounded scores
  const double longest = at_.x.rowwise().norm().maxCoeff();
  double most = 0.0;
  for (Index h = 0; h < l_.heads; ++h) {
    const auto size = [&](const Matrix& weights, const Vector& bias) {
      return longest * weights.middleCols(h * l_.k, l_.k).norm() +
             bias.segment(h * l_.k, l_.k).norm();
    };
    const double q = size(l_.query, l_.query_bias);
    const double k = size(l_.key, l_.key_bias);
    most = std::max(most, at_.bent.empty() ? q * k : (q + k) * (q + k));
  }
  const double error =
      8 * unit_roundoff * static_cast<double>(at_.x.cols() + 8) * most;
  return std::expm1(std::min(2 * error, 600.0));
}

GramParts::Shares GramParts::shares() const {
  const double terms =
      static_cast<double>(2 * n_ + d_ + 2 * H_ * (w_ + l_.k) + 64);
  const double gamma = 8 * unit_roundoff * terms;
  return {gamma, 4 * share_of_weights() + at_.allowance + gamma};
}

}  // namespace lipscope
