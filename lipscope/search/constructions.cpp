#include "lipscope/search/constructions.h"

#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <boost/math/special_functions/lambert_w.hpp>
#include <cmath>

#include "lipscope/attention/head_weights.h"
#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"
#include "lipscope/core/symmetric_eigen.h"

namespace lipscope {
namespace {

// W₀((n−1)/e), where Kim21's bound on L2 attention is nearly attained
double kim_p(Index n) {
  return boost::math::lambert_w0(static_cast<double>(n - 1) / std::exp(1.0));
}

// The score form A of a head as A = B S Bᵀ with orthonormal columns B, small
// enough to decompose: the directions that queries and keys both ignore are
// left out.
struct ScoreForm {
  Matrix basis;  // B [d×r]
  Matrix small;  // S [r×r]
};

// W seen from the coordinates z: ΠΓW
Matrix from_coordinates(const Region& region, const Matrix& w) {
  return pulled_back(region, w.transpose()).transpose();
}

ScoreForm score_form(const HeadWeights& h, const Region& region) {
  const Matrix q = from_coordinates(region, h.query);
  const Matrix k = from_coordinates(region, h.key);
  const Index d = q.rows(), both = q.cols() + k.cols();
  ScoreForm form;
  form.basis = Matrix::Identity(d, d);
  if (both < d) {
    Matrix side(d, both);
    side << q, k;
    form.basis = Eigen::HouseholderQR<Eigen::MatrixXd>(side).householderQ() *
                 Matrix::Identity(d, both);
  }
  form.small = (form.basis.transpose() * q) *
               (form.basis.transpose() * k).transpose() /
               std::sqrt(static_cast<double>(q.cols()));
  return form;
}

// extreme eigenvalues of the symmetric part, with their unit vectors in z, and
// the top singular pair
struct Directions {
  double least = 0.0, most = 0.0, singular = 0.0;
  Vector u_least, u_most, left, right;
};

// Where A vanishes, an eigenvector may leave the plane of a centred region: it
// is brought back, and is shorter then.
Directions directions(const ScoreForm& form, const Region& region) {
  const SymmetricEigen eigen =
      symmetric_eigen(0.5 * (form.small + form.small.transpose()));
  const Index last = form.small.rows() - 1;
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(
      form.small, Eigen::ComputeThinU | Eigen::ComputeThinV);
  const auto in_z = [&](const Vector& v) {
    return Vector(flatten(
        nearest({.centred = region.centred}, (form.basis * v).transpose())));
  };
  return {.least = eigen.values[0],
          .most = eigen.values[last],
          .singular = svd.singularValues()[0],
          .u_least = in_z(eigen.vectors.col(0)),
          .u_most = in_z(eigen.vectors.col(last)),
          .left = in_z(svd.matrixU().col(0)),
          .right = in_z(svd.matrixV().col(0))};
}

// what tokens become as values, x V
Vector value_of(const HeadWeights& h, const AttentionOptions& o,
                const Vector& x) {
  const Vector y = h.value.transpose() * x;
  return o.project && h.output.size() > 0 ? Vector(h.output.transpose() * y)
                                          : y;
}

// w = tA + c: how the scores of a query token t change with a key token
Vector pull_of(const HeadWeights& h, const Vector& t) {
  return h.key * (h.query.transpose() * t + h.query_bias) /
         std::sqrt(static_cast<double>(h.query.cols()));
}

Vector token_of(const Region& region, const Vector& z) {
  return flatten(tokens_of(region, z.transpose()));
}

// a direction of z, in tokens
Vector direction_of(const Region& region, const Vector& z) {
  return region.gain.size() > 0 ? Vector(region.gain.cwiseProduct(z)) : z;
}

// m tokens s, then n − m tokens t, and the direction g that s is moved along;
// in the coordinates z
struct TwoAtoms {
  std::string name;
  Vector s, t, g;
};

// the s in the rows from `first` on
Matrix sequence(const TwoAtoms& atoms, Index first, Index m, Index n) {
  Matrix z(n, atoms.s.size());
  z.rowwise() = atoms.t.transpose();
  z.middleRows(first, m).rowwise() = atoms.s.transpose();
  return z;
}

// the first token that most tokens see
Index seen_by_most(const Mask& mask, Index n) {
  Index best = mask.padding_before;
  if (!mask.window) return best;
  for (Index j = best; j < n - mask.padding_after; ++j)
    if (seeing(mask, j, n).size() > seeing(mask, best, n).size()) best = j;
  return best;
}

// the first token that sees most
Index sees_most(const Mask& mask, Index n) {
  Index best = 0;
  for (Index i = 1; i < n; ++i)
    if (visible(mask, i, n).size() > visible(mask, best, n).size()) best = i;
  return best;
}

// how many of two ranges are in both
Index common(const TokenRange& a, const TokenRange& b) {
  return std::max<Index>(0,
                         std::min(a.end, b.end) - std::max(a.begin, b.begin));
}

// `predicted` of two atoms in tokens x, as the header says
class Prediction final {
 public:
  Prediction(const HeadWeights& h, const AttentionOptions& o,
             const Region& region, const TwoAtoms& atoms) {
    const Vector s = token_of(region, atoms.s), t = token_of(region, atoms.t);
    const Vector g = direction_of(region, atoms.g).normalized();
    const Vector w = pull_of(h, t);
    gap_ = w.dot(s - t);
    along_ = value_of(h, o, g);
    across_ = w.dot(g) * value_of(h, o, s - t);
    mask_ = o.mask;
  }

  // m tokens s from `first` on
  double operator()(Index first, Index m, Index n) const {
    double sum = 0.0;
    for (Index i = 0; i < n; ++i) {
      if (first <= i && i < first + m) continue;
      const TokenRange seen = visible(mask_, i, n);
      const Index of_s = common(seen, {first, first + m});
      if (of_s == 0) continue;
      const double others = static_cast<double>(seen.size() - of_s);
      const double p = static_cast<double>(of_s) /
                       (static_cast<double>(of_s) + others * std::exp(-gap_));
      const double move = (p * (along_ + (1.0 - p) * across_)).squaredNorm();
      if (mask_ == Mask::none)
        return std::sqrt(others / static_cast<double>(m) * move);
      sum += move;
    }
    return std::sqrt(sum / static_cast<double>(m));
  }

 private:
  double gap_ = 0.0;
  Vector along_, across_;
  Mask mask_ = Mask::none;
};

class Maker final {
 public:
  Maker(const AttentionWeights& weights, const AttentionOptions& options,
        const Region& region, Index n)
      : weights_(weights),
        options_(options),
        region_(region),
        n_(n),
        first_(seen_by_most(options.mask, n)),
        heads_(chosen_heads(weights, options.heads)) {}

  std::vector<Construction> make() {
    for (const Index h : heads_) {
      head_ = h;
      const HeadWeights one = head(weights_, h);
      const Directions d = directions(score_form(one, region_), region_);
      const double rho = region_.bounded()
                             ? region_.radius
                             : natural_radius(weights_, options_, region_, n_);
      const Vector u = d.most >= -d.least ? d.u_most : d.u_least;
      const bool tied = kind_of(options_.kind).tied;
      if (n_ >= 2 && !tied) add_two_atoms(one, d, rho);
      if (!tied) add_balanced(one, d, rho);
      if (tied && d.most > 0.0) add_kim(one, d);
      Matrix ties = (rho * u).transpose().replicate(n_, 1);
      add("repeated", ties);
      for (Index i = 1; i < n_; i += 2) ties.row(i) *= -1.0;
      if (n_ >= 2) add("ties", ties);
    }
    return std::move(made_);
  }

 private:
  void add(const std::string& name, const Matrix& z,
           std::optional<double> predicted = {},
           std::optional<Norm> norm = {}) {
    Construction c{.name = name,
                   .x = tokens_of(region_, nearest(region_, z)),
                   .predicted = predicted,
                   .norm = norm};
    if (heads_.size() > 1) c.name += fmt::format(", head {}", head_);
    made_.push_back(std::move(c));
  }

  void add_two_atoms(const HeadWeights& h, const Directions& d, double rho) {
    const TwoAtoms halves{"growth", rho * d.u_most, 0.5 * rho * d.u_most,
                          d.u_most};
    const TwoAtoms opposite{"growth", -rho * d.u_least, rho * d.u_least,
                            d.u_least};
    const bool same_side = d.most > -8.0 * d.least;
    TwoAtoms growth = same_side ? halves : opposite;
    TwoAtoms other = same_side ? opposite : halves;
    other.name += ", other sign";
    const TwoAtoms pair{"singular pair", rho * d.right, rho * d.left, d.right};
    for (const TwoAtoms& atoms : {growth, other, pair}) {
      const Prediction from_below(h, options_, region_, atoms);
      add(atoms.name, sequence(atoms, first_, 1, n_), predicted(from_below, 1),
          Norm::two);
      if (atoms.name != other.name) add_best_atoms(h, atoms);
    }
  }

  // the same at the masses and the size that the prediction likes best; where
  // scores are large, far atoms give all weight to one token and nothing moves
  void add_best_atoms(const HeadWeights& h, const TwoAtoms& full) {
    TwoAtoms best = full;
    Index best_m = 1, best_step = 0;
    double most = 0.0;
    for (Index step = 0; step <= 24; ++step) {
      const double scale = std::pow(0.5, 0.25 * static_cast<double>(step));
      TwoAtoms atoms = full;
      atoms.s *= scale;
      atoms.t *= scale;
      const Prediction from_below(h, options_, region_, atoms);
      for (Index m = 1; first_ + m < n_; m += 1 + m / 8) {
        const double now = from_below(first_, m, n_);
        if (now <= most) continue;
        most = now;
        best = atoms;
        best_m = m;
        best_step = step;
      }
    }
    if (best_m == 1 && best_step == 0) return;
    const Prediction from_below(h, options_, region_, best);
    add(fmt::format("{}, {} of {} at {:.3g} R", full.name, best_m, n_,
                    std::pow(0.5, 0.25 * static_cast<double>(best_step))),
        sequence(best, first_, best_m, n_), predicted(from_below, best_m),
        Norm::two);
  }

  // Two tokens that all others look at equally, far apart in value. The others
  // are as long as the prediction likes best: long ones pull more, and look
  // more at each other.
  void add_balanced(const HeadWeights& h, const Directions& d, double rho) {
    if (n_ < 3 || d.left.size() < 2 || first_ + 1 >= n_) return;
    const Vector b = pull_in_z(h, rho * d.left).normalized();
    if (b.norm() == 0.0) return;
    const Vector e = furthest_value(h, b);
    Balanced best;
    for (const double side : {1.0, -1.0})
      for (int tenth = 10; tenth >= 1; --tenth) {
        Balanced now = balanced(h, 0.1 * tenth * side * rho * d.left, e, rho);
        if (now.predicted > best.predicted) best = std::move(now);
      }
    if (best.predicted > 0.0)
      add("balanced", best.z, if_one_dot_head(best.predicted), Norm::two);
  }

  struct Balanced {
    Matrix z;
    double predicted = 0.0;
  };

  // with the others at t, and the two apart along what of e is orthogonal to w
  Balanced balanced(const HeadWeights& h, const Vector& t, const Vector& e,
                    double rho) const {
    const Vector pull = pull_in_z(h, t);
    if (pull.norm() == 0.0) return {};
    const Vector b = pull.normalized();
    Vector apart = e - b * b.dot(e);
    if (apart.norm() < 0.5) return {};  // e leaves no room beside w
    apart.normalize();
    // scores of the two above those of the others by ln n + 2
    const double cosine =
        std::max(0.0, (pull.dot(t) + std::log(static_cast<double>(n_)) + 2.0) /
                          (rho * pull.norm()));
    if (cosine >= 1.0) return {};
    const double sine = std::sqrt(1.0 - cosine * cosine);

    Matrix z = t.transpose().replicate(n_, 1);
    z.row(first_) = rho * (cosine * b + sine * apart).transpose();
    z.row(first_ + 1) = rho * (cosine * b - sine * apart).transpose();

    // the two moved apart along w, which moves nothing but their weights
    const double gap = pull.dot(z.row(first_).transpose() - t);
    const double value =
        value_of(h, options_, direction_of(region_, apart)).norm();
    const double move = pull_of(h, token_of(region_, t)).norm() * rho * sine *
                        value / std::sqrt(2.0);
    double sum = 0.0;
    for (Index i = 0; i < n_; ++i) {
      if (first_ <= i && i < first_ + 2) continue;
      const TokenRange seen = visible(options_.mask, i, n_);
      if (common(seen, {first_, first_ + 2}) < 2) continue;
      const double others = static_cast<double>(seen.size() - 2);
      const double p = 2.0 / (2.0 + others * std::exp(-gap));
      sum += p * p;
    }
    return {std::move(z), std::sqrt(sum) * move};
  }

  // w of the others at t, in the coordinates z
  Vector pull_in_z(const HeadWeights& h, const Vector& t) const {
    return flatten(
        pulled_back(region_, pull_of(h, token_of(region_, t)).transpose()));
  }

  // the unit direction of z, orthogonal to b, whose value is longest, by power
  // iteration: any direction would do
  Vector furthest_value(const HeadWeights& h, const Vector& b) const {
    const auto inside = [&](Vector z) {
      z = flatten(nearest({.centred = region_.centred}, z.transpose()));
      return Vector(z - b * b.dot(z));
    };
    Vector e = inside(gaussian(1, b.size(), Rng(0)).transpose());
    // in a plane of one dimension b is all there is
    if (e.norm() < 1e-8) return Vector::Zero(b.size());
    e.normalize();
    for (int step = 0; step < 60; ++step) {
      const Vector y = value_of(h, options_, direction_of(region_, e));
      const Vector back =
          h.value *
          (options_.project && h.output.size() > 0 ? Vector(h.output * y) : y);
      const Vector next = inside(direction_of(region_, back));
      if (next.norm() == 0.0) break;
      e = next.normalized();
    }
    return e;
  }

  std::optional<double> predicted(const Prediction& from_below, Index m) const {
    return if_one_dot_head(from_below(first_, m, n_));
  }

  // what is derived for one dot-product head says nothing of others
  std::optional<double> if_one_dot_head(double value) const {
    if (options_.kind != Kind::dot || !options_.plain_scores() ||
        heads_.size() > 1)
      return std::nullopt;
    return value;
  }

  void add_kim(const HeadWeights& h, const Directions& d) {
    const double p = kim_p(n_);
    const Vector far = std::sqrt((p + 1.0) / d.most) * d.u_most;
    Matrix z = Matrix::Zero(n_, far.size());
    for (Index i = 1; i < n_; ++i)
      z.row(i) = (i % 2 == 0 ? -1.0 : 1.0) * far.transpose();
    std::optional<double> value;
    const bool fits = !region_.bounded() || far.norm() <= region_.radius;
    // (under a causal mask token 0 does not see the others)
    if (n_ % 2 == 1 && far.size() == 1 && heads_.size() == 1 && fits &&
        region_.gain.size() == 0 && options_.mask == Mask::none) {
      double scale = d.most * h.value.cwiseAbs().maxCoeff();
      if (options_.project && h.output.size() > 0)
        scale = d.most * (h.value * h.output).cwiseAbs().maxCoeff();
      value = scale * (4.0 * p - 1.0 + 2.0 / (p + 1.0));
    }
    add("kim", z, value, Norm::inf);
    // under a mask the token at 0 must see all others
    if (options_.mask == Mask::causal) {
      add("kim, last", z.colwise().reverse());
    } else if (options_.mask != Mask::none) {
      const Index centre = sees_most(options_.mask, n_);
      const double seen = kim_p(visible(options_.mask, centre, n_).size());
      for (Index i = 0; i < n_; ++i)
        z.row(i) = (i % 2 == 0 ? -1.0 : 1.0) *
                   std::sqrt((seen + 1.0) / d.most) * d.u_most.transpose();
      z.row(centre).setZero();
      add("kim, at the token that sees most", z);
    }
  }

  const AttentionWeights& weights_;
  const AttentionOptions& options_;
  const Region& region_;
  Index n_;
  Index first_;  // of the tokens that all others are to see
  Index head_ = 0;
  std::vector<Index> heads_;
  std::vector<Construction> made_;
};

}  // namespace

std::vector<Construction> constructions(const AttentionWeights& weights,
                                        const AttentionOptions& options,
                                        const Region& region, Index n) {
  require(n >= 1, "constructions: a sequence of {} tokens", n);
  require_sound(weights, options.kind);
  require_sound(options.mask, n);
  require(region.gain.size() == 0 || region.gain.size() == weights.features(),
          "constructions: a norm of {} features for tokens of {}",
          region.gain.size(), weights.features());
  return Maker(weights, options, region, n).make();
}

double natural_radius(const AttentionWeights& weights,
                      const AttentionOptions& options, const Region& region,
                      Index n) {
  double largest = 0.0;
  for (const Index h : chosen_heads(weights, options.heads))
    largest = std::max(
        largest,
        directions(score_form(head(weights, h), region), region).singular);
  return largest > 0.0 ? std::sqrt((kim_p(n) + 1.0) / largest) : 1.0;
}

}  // namespace lipscope
