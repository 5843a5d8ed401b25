#include "lipscope/spectral/estimate.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rng.h"
#include "lipscope/core/rounding.h"
#include "lipscope/spectral/dense.h"
#include "lipscope/spectral/drift.h"
#include "lipscope/spectral/golub_kahan.h"
#include "lipscope/spectral/shift_direction.h"

// Three statements may fail, each with probability δ/3: the enclosure of ‖J̃‖ in
// f32, the bound on ‖J − J̃‖, and the enclosure of ‖J‖ in f64 where it is asked
// for. Which of the two bounds is reported depends on their values; their
// failures add up to δ, whichever it is.
//
// The hint of a search is made of J̃ and of random numbers of its own
// (shift_direction.cpp) before the start is drawn, so that the enclosures hold.

namespace lipscope {
namespace {

// a start is drawn from stream 0 of the seed
constexpr std::uint64_t drift_stream = std::uint64_t{1} << 62;
constexpr std::uint64_t fresh_stream = drift_stream + 1;

// rounding in the recurrences, relative: 64 units of either precision
constexpr double slack_f32 = 64 * 0x1p-24;
constexpr double slack_f64 = 64 * unit_roundoff;
// rounding in forming J in f64, relative to ‖J‖
constexpr double slack_forming = 1e-9;

struct Recomputed {
  double sigma = 0.0;     // ‖J v‖ / ‖v‖
  double residual = 0.0;  // ‖JᵀJ v − σ² v‖ / (σ² ‖v‖)
  Vector image;           // J v
};

// What the directions, one for each sequence and all end to end, are worth in
// f64.
std::vector<Recomputed> recomputed(const LinearOperator<double>& j,
                                   Index sequences, const Vector& directions) {
  const Index rows = j.rows() / sequences, cols = j.cols() / sequences;
  const Vector image = j.apply(directions);
  const Vector pullback = j.apply_adjoint(image);
  std::vector<Recomputed> result(sequences);
  for (Index s = 0; s < sequences; ++s) {
    const Vector v = directions.segment(s * cols, cols);
    const double length = v.norm();
    result[s].image = image.segment(s * rows, rows);
    const double sigma = result[s].image.norm() / length;
    if (length == 0.0 || sigma == 0.0) continue;
    const Vector g = pullback.segment(s * cols, cols);
    const double residual = (g / sigma - sigma * v).norm() / (sigma * length);
    if (!std::isfinite(sigma) || !std::isfinite(residual))
      throw RunError(fmt::format(
          "measure_norm: |J v| is {} with residual {} in f64 (sequence {})",
          sigma, residual, s));
    result[s].sigma = sigma;
    result[s].residual = residual;
  }
  return result;
}

// of the sequences
Vector end_to_end(std::vector<Vector> each) {
  if (each.size() == 1) return std::move(each[0]);
  const Index size = each[0].size();
  Vector all(static_cast<Index>(each.size()) * size);
  for (std::size_t s = 0; s < each.size(); ++s)
    all.segment(static_cast<Index>(s) * size, size) = each[s];
  return all;
}

bool enclosed(const Measurement& m, const MeasureOptions& options) {
  return options.enclose == 0.0 ||
         (m.upper_whp && *m.upper_whp <= options.enclose * m.lower);
}

void conclude(std::vector<Measurement>& all, const MeasureOptions& options) {
  for (Measurement& m : all)
    m.converged = m.residual <= options.tolerance && enclosed(m, options);
}

// How long a hint is beside the random part of a start, which is about √N. On
// layers and heads of MiniLM 0.3 to 30 take the same number of steps within 3
// %; 1 adds ln √2 to ln(1/c₀), of about 30.
constexpr double hint_length = 1.0;

// The likely directions of the sequences, of length one each, as a hint.
Vector as_hint(Vector likely, Index sequences) {
  return hint_length *
         std::sqrt(static_cast<double>(likely.size() / sequences)) * likely;
}

Vector unit(const Vector& v) {
  const double length = v.norm();
  return length > 0.0 ? Vector(v / length) : Vector();
}

// ---- small: form J

// The Jacobian of each sequence: column k of all at once.
std::vector<Matrix> materialize_each(const LinearOperator<double>& j,
                                     Index sequences) {
  const Index rows = j.rows() / sequences, cols = j.cols() / sequences;
  std::vector<Matrix> dense(sequences, Matrix(rows, cols));
  for (Index k = 0; k < cols; ++k) {
    Vector unit = Vector::Zero(j.cols());
    for (Index s = 0; s < sequences; ++s) unit[s * cols + k] = 1.0;
    const Vector column = j.apply(unit);
    for (Index s = 0; s < sequences; ++s)
      dense[s].col(k) = column.segment(s * rows, rows);
  }
  return dense;
}

std::vector<Measurement> measure_dense(const LinearOperator<double>& j,
                                       const MeasureOptions& options) {
  const Index sequences = options.sequences, cols = j.cols() / sequences;
  const std::vector<Matrix> dense = materialize_each(j, sequences);
  std::vector<DenseNorm> norms(sequences);
  parallel_for(sequences, options.threads,
               [&](Index s) { norms[s] = dense_norm(dense[s]); });

  Vector directions(j.cols());
  for (Index s = 0; s < sequences; ++s)
    directions.segment(s * cols, cols) = norms[s].direction;
  const std::vector<Recomputed> exact = recomputed(j, sequences, directions);

  std::vector<Measurement> result(sequences);
  for (Index s = 0; s < sequences; ++s) {
    const double upper = norms[s].upper * (1.0 + slack_forming);
    // what always holds, holds with high probability
    result[s] = {.lower = exact[s].sigma,
                 .lower_by = NormMethod::dense_gram,
                 .residual = exact[s].residual,
                 .steps = static_cast<int>(cols),
                 .direction = norms[s].direction,
                 .image = exact[s].image,
                 .upper = upper,
                 .upper_whp = upper,
                 .delta = options.delta};
  }
  conclude(result, options);
  return result;
}

// ---- large: iterate

template <class Real>
using SharedOperator = std::shared_ptr<const LinearOperator<Real>>;

// Where the two forms of J come from.
struct Forms {
  Index unknowns = 0;  // columns
  std::function<SharedOperator<float>()> in_f32;
  std::function<SharedOperator<double>()> in_f64;
  // a direction to start from, or nothing
  std::function<Vector(const LinearOperator<float>&)> likely = {};
};

class Search final {
 public:
  Search(Forms forms, const MeasureOptions& options)
      : forms_(std::move(forms)),
        options_(options),
        sequences_(options.sequences),
        unknowns_(forms_.unknowns),
        cols_(unknowns_ / sequences_),
        found_(sequences_) {}

  std::vector<Measurement> run() {
    search_in_f32();
    const std::vector<Index> loose = to_enclose_in_f64();
    if (!loose.empty()) enclose_in_f64(loose);
    if (continues_in_f64()) continue_in_f64();
    conclude(found_, options_);
    return found_;
  }

 private:
  // Part of the way to the enclosure: the rest is for slacks and probes.
  double part_of_enclosure(double part) const {
    return options_.enclose == 0.0 ? 0.0
                                   : 1.0 + part * (options_.enclose - 1.0);
  }

  GolubKahanOptions iteration() {
    return {.tolerance = options_.tolerance,
            .max_steps = options_.max_steps,
            .delta = options_.delta / 3,
            .seed = options_.seed,
            .threads = options_.threads,
            .keep_going =
                [this, before = steps_](int step) {
                  steps_ = before + step;
                  going_ = !options_.keep_going || options_.keep_going(steps_);
                  return going_;
                },
            .memory = options_.memory};
  }

  // J in f64. It is made when it is first asked for: at great lengths it and
  // the vectors of the f32 iteration would not fit side by side.
  const LinearOperator<double>& j64() {
    if (!j64_) {
      j64_ = forms_.in_f64();
      require(j64_->rows() == rows_ && j64_->cols() == unknowns_,
              "measure_norm: the map is [{}x{}] in f32 and [{}x{}] in f64",
              rows_, unknowns_, j64_->rows(), j64_->cols());
    }
    return *j64_;
  }

  void search_in_f32() {
    SharedOperator<float> j32 = forms_.in_f32();
    rows_ = j32->rows();
    require(j32->cols() == unknowns_ && rows_ % sequences_ == 0,
            "measure_norm: {} sequences of {} numbers in all have a [{}x{}] "
            "Jacobian",
            sequences_, unknowns_, rows_, j32->cols());

    if (forms_.likely) hint_ = as_hint(forms_.likely(*j32), sequences_);
    // what J in f32 was made of
    forms_.in_f32 = {};
    forms_.likely = {};
    GolubKahanOptions options = iteration();
    if (options_.enclose == 0.0)
      options.hint = std::move(hint_);  // nothing is enclosed in f64
    else
      options.hint = hint_;
    // f32 resolves no residual below a few of its units
    options.tolerance = std::max(options.tolerance, 1e-6);
    const double enclose = options.enclose = part_of_enclosure(0.9);
    std::vector<NormEstimate> estimates =
        golub_kahan(*j32, sequences_, std::move(options));
    if (options_.from_above) {
      // all of the drift before the rest in f64: both would not fit side by
      // side
      const Drift drift(*j32, {.probes = drift_probes(),
                               .delta = options_.delta / 3,
                               .seed = drift_seed(),
                               .sequences = sequences_});
      j32.reset();
      const std::vector<double> bounds = drift.bounds(j64());
      for (Index s = 0; s < sequences_; ++s) {
        const NormEstimate& e = estimates[s];
        found_[s].upper_whp =
            e.upper_factor * e.value * (1.0 + slack_f32) + bounds[s];
        if (e.upper_factor <= enclose) said_its_part_.push_back(s);
      }
    }
    j32.reset();
    adopt(std::move(estimates), NormMethod::golub_kahan_f32);
  }

  // The drift may take a tenth of an enclosure, and without one, where the
  // factor is 1.5 or more, a twentieth of the norm.
  int drift_probes() const {
    const double room =
        options_.enclose == 0.0 ? 0.05 : part_of_enclosure(0.1) - 1.0;
    return probes_for(room, options_.delta / 3);
  }
  std::uint64_t drift_seed() const {
    return Rng(options_.seed).split(drift_stream).next();
  }

  // Where the f32 iteration said its part and the sum is still too large, the
  // difference between f32 and f64 is to blame.
  std::vector<Index> to_enclose_in_f64() const {
    std::vector<Index> loose;
    if (!going_) return loose;
    for (const Index s : said_its_part_)
      if (!enclosed(found_[s], options_)) loose.push_back(s);
    return loose;
  }

  void enclose_in_f64(const std::vector<Index>& loose) {
    GolubKahanOptions options = iteration();
    options.only = loose;
    options.hint = hint_;
    options.enclose = part_of_enclosure(0.999);
    options.seed = Rng(options_.seed).split(fresh_stream).next();
    std::vector<NormEstimate> estimates =
        golub_kahan(j64(), sequences_, std::move(options));
    for (const Index s : loose) {
      const NormEstimate& e = estimates[s];
      const double upper = e.upper_factor * e.value * (1.0 + slack_f64);
      std::optional<double>& known = found_[s].upper_whp;
      known = known ? std::min(*known, upper) : upper;
    }
    adopt(std::move(estimates), NormMethod::golub_kahan_f64);
  }

  bool continues_in_f64() const {
    return going_ &&
           std::any_of(found_.begin(), found_.end(), [&](const auto& m) {
             return m.residual > options_.tolerance;
           });
  }

  // From the directions found; finished sequences start at zero and are left
  // alone.
  void continue_in_f64() {
    GolubKahanOptions options = iteration();
    options.start = Vector::Zero(unknowns_);
    for (Index s = 0; s < sequences_; ++s)
      if (found_[s].residual > options_.tolerance)
        options.start.segment(s * cols_, cols_) = found_[s].direction;
    adopt(golub_kahan(j64(), sequences_, std::move(options)),
          NormMethod::golub_kahan_f64);
  }

  // Keeps each direction that testifies to no less than the one known. Less by
  // rounding does not count: the later one has the smaller residual.
  void adopt(std::vector<NormEstimate> estimates, NormMethod by) {
    constexpr double rounding = 1e-13;
    std::vector<Vector> each;
    for (NormEstimate& e : estimates) each.push_back(std::move(e.direction));
    const Vector directions = end_to_end(std::move(each));
    std::vector<Recomputed> exact = recomputed(j64(), sequences_, directions);
    for (Index s = 0; s < sequences_; ++s) {
      Measurement& m = found_[s];
      m.steps += estimates[s].steps;
      m.delta = options_.delta;
      const bool left_alone = estimates[s].steps == 0;
      if (left_alone || exact[s].sigma < m.lower * (1.0 - rounding)) continue;
      m.lower = exact[s].sigma;
      m.residual = exact[s].residual;
      m.direction = directions.segment(s * cols_, cols_);
      m.image = std::move(exact[s].image);
      m.lower_by = by;
    }
  }

  Forms forms_;
  const MeasureOptions& options_;
  Index sequences_, unknowns_;
  Index cols_, rows_ = 0;  // cols_ of one sequence, rows_ of all
  Vector hint_;            // of all sequences, or nothing
  SharedOperator<double> j64_;
  std::vector<Measurement> found_;
  std::vector<Index> said_its_part_;  // sequences enclosed enough in f32
  int steps_ = 0;      // of the longest sequence, over all iterations
  bool going_ = true;  // until keep_going says no
};

}  // namespace

MemoryPlan memory_plan(Index unknowns, const MeasureOptions& options) {
  if (options.memory == 0 || unknowns <= options.dense_limit) return {};
  // a cycle as long as all steps never starts again
  const auto steps = [&](Index vectors) {
    return vectors < options.max_steps ? vectors : 0;
  };
  return {steps(vectors_within<float>(options.memory, unknowns)),
          steps(vectors_within<double>(options.memory, unknowns))};
}

namespace {

void require_sound(const MeasureOptions& options) {
  require(options.tolerance >= 0.0 && options.max_steps > 0,
          "measure_norm: tolerance {}, max_steps {}", options.tolerance,
          options.max_steps);
  require(options.enclose == 0.0 || options.enclose > 1.0,
          "measure_norm: enclose {}; a factor above 1, or 0 for none",
          options.enclose);
  require(options.from_above || options.enclose == 0.0,
          "measure_norm: enclose {} and nothing from above", options.enclose);
  require(options.delta > 0.0 && options.delta < 1.0,
          "measure_norm: delta {} is not between 0 and 1", options.delta);
}

// The maps at x, which must outlive the result.
Forms forms_at(const Map<float>& search, const Map<double>& witness,
               const Matrix& x, const MeasureOptions& options) {
  const auto rounded = std::make_shared<MatrixOf<float>>(x.cast<float>());
  require(rounded->allFinite(),
          "measure_norm: the input, up to {}, does not fit f32",
          x.cwiseAbs().maxCoeff());
  return {.unknowns = x.size(),
          .in_f32 = [&search, rounded] { return search.linearize(*rounded); },
          .in_f64 = [&witness, &x] { return witness.linearize(x); },
          .likely =
              [rounded, &options](const LinearOperator<float>& j32) {
                return Vector(shift_direction(options.common_shift, j32,
                                              *rounded, options.sequences)
                                  .cast<double>());
              }};
}

// who owns it keeps it
template <class Real>
SharedOperator<Real> borrowed(const LinearOperator<Real>& a) {
  return {std::shared_ptr<void>(), &a};
}

void require_one(Index unknowns, const MeasureOptions& options) {
  require(options.sequences == 1 && !options.common_shift,
          "measure_norm: an operator by itself has {} sequences or a common "
          "shift",
          options.sequences);
  require(options.likely.size() == 0 ||
              (options.likely.size() == unknowns && options.likely.allFinite()),
          "measure_norm: a likely direction of {} numbers for {} columns, or "
          "one that is not finite",
          options.likely.size(), unknowns);
}

bool is_formed(const LinearOperator<double>& a, const MeasureOptions& options) {
  const Index most = options.dense_limit;
  require(a.rows() > 0 && a.cols() > 0, "measure_norm: a [{}x{}] operator",
          a.rows(), a.cols());
  return a.cols() <= most && a.rows() <= 4 * most * most / a.cols();
}

}  // namespace

std::vector<Measurement> measure_norms(const Map<float>& search,
                                       const Map<double>& witness,
                                       const Matrix& x,
                                       const MeasureOptions& options) {
  require(options.sequences > 0 && x.size() > 0 &&
              x.rows() % options.sequences == 0,
          "measure_norm: [{}x{}] does not hold {} sequences of equal length",
          x.rows(), x.cols(), options.sequences);
  require(x.allFinite(), "measure_norm: the [{}x{}] input is not finite",
          x.rows(), x.cols());
  require_sound(options);

  if (x.size() / options.sequences > options.dense_limit)
    return Search(forms_at(search, witness, x, options), options).run();

  const std::unique_ptr<LinearOperator<double>> j64 = witness.linearize(x);
  require(j64->cols() == x.size() && j64->rows() % options.sequences == 0,
          "measure_norm: {} sequences [{}x{}] have a [{}x{}] Jacobian",
          options.sequences, x.rows(), x.cols(), j64->rows(), j64->cols());
  return measure_dense(*j64, options);
}

Measurement measure_norm(const Map<float>& search, const Map<double>& witness,
                         const Matrix& x, const MeasureOptions& options) {
  require(options.sequences == 1,
          "measure_norm: {} sequences; measure_norms measures many",
          options.sequences);
  return measure_norms(search, witness, x, options).front();
}

Measurement measure_norm(const LinearOperator<float>& search,
                         const LinearOperator<double>& witness,
                         const MeasureOptions& options) {
  require_sound(options);
  require_one(witness.cols(), options);
  if (is_formed(witness, options)) return measure_dense(witness, options)[0];
  return Search({.unknowns = witness.cols(),
                 .in_f32 = [&] { return borrowed(search); },
                 .in_f64 = [&] { return borrowed(witness); },
                 .likely =
                     [&](const LinearOperator<float>&) {
                       return unit(options.likely);
                     }},
                options)
      .run()
      .front();
}

Measurement measure_norm(const LinearOperator<double>& a,
                         const MeasureOptions& options) {
  require_sound(options);
  require_one(a.cols(), options);
  if (is_formed(a, options)) return measure_dense(a, options)[0];
  const NormEstimate e =
      golub_kahan(a, {.tolerance = options.tolerance,
                      .max_steps = options.max_steps,
                      // the rest is for rounding
                      .enclose = options.enclose == 0.0
                                     ? 0.0
                                     : 1.0 + 0.999 * (options.enclose - 1.0),
                      .delta = options.delta,
                      .seed = options.seed,
                      .threads = options.threads,
                      .keep_going = options.keep_going,
                      .memory = options.memory,
                      .hint = as_hint(unit(options.likely), 1)});
  Recomputed exact = recomputed(a, 1, e.direction).front();
  std::vector<Measurement> found(1);
  found[0] = {.lower = exact.sigma,
              .lower_by = NormMethod::golub_kahan_f64,
              .residual = exact.residual,
              .steps = e.steps,
              .direction = e.direction,
              .image = std::move(exact.image),
              .delta = options.delta};
  if (options.from_above)
    found[0].upper_whp = e.upper_factor * e.value * (1.0 + slack_f64);
  conclude(found, options);
  return found[0];
}

}  // namespace lipscope
