#include "lipscope/spectral/golub_kahan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rng.h"
#include "lipscope/spectral/bidiagonal.h"

// After m steps, with V = [v₁ … v_m] and U = [u₁ … u_m] of orthonormal columns
// and B upper bidiagonal (α on the diagonal, β above it),
//
//   A V  = U B                        α_j u_j     = A v_j − β_{j−1} u_{j−1}
//   AᵀU  = V Bᵀ + β_m v_{m+1} e_mᵀ    β_j v_{j+1} = Aᵀu_j − α_j v_j.
//
// For the top singular pair B y = σ̂ w, ‖y‖ = 1, the direction V y has
// ‖A V y‖ = ‖B y‖ = σ̂, and since the last row of B holds α_m alone,
//
//   AᵀA V y = AᵀU B y = V BᵀB y + β_m v_{m+1} (B y)_m
//           = σ̂² V y + α_m β_m y_m v_{m+1},
//
// so that the residual is α_m β_m |y_m| / σ̂² without another product.
//
// Only V is stored and reorthogonalised: u_j needs u_{j−1} alone, and U is as
// orthogonal as the use of B needs when V is [SimonZha00].
//
// The enclosure from a random start is proved in enclosure.cpp.
//
// When the space is exhausted. If β_m (or α_m) is at rounding level, V spans a
// space that AᵀA maps to itself up to R = AᵀA V − V BᵀB, small. In exact
// arithmetic with R = 0 the value would be ‖A‖₂ with probability one. In the
// arithmetic there is, zᵀR = pᵀ(λ₁ − BᵀB) for p = Vᵀz gives
//
//   λ₁ ≤ σ̂² + ‖R‖/‖p‖,   ‖p‖ ≥ c,
//
// and c may be as small as start_overlap, t: what the start holds of z can
// drown in rounding. So the factor is √(1 + ‖R‖/(t σ̂²)), where ‖R‖ ≤ 32 u √m σ̂²
// is the slack for rounding (a column of R is made of a handful of operations
// with unit u relative to σ̂²). In double that is a few percent at the most; in
// float at δ = 1e-10 it says nothing. Then, if an enclosure is asked for, the
// run goes on from a fresh random direction orthogonal to V. ‖p‖ is at least as
// large as the component of z along each of the S starts. That of the first is
// below δ^{1/S}/(8‖g + h‖) with probability at most √(2/π) δ^{1/S}/8, and so is
// each later one below δ^{1/S}/(8 √N). Hence t = δ^{1/S}/(8 max(‖g + h‖, √N))
// fails for some S ≥ 2 with probability < 0.02 δ in all, and
// 0.97 δ + 0.02 δ < δ. When V is the whole space, ‖p‖ = 1.

namespace lipscope {
namespace {

// What a sum over a vector is cut into: the pieces are fixed, and their sums
// are added in order, so the threads do not show in the result.
constexpr Index chunk_size = 16384;

struct Chunk {
  Index part, begin, size;  // begin counts from the first part
};

std::vector<Chunk> chunks_of(const std::vector<Index>& parts, Index size) {
  std::vector<Chunk> chunks;
  for (const Index b : parts)
    for (Index i = 0; i < size; i += chunk_size)
      chunks.push_back({b, b * size + i, std::min(chunk_size, size - i)});
  return chunks;
}

template <class Real>
double dot(const Real* x, const Real* y, Index size) {
  // sixteen sums side by side: a fixed order of additions that fills registers
  constexpr Index lanes = 16;
  std::array<double, lanes> sums{};
  Index i = 0;
  for (; i + lanes <= size; i += lanes)
    for (Index k = 0; k < lanes; ++k)
      sums[k] += static_cast<double>(x[i + k]) * static_cast<double>(y[i + k]);
  double sum = 0.0;
  for (; i < size; ++i)
    sum += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  for (const double s : sums) sum += s;
  return sum;
}

// The same as precisely as the vectors are: 1024 products are summed in Real,
// in 64 sums side by side, and only what comes of that in double. Good enough
// for what is to be removed of a vector, and four times as fast for float.
template <class Real>
double rough_dot(const Real* x, const Real* y, Index size) {
  constexpr Index lanes = 64, strip = 1024;
  double sum = 0.0;
  for (Index begin = 0; begin < size; begin += strip) {
    const Index end = std::min(size, begin + strip);
    std::array<Real, lanes> sums{};
    Index i = begin;
    for (; i + lanes <= end; i += lanes)
      for (Index k = 0; k < lanes; ++k) sums[k] += x[i + k] * y[i + k];
    for (Index k = 0; i + k < end; ++k) sums[k] += x[i + k] * y[i + k];
    for (Index half = lanes / 2; half > 0; half /= 2)
      for (Index k = 0; k < half; ++k) sums[k] += sums[k + half];
    sum += static_cast<double>(sums[0]);
  }
  return sum;
}

// y −= a x. A plain loop: Eigen works on some entries of a segment one by one
// and on others in packets, and which ones depends on where the segment begins.
template <class Real>
void subtract(Real a, const Real* x, Real* y, Index size) {
  for (Index i = 0; i < size; ++i) y[i] -= a * x[i];
}

// ‖x‖ from its sum of squares, or anew where that left the range of double
template <class Real>
double norm_from(double squares, const Real* x, Index size) {
  if (squares > 1e-280 && squares < 1e280) return std::sqrt(squares);
  const Eigen::Map<const VectorOf<Real>> entries(x, size);
  const double largest = static_cast<double>(
      entries.cwiseAbs().template maxCoeff<Eigen::PropagateNaN>());
  if (largest == 0.0 || !std::isfinite(largest)) return largest;
  return largest * (entries.template cast<double>() / largest).norm();
}

// What one part has of its own.
template <class Real>
struct Run {
  std::vector<VectorOf<Real>> basis;  // V
  std::vector<double> alpha, beta;    // B
  double scale = 0.0;                 // the largest entry of B, ≤ σ̂
  int before = 0;                     // steps of earlier cycles
  int exhausted = 0;                  // starts whose Krylov space is exhausted
  double length = 0.0;                // of a random start
  std::vector<double> y;              // direction = V y
  NormEstimate estimate;
};

// All parts, moved on together.
template <class Real>
class LockStep final {
 public:
  LockStep(const LinearOperator<Real>& a, Index parts,
           GolubKahanOptions options)
      : a_(a),
        options_(std::move(options)),
        rows_(a.rows() / parts),
        cols_(a.cols() / parts),
        runs_(parts),
        u_(VectorOf<Real>::Zero(a.rows())),
        v_(VectorOf<Real>::Zero(a.cols())) {
    for (Index b = 0; b < parts; ++b) {
      const Vector start = start_of(b);
      const double largest = start.cwiseAbs().maxCoeff();
      if (largest == 0.0) {
        runs_[b].estimate.converged = true;
        runs_[b].estimate.direction = start;
        continue;
      }
      runs_[b].length = start.norm();
      v_.segment(b * cols_, cols_) = (start / largest).template cast<Real>();
      active_.push_back(b);
    }
    options_.hint.resize(0);
    normalize(active_);
    if (options_.memory > 0)
      capacity_ = vectors_within<Real>(options_.memory, cols_);
  }

  bool finished() const { return active_.empty(); }

  void step() {
    for (const Index b : active_) {
      if (full(b)) restart(b);
      runs_[b].basis.push_back(v_.segment(b * cols_, cols_));
    }
    extend_left();
    extend_right();

    std::vector<Index> go_on, fresh;
    for (const Index b : active_) {
      judge(b);
      if (ends(b)) {
        close(b);
      } else {
        go_on.push_back(b);
        if (exhausted(runs_[b])) fresh.push_back(b);
      }
    }
    active_ = go_on;
    if (!fresh.empty()) start_again(fresh);
    std::vector<double> length(runs_.size(), 1.0);
    std::vector<Index> extended;
    for (const Index b : active_) {
      if (full(b) || exhausted(runs_[b])) continue;
      length[b] = runs_[b].beta.back();
      extended.push_back(b);
    }
    divide(v_, extended, cols_, length);
  }

  std::vector<NormEstimate> results() {
    for (const Index b : active_) close(b);
    std::vector<NormEstimate> estimates;
    for (Run<Real>& run : runs_) estimates.push_back(std::move(run.estimate));
    return estimates;
  }

 private:
  bool full(Index b) const {
    return static_cast<Index>(runs_[b].basis.size()) >= capacity_;
  }
  bool given() const { return options_.start.size() > 0; }
  Vector start_of(Index b) const {
    if (!runs(b)) return Vector::Zero(cols_);
    if (given()) return options_.start.segment(b * cols_, cols_);
    Vector start = flatten(gaussian(cols_, 1, rng(b)));
    if (options_.hint.size() > 0)
      start += Vector(options_.hint.segment(b * cols_, cols_));
    return start;
  }
  bool runs(Index part) const {
    const std::vector<Index>& only = options_.only;
    return only.empty() ||
           std::find(only.begin(), only.end(), part) != only.end();
  }
  Rng rng(Index part) const {
    const std::vector<std::uint64_t>& seeds = options_.seeds;
    return Rng(seeds.empty() ? options_.seed : seeds[part]).split(0);
  }
  Index parts() const { return static_cast<Index>(runs_.size()); }

  // A team of threads costs more than so many multiplications.
  int threads_for(Index work) const {
    return work < (Index{1} << 17) ? 1 : options_.threads;
  }

  // at most what rounding makes of a zero
  bool negligible(double entry, const Run<Real>& run) const {
    return entry <= 32 * std::numeric_limits<Real>::epsilon() * run.scale;
  }
  bool exhausted(const Run<Real>& run) const {
    return static_cast<Index>(run.alpha.size()) == cols_ ||
           run.alpha.back() == 0.0 || negligible(run.beta.back(), run);
  }

  // α_m u_m = A v_m − β_{m−1} u_{m−1}
  void extend_left() {
    VectorOf<Real> w = a_.apply(v_);
    require(w.size() == a_.rows(),
            "golub_kahan: a [{}x{}] operator gives {} numbers", a_.rows(),
            a_.cols(), w.size());
    for_each_chunk(active_, rows_, [&](const Chunk& c) {
      if (runs_[c.part].beta.empty()) return;
      const Real beta = static_cast<Real>(runs_[c.part].beta.back());
      subtract(beta, u_.data() + c.begin, w.data() + c.begin, c.size);
    });
    u_ = std::move(w);
    const std::vector<double> length = norms(active_, u_, rows_);
    std::vector<Index> extended;
    for (const Index b : active_) {
      Run<Real>& run = runs_[b];
      check_finite("alpha", length[b], b);
      run.scale = std::max(run.scale, length[b]);
      run.alpha.push_back(length[b]);
      if (negligible(length[b], run)) {
        // A v_m lies in the span of U: what is left of it is noise, not u_m
        run.alpha.back() = 0.0;
        u_.segment(b * rows_, rows_).setZero();
      } else {
        extended.push_back(b);
      }
    }
    divide(u_, extended, rows_, length);
  }

  // β_m v_{m+1} = Aᵀu_m − α_m v_m, less what rounding left of it in V. Removing
  // that once is enough where it is the smaller part of the vector; where it is
  // not, what rounding leaves of it is removed again
  // [DanielGraggKaufmanStewart76].
  void extend_right() {
    v_.resize(0);  // it stands in V
    v_ = a_.apply_adjoint(u_);
    require(v_.size() == a_.cols(),
            "golub_kahan: the adjoint of a [{}x{}] operator gives {} numbers",
            a_.rows(), a_.cols(), v_.size());
    for_each_chunk(active_, cols_, [&](const Chunk& c) {
      const Run<Real>& run = runs_[c.part];
      subtract(static_cast<Real>(run.alpha.back()),
               run.basis.back().data() + (c.begin - c.part * cols_),
               v_.data() + c.begin, c.size);
    });
    const std::vector<double> removed = orthogonalize(active_);
    std::vector<double> length = norms(active_, v_, cols_);
    std::vector<Index> again;
    for (const Index b : active_)
      if (!(removed[b] <= length[b] * length[b])) again.push_back(b);
    if (!again.empty()) {
      orthogonalize(again);
      const std::vector<double> anew = norms(again, v_, cols_);
      for (const Index b : again) length[b] = anew[b];
    }
    for (const Index b : active_) {
      check_finite("beta", length[b], b);
      runs_[b].scale = std::max(runs_[b].scale, length[b]);
      runs_[b].beta.push_back(length[b]);
    }
  }

  void judge(Index b) {
    Run<Real>& run = runs_[b];
    NormEstimate& estimate = run.estimate;
    const TopPair top = top_of_bidiagonal(run.alpha, run.beta);
    run.y = top.y;
    estimate.steps = run.before + static_cast<int>(run.alpha.size());
    estimate.value = top.value;
    estimate.residual =
        top.value == 0.0
            ? 0.0
            : run.alpha.back() / top.value *
                  (run.beta.back() / top.value * std::abs(top.y.back()));
    if (exhausted(run)) ++run.exhausted;
    if (!given() && run.before == 0)
      estimate.upper_factor = std::min(estimate.upper_factor, enclosure(run));
    estimate.converged =
        estimate.residual <= options_.tolerance && enclosed(estimate);
  }

  double enclosure(const Run<Real>& run) const {
    const NormEstimate& estimate = run.estimate;
    // A maps a random vector to zero: with probability one it is zero
    if (estimate.value == 0.0) return 1.0;
    const double overlap = start_overlap(run.length, options_.delta);
    if (run.exhausted == 0) return enclosure_factor(overlap, estimate.steps);
    const double longest =
        std::max(run.length, std::sqrt(static_cast<double>(cols_)));
    const double seen =
        estimate.steps == cols_ ? 1.0
        : run.exhausted == 1
            ? overlap
            : std::pow(options_.delta, 1.0 / run.exhausted) / (8 * longest);
    const double slack = 32 * std::numeric_limits<Real>::epsilon() *
                         std::sqrt(static_cast<double>(estimate.steps));
    const double factor = std::sqrt(1.0 + slack / seen);
    // before the first restart the bound of a space not exhausted holds as well
    return run.exhausted > 1
               ? factor
               : std::min(factor, enclosure_factor(overlap, estimate.steps));
  }

  bool enclosed(const NormEstimate& estimate) const {
    return options_.enclose == 0.0 || estimate.upper_factor <= options_.enclose;
  }

  bool ends(Index b) const {
    const NormEstimate& estimate = runs_[b].estimate;
    if (estimate.converged ||
        static_cast<Index>(runs_[b].alpha.size()) == cols_)
      return true;
    // after a restart no enclosure can be gained any more
    if (runs_[b].before > 0 &&
        (exhausted(runs_[b]) || estimate.residual <= options_.tolerance))
      return true;
    // an exhausted space has nothing more to give; only an enclosure, if asked
    // for, is worth another start
    return exhausted(runs_[b]) && enclosed(estimate);
  }

  // A finished part: its direction is made, its memory freed.
  void close(Index b) {
    Run<Real>& run = runs_[b];
    u_.segment(b * rows_, rows_).setZero();
    v_.segment(b * cols_, cols_).setZero();
    run.estimate.direction = direction(run);
    run.basis = {};
  }

  // The next cycle starts from the best direction of this one, v₁ = V y. Not
  // before it is wanted: the results may be, and they are made of V.
  void restart(Index b) {
    Run<Real>& run = runs_[b];
    v_.segment(b * cols_, cols_) = direction(run).template cast<Real>();
    run.before = run.estimate.steps;
    run.basis.clear();
    run.alpha.clear();
    run.beta.clear();
  }

  // V y
  Vector direction(const Run<Real>& run) const {
    Vector total(cols_);
    const std::vector<Chunk> chunks = chunks_of({0}, cols_);
    parallel_for(
        static_cast<Index>(chunks.size()),
        threads_for(cols_ * Index(run.y.size())), [&](Index i) {
          const auto [_, begin, size] = chunks[i];
          Vector sum = Vector::Zero(size);
          for (std::size_t j = 0; j < run.y.size(); ++j)
            sum += run.y[j] *
                   run.basis[j].segment(begin, size).template cast<double>();
          total.segment(begin, size) = sum;
        });
    return total / total.norm();
  }

  // The next v of each of these parts is uniformly random, orthogonal to V,
  // and β_m = 0: B falls apart, and what follows is a run of its own.
  void start_again(const std::vector<Index>& parts) {
    for (const Index b : parts) {
      Run<Real>& run = runs_[b];
      run.beta.back() = 0.0;
      v_.segment(b * cols_, cols_) =
          random_direction(cols_, rng(b).split(run.exhausted))
              .template cast<Real>();
    }
    // twice: once leaves rounding errors of the size of what was removed
    orthogonalize(parts);
    orthogonalize(parts);
    normalize(parts);
  }

  // v ← (1 − VVᵀ) v; returns what that took of each part, squared
  std::vector<double> orthogonalize(const std::vector<Index>& parts) {
    const std::vector<Chunk> chunks = chunks_of(parts, cols_);
    const Index count = static_cast<Index>(chunks.size());
    const Index m = static_cast<Index>(runs_[parts.front()].basis.size());
    const int threads = threads_for(cols_ * Index(parts.size()) * m);
    Matrix partial(count, m), total = Matrix::Zero(this->parts(), m);
    parallel_for(count, threads, [&](Index i) {
      const auto [b, begin, size] = chunks[i];
      for (Index j = 0; j < m; ++j)
        partial(i, j) =
            rough_dot(runs_[b].basis[j].data() + (begin - b * cols_),
                      v_.data() + begin, size);
    });
    for (Index i = 0; i < count; ++i)
      total.row(chunks[i].part) += partial.row(i);
    parallel_for(count, threads, [&](Index i) {
      const Chunk& chunk = chunks[i];
      subtract_all(runs_[chunk.part].basis, chunk, total.row(chunk.part));
    });
    std::vector<double> removed(runs_.size(), 0.0);
    for (const Index b : parts)
      for (Index j = 0; j < m; ++j) removed[b] += total(b, j) * total(b, j);
    return removed;
  }

  // v −= Σ_j c_j V_j on one chunk
  void subtract_all(const std::vector<VectorOf<Real>>& basis,
                    const Chunk& chunk,
                    const Eigen::Ref<const Eigen::RowVectorXd>& c) {
    constexpr Index strip = 2048;  // stays in the nearest cache
    for (Index i = 0; i < chunk.size; i += strip) {
      const Index size = std::min(strip, chunk.size - i);
      const Index within = chunk.begin - chunk.part * cols_ + i;
      Real* v = v_.data() + chunk.begin + i;
      for (Index j = 0; j < c.size(); ++j) {
        subtract(static_cast<Real>(c[j]), basis[j].data() + within, v, size);
      }
    }
  }

  // the norm of each of these parts of x, each of the given size
  std::vector<double> norms(const std::vector<Index>& parts,
                            const VectorOf<Real>& x, Index size) const {
    const std::vector<Chunk> chunks = chunks_of(parts, size);
    std::vector<double> partial(chunks.size());
    parallel_for(static_cast<Index>(chunks.size()),
                 threads_for(size * Index(parts.size())), [&](Index i) {
                   const Real* piece = x.data() + chunks[i].begin;
                   partial[i] = dot(piece, piece, chunks[i].size);
                 });
    std::vector<double> result(runs_.size(), 0.0);
    for (std::size_t i = 0; i < chunks.size(); ++i)
      result[chunks[i].part] += partial[i];
    for (const Index b : parts)
      result[b] = norm_from(result[b], x.data() + b * size, size);
    return result;
  }

  void normalize(const std::vector<Index>& parts) {
    divide(v_, parts, cols_, norms(parts, v_, cols_));
  }

  // each of these parts of x, each of the given size, by its length; in
  // double where the norm of a float vector, or its inverse, is no good float
  void divide(VectorOf<Real>& x, const std::vector<Index>& parts, Index size,
              const std::vector<double>& length) const {
    for_each_chunk(parts, size, [&](const Chunk& c) {
      auto piece = x.segment(c.begin, c.size);
      const double inverse = 1.0 / length[c.part];
      if (inverse > 1e-30 && inverse < 1e30)
        piece *= static_cast<Real>(inverse);
      else
        piece = (piece.template cast<double>() / length[c.part])
                    .template cast<Real>();
    });
  }

  // work on every entry by itself, a chunk a task
  template <class Task>
  void for_each_chunk(const std::vector<Index>& parts, Index size,
                      const Task& task) const {
    const std::vector<Chunk> chunks = chunks_of(parts, size);
    parallel_for(static_cast<Index>(chunks.size()),
                 threads_for(size * Index(parts.size())),
                 [&](Index i) { task(chunks[i]); });
  }

  void check_finite(const char* name, double value, Index part) const {
    if (!std::isfinite(value))
      throw RunError(fmt::format(
          "golub_kahan: {} is {} in step {} (part {} of {}, [{}x{}])", name,
          value, runs_[part].basis.size(), part, parts(), rows_, cols_));
  }

  const LinearOperator<Real>& a_;
  GolubKahanOptions options_;  // its hint is in the starts
  Index rows_, cols_;          // of one part
  Index capacity_ = std::numeric_limits<Index>::max();  // vectors of a cycle
  std::vector<Run<Real>> runs_;
  std::vector<Index> active_;  // parts not finished
  VectorOf<Real> u_, v_;       // u_m and v_{m+1} of all parts, end to end
};

}  // namespace

template <class Real>
Index vectors_within(std::uint64_t memory, Index unknowns) {
  return std::max<Index>(8, static_cast<Index>(memory / sizeof(Real)) /
                                std::max<Index>(1, unknowns));
}

template Index vectors_within<float>(std::uint64_t, Index);
template Index vectors_within<double>(std::uint64_t, Index);

template <class Real>
std::vector<NormEstimate> golub_kahan(const LinearOperator<Real>& a,
                                      Index parts, GolubKahanOptions options) {
  require(parts > 0 && a.rows() > 0 && a.cols() > 0 && a.rows() % parts == 0 &&
              a.cols() % parts == 0,
          "golub_kahan: a [{}x{}] operator has no {} parts of equal size",
          a.rows(), a.cols(), parts);
  require(options.tolerance >= 0.0, "golub_kahan: tolerance {}",
          options.tolerance);
  require(options.max_steps > 0, "golub_kahan: max_steps {}",
          options.max_steps);
  require(options.enclose == 0.0 || options.enclose > 1.0,
          "golub_kahan: enclose {}; a factor above 1, or 0 for none",
          options.enclose);
  require(options.delta > 0.0 && options.delta < 1.0,
          "golub_kahan: delta {} is not between 0 and 1", options.delta);
  require(options.start.size() == 0 || options.start.size() == a.cols(),
          "golub_kahan: a start of {} numbers for a [{}x{}] operator",
          options.start.size(), a.rows(), a.cols());
  require(options.start.size() == 0 || options.start.allFinite(),
          "golub_kahan: the start has a number that is not finite");
  require(options.hint.size() == 0 ||
              (options.hint.size() == a.cols() && options.hint.allFinite() &&
               options.start.size() == 0),
          "golub_kahan: a hint of {} numbers for a [{}x{}] operator, one that "
          "is not finite, or one beside a given start",
          options.hint.size(), a.rows(), a.cols());
  require(options.start.size() == 0 || options.enclose == 0.0,
          "golub_kahan: no enclosure (enclose {}) from a given start",
          options.enclose);

  require(options.seeds.empty() ||
              static_cast<Index>(options.seeds.size()) == parts,
          "golub_kahan: {} seeds for {} parts", options.seeds.size(), parts);
  for (const Index b : options.only)
    require(b >= 0 && b < parts, "golub_kahan: part {} of {} is to run", b,
            parts);

  const int max_steps = options.max_steps;
  const std::function<bool(int)> keep_going = options.keep_going;
  LockStep<Real> run(a, parts, std::move(options));
  for (int step = 1; step <= max_steps && !run.finished(); ++step) {
    run.step();
    if (keep_going && !keep_going(step)) break;
  }
  return run.results();
}

template <class Real>
NormEstimate golub_kahan(const LinearOperator<Real>& a,
                         GolubKahanOptions options) {
  return golub_kahan(a, 1, std::move(options)).front();
}

template NormEstimate golub_kahan(const LinearOperator<float>&,
                                  GolubKahanOptions);
template NormEstimate golub_kahan(const LinearOperator<double>&,
                                  GolubKahanOptions);
template std::vector<NormEstimate> golub_kahan(const LinearOperator<float>&,
                                               Index, GolubKahanOptions);
template std::vector<NormEstimate> golub_kahan(const LinearOperator<double>&,
                                               Index, GolubKahanOptions);

}  // namespace lipscope
