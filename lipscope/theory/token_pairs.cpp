#include "lipscope/theory/token_pairs.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lipscope/attention/kinds.h"
#include "lipscope/core/gemm.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rounding.h"
#include "lipscope/core/symmetric_eigen.h"
#include "lipscope/theory/lane.h"
#include "lipscope/theory/magnitude.h"
#include "lipscope/theory/norms.h"
#include "lipscope/theory/token_slopes.h"

namespace lipscope {
namespace {

using Row = Eigen::RowVectorXd;

// what the J_ij of one token i are made of, head by head
struct RowOfPairs {
  Matrix mean;  // [H×w], v̄_i^h
  Matrix pull;  // [H×d], w_i^h
};

RowOfPairs row_of_pairs(const LayerParts& l, const LayerAt& at, Index i) {
  RowOfPairs out{Matrix(l.heads, l.w), Matrix(l.heads, l.key.rows())};
  for (Index h = 0; h < l.heads; ++h) {
    out.mean.row(h) = at.p[h].row(i) * at.v.middleCols(h * l.w, l.w);
    out.pull.row(h) = at.q.row(i).segment(h * l.k, l.k) *
                      l.key.middleCols(h * l.k, l.k).transpose();
  }
  return out;
}

// W_Q^h C_i^h [d×w]
Matrix query_part(const LayerParts& l, const LayerAt& at, Index i, Index h,
                  const Row& mean) {
  Matrix centred = at.v.middleCols(h * l.w, l.w).rowwise() - mean;
  centred = at.p[h].row(i).transpose().asDiagonal() * centred;
  const Matrix c = at.k.middleCols(h * l.k, l.k).transpose() * centred;
  return l.query.middleCols(h * l.k, l.k) * c;
}

// What the J_ij of one head take of the weights. With values as F leaves them,
// in a basis Q where their Gram matrix is all but diagonal, J_ij without its
// query part is P_ij(V + w_iᵀz), z = v_j − v̄_i.
struct OneHead {
  Matrix value;      // V = W_V F Q, [d×w]
  Matrix rotation;   // F Q
  Gram gram;         // VᵀV
  Vector diagonal;   // of it
  double off = 0.0;  // ‖the rest of it‖, with its error
  double stretch;    // 1/σ_min(Q)
  Gram query;        // W_QᵀW_Q
  Matrix mixed;      // W_QᵀV [k×w]
};

OneHead one_head(const LayerParts& l) {
  OneHead out;
  const Matrix f = l.projected ? factor_above(gram_of_rows(l.output))
                               : Matrix(Matrix::Identity(l.w, l.w));
  const Matrix unturned = l.value * f;
  const Matrix q = symmetric_eigen(gram_of_columns(unturned).g).vectors;
  // ‖B‖ ≤ ‖BQ‖/σ_min(Q), and σ_min(Q)² ≥ 1 − ‖I − QᵀQ‖
  const double skew =
      (q.transpose() * q - Matrix::Identity(l.w, l.w)).norm() + 1e-13 * l.w;
  out.stretch = well_above(1.0 / std::sqrt(1.0 - skew));
  out.value = unturned * q;
  out.rotation = f * q;
  out.gram = gram_of_columns(out.value);
  out.diagonal = out.gram.g.diagonal();
  Matrix rest = out.gram.g;
  rest.diagonal().setZero();
  out.off = well_above(rest.norm() + out.gram.error);
  out.query = gram_of_columns(l.query);
  out.mixed = l.query.transpose() * out.value;
  return out;
}

// Numbers λ(M), M = G + aᵀz + zᵀa + p²zᵀz, from above for eight z at a time;
// G = diag(g), a = wV and p = |w|.
//
// With R = (tI − G)⁻¹, α = p² + aRaᵀ, β = aRzᵀ and γ = zRzᵀ, the matrix
// [−α 1−β; 1−β −γ] is the Schur complement of tI − G in [K⁻¹ Uᵀ; U tI − G],
// U = (a z), K = [0 1; 1 p²], and that of K⁻¹ is tI − M. K has one eigenvalue
// of each sign. Counting signs (Haynsworth), tI − M ≻ 0 exactly if
//
//   t above all g:           (1 − β)² > αγ, that is β + √(αγ) < 1;
//   t between the first two: α < 0, γ < 0 and αγ > (1 − β)².
//
// With b = a/p + pz, M is (G − aᵀa/p²) + bᵀb, both ⪰ 0: λ(M) is at least |b|²
// and the second g, and at most |b|² + min(largest g, tr G − |a|²/p²). That
// interval is halved, by ratio.
class RankTwo {
 public:
  RankTwo(const Vector& g, const Vector& a, double p) : g_(g), a_(a), p_(p) {
    most_ = g.maxCoeff(&top_);
    second_ = 1e-6 * most_;  // at least: ratios need something to start from
    for (Index k = 0; k < g.size(); ++k)
      if (k != top_) second_ = std::max(second_, g[k]);
    const double taken = p > 0.0 ? (a / p).squaredNorm() : 0.0;
    rest_ = std::min(most_, std::max(0.0, g.sum() - taken));
  }

  // k-th entries of the eight z at z + k·stride
  Lane operator()(const double* z, Index stride) const {
    Lane b2 = Lane::Zero();
    if (p_ > 0.0)
      for (Index k = 0; k < g_.size(); ++k)
        b2 += (a_[k] / p_ + p_ * lane_at(z + k * stride)).square();
    Lane proved = b2 + rest_;
    Lane least = (b2 > second_).select(b2, Lane::Constant(second_));
    for (int halving = 0; halving < 7; ++halving) {
      const Lane t = (least * proved).sqrt();
      const auto yes = above_all(t, z, stride).eval();
      proved = yes.select(t, proved);
      least = yes.select(least, t);
    }
    return proved;
  }

 private:
  // where tI − M ≻ 0, for certain: not where anything is NaN
  Eigen::Array<bool, lane_width, 1> above_all(const Lane& t, const double* z,
                                              Index stride) const {
    Lane alpha = Lane::Constant(p_ * p_), beta = Lane::Zero(), gamma = beta;
    for (Index k = 0; k < g_.size(); ++k) {
      if (k == top_) continue;
      const Lane inverse = (t - g_[k]).inverse(), zk = lane_at(z + k * stride);
      const Lane scaled = zk * inverse;
      alpha += (a_[k] * a_[k]) * inverse;
      beta += a_[k] * scaled;
      gamma += zk * scaled;
    }
    const Lane inverse = (t - most_).inverse();
    const Lane z_top = lane_at(z + top_ * stride);
    const Lane alpha_top = (a_[top_] * a_[top_]) * inverse;
    const Lane gamma_top = z_top.square() * inverse;
    beta += a_[top_] * z_top * inverse;
    // sums err by at most this share of the sums of absolute values, β by that
    // of the root of their product
    const double share =
        4 * unit_roundoff * static_cast<double>(g_.size() + 16);
    const Lane alpha_error = share * (alpha + alpha_top.abs());
    const Lane gamma_error = share * (gamma + gamma_top.abs());
    const Lane beta_error = share + (alpha_error * gamma_error).sqrt();
    alpha += alpha_top;
    gamma += gamma_top;
    const Lane outside =
        ((alpha + alpha_error) * (gamma + gamma_error)).sqrt() + beta +
        beta_error;
    const Lane a_left = -alpha - alpha_error, g_left = -gamma - gamma_error;
    const Lane between =
        (a_left * g_left).sqrt() - (1 - beta).abs() - beta_error;
    return (t > most_ && outside < 1.0) ||
           (t > second_ && t < most_ && a_left > 0.0 && g_left > 0.0 &&
            between > 0.0);
  }

  const Vector& g_;
  const Vector& a_;
  double p_, most_ = 0.0, second_ = 0.0, rest_ = 0.0;
  Index top_ = 0;
};

// one head: rows of N
Matrix norms_of_one_head(const LayerParts& l, const LayerAt& at) {
  const Index n = at.x.rows(), w = l.w;
  const OneHead head = one_head(l);
  const Matrix values = at.v * head.rotation;
  const Matrix means = at.p[0] * values;
  const Matrix pulls = at.q * l.key.transpose();
  const Matrix turned = pulls * head.value;
  const Matrix seen_by_query = pulls * l.query;
  const double trace = std::sqrt(head.gram.g.trace());
  // λ of a matrix with these parts, and what rounding in them may hide
  const auto norm = [&](double lambda, double size) {
    return std::sqrt(lambda + head.off + 1e-12 * size * size) * head.stretch;
  };

  Matrix norms = Matrix::Zero(n, n);
  parallel_for(n, l.threads, [&](Index i) {
    const Row pull = pulls.row(i), p = at.p[0].row(i);
    const Vector a = turned.row(i);
    const double length = pull.norm();
    const auto [first, end] = visible(l.mask, i, n);
    const Index seen = end - first;
    Matrix z = Matrix::Zero(w, in_lanes(seen));  // v_j − v̄_i as columns
    z.leftCols(seen) =
        (values.middleRows(first, seen).rowwise() - means.row(i)).transpose();
    const Vector sizes = z.colwise().norm();
    const RankTwo rank_two(head.diagonal, a, length);
    for (Index j = 0; j < seen; j += lane_width) {
      const Lane lambda = rank_two(&z(0, j), z.cols());
      for (Index m = j; m < std::min(seen, j + lane_width); ++m)
        norms(i, first + m) =
            p[first + m] * norm(lambda[m - j], trace + length * sizes[m]);
    }
    // J_ii: its Gram matrix, with W_QC for the query part, which is there also
    // where i does not see itself
    const Matrix c =
        at.k.middleRows(first, seen).transpose() *
        (z.leftCols(seen) * p.segment(first, seen).asDiagonal()).transpose();
    const bool sees_itself = first <= i && i < end;
    const Row own =
        sees_itself ? Row(z.col(i - first).transpose()) : Row(Row::Zero(w));
    const double own_size = sees_itself ? sizes[i - first] : 0.0;
    const Matrix through = head.query.g * c;
    Matrix cross = p[i] * p[i] * (0.5 * head.gram.g + a * own);
    cross.noalias() += p[i] * head.mixed.transpose() * c;
    cross.noalias() += p[i] * own.transpose() * (seen_by_query.row(i) * c);
    cross.noalias() += 0.5 * c.transpose() * through;
    Matrix g = cross + cross.transpose();
    g += (p[i] * length) * (p[i] * length) * own.transpose() * own;
    const double size = p[i] * (trace + length * own_size) +
                        std::sqrt(head.query.g.trace()) * c.norm();
    // λ(g)² = λ(g²)
    const double rounding =
        4 * unit_roundoff * static_cast<double>(w + 4) * g.squaredNorm();
    norms(i, i) =
        norm(std::sqrt(power_eigenvalue_above(g * g, rounding)), size);
  });
  return norms;
}

// The tokens that token i sees, and itself: padding does not see itself, but
// its output moves with its query. The other J_ij are 0.
std::vector<Index> acting_on(Index i, const Mask& mask, Index n) {
  const TokenRange seen = visible(mask, i, n);
  std::vector<Index> tokens;
  for (Index j = seen.begin; j < seen.end; ++j) tokens.push_back(j);
  if (i < seen.begin || i >= seen.end) tokens.push_back(i);
  return tokens;
}

// What the parts J_ij of a layer are made of: for features that are their
// projections the V_h, each flattened to a row, so that the value part of J_ij
// is a product; otherwise what slopes need.
struct PartsOfLayer {
  const LayerParts& l;
  const LayerAt& at;
  Matrix values;  // [H×d·e]; plain layers alone
  Matrix output;  // W_O, or where it is wider than high FFᵀ ⪰ W_OW_Oᵀ
  Matrix centre, queries;  // c_i, and as query_parts has them
  // û of q/k-norm over heads, and W û
  Matrix key_shared, query_shared, through_key, through_query;

  PartsOfLayer(const LayerParts& layer, const LayerAt& here)
      : l(layer), at(here) {
    if (l.plain) {
      flatten_values();
      return;
    }
    if (l.projected)
      output = l.output.cols() > l.heads * l.w
                   ? factor_above(gram_of_rows(l.output))
                   : l.output;
    centre = centres(l, at);
    queries = query_parts(l, at, centre);
    key_shared = shared_direction(l, at, Feature::key);
    query_shared = shared_direction(l, at, Feature::query);
    if (l.normed_over_heads()) {
      through_key = key_shared * l.key.transpose();
      through_query = query_shared * l.query.transpose();
    }
  }

  Matrix through_output(const Matrix& stacked) const {
    return l.projected ? product(as_is(stacked), as_is(l.output), 1) : stacked;
  }

  void flatten_values() {
    const Index d = l.value.rows(), w = l.w;
    const Index e = l.projected ? l.output.cols() : l.heads * w;
    values = Matrix::Zero(l.heads, d * e);
    parallel_for(l.heads, l.threads, [&](Index h) {
      auto flat = values.row(h).reshaped<Eigen::RowMajor>(d, e);
      if (l.projected)
        flat = l.value.middleCols(h * w, w) * l.output.middleRows(h * w, w);
      else
        flat.middleCols(h * w, w) = l.value.middleCols(h * w, w);
    });
  }

  // ‖J_ij‖ for these j
  void set_row(Index i, const std::vector<Index>& tokens, Matrix& norms) const {
    if (tokens.empty()) return;
    if (l.plain)
      set_plain_row(i, tokens, norms);
    else
      set_sloped_row(i, tokens, norms);
  }

  void set_plain_row(Index i, const std::vector<Index>& tokens,
                     Matrix& norms) const {
    const Index H = l.heads, w = l.w, d = l.value.rows();
    const Index e = values.cols() / d;
    const RowOfPairs row = row_of_pairs(l, at, i);
    for (const Index j : tokens) {
      Matrix shares(1, H), steps = Matrix::Zero(H, H * w);
      for (Index h = 0; h < H; ++h) {
        shares(0, h) = at.p[h](i, j);
        steps.block(h, h * w, 1, w) =
            at.p[h](i, j) * (at.v.block(j, h * w, 1, w) - row.mean.row(h));
      }
      Matrix part = Matrix((shares * values).reshaped<Eigen::RowMajor>(d, e));
      part.noalias() += row.pull.transpose() * through_output(steps);
      if (i == j) {
        Matrix own(d, H * w);
        for (Index h = 0; h < H; ++h)
          own.middleCols(h * w, w) = query_part(l, at, i, h, row.mean.row(h));
        part += through_output(own);
      }
      norms(i, j) = weight_norm_above(part);
    }
  }

  // any features and weights
  void set_sloped_row(Index i, const std::vector<Index>& tokens,
                      Matrix& norms) const {
    const Index n = at.x.rows(), H = l.heads, w = l.w, k = l.k;
    const bool bent_values = !kind_of(l.options.kind).values_as_they_are;
    const TokenRange seen = visible(l.mask, i, n);
    const TokenRange keys = l.mask.window ? seen : TokenRange{0, n};
    const Matrix pulled = query_at_keys(l, at, i, keys);
    for (const Index j : tokens) {
      const bool is_seen = seen.begin <= j && j < seen.end;
      Matrix part = Matrix::Zero(l.value.rows(), H * w);
      for (Index h = 0; h < H; ++h) {
        auto of_head = part.middleCols(h * w, w);
        if (is_seen) {
          const Matrix value = l.value.middleCols(h * w, w);
          if (bent_values)
            of_head.noalias() = at.p[h](i, j) * value *
                                to_projections(l, at, h, Feature::value,
                                               Matrix::Identity(w, w), j)
                                    .transpose();
          else
            of_head = at.p[h](i, j) * value;
          const auto y = pulled.row(j - keys.begin).segment(h * k, k);
          Vector pull = l.key.middleCols(h * k, k) * y.transpose();
          if (key_shared.size() > 0)
            pull -= y.dot(key_shared.row(j).segment(h * k, k)) *
                    through_key.row(j).transpose();
          of_head.noalias() += at.slope(h)(i, j) * pull *
                               (at.v.row(j) - centre.row(i)).segment(h * w, w);
        }
        if (i != j) continue;
        const Matrix own = queries.block(i * w, h * k, w, k).transpose();
        of_head.noalias() += l.query.middleCols(h * k, k) * own;
        if (query_shared.size() > 0)
          of_head.noalias() -= through_query.row(i).transpose() *
                               (query_shared.row(i).segment(h * k, k) * own);
      }
      norms(i, j) =
          weight_norm_above(l.projected ? Matrix(part * output) : part);
    }
  }
};

}  // namespace

Matrix token_pair_norms_above(const LayerParts& l, const LayerAt& at) {
  if (l.plain && l.heads == 1) return norms_of_one_head(l, at);
  const Index n = at.x.rows();
  const PartsOfLayer parts(l, at);
  Matrix norms = Matrix::Zero(n, n);
  parallel_for(n, l.threads, [&](Index i) {
    parts.set_row(i, acting_on(i, l.mask, n), norms);
  });
  return norms;
}

const Statement token_pairs_statement{
    .name = "token_pairs",
    .norm = Norm::two,
    .mask = "any",
    .citation =
        "lipscope: norm of the matrix of the norms of J between pairs of "
        "tokens, theory/token_pairs.h"};

Magnitude token_pairs(const LayerParts& l, const LayerAt& at) {
  return Magnitude(nonnegative_norm_above(token_pair_norms_above(l, at))) +
         slope_rounding(l, at);
}

}  // namespace lipscope
