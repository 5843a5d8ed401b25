#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lipscope/control/contractive.h"
#include "lipscope/control/invert.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rng.h"
#include "lipscope/experiments/experiment.h"

namespace lipscope {
namespace {

constexpr Index inverted_tokens = 64, inverted_width = 64, heads = 8;

Matrix uniform(Index rows, Index cols, double width, Rng rng) {
  Matrix m(rows, cols);
  for (Index i = 0; i < m.size(); ++i)
    m.data()[i] = width * (2.0 * rng.uniform() - 1.0);
  return m;
}

// Glorot's initialisation: uniform within √(6/(rows + columns))
AttentionWeights glorot(bool tied, const Rng& rng) {
  const auto one = [&](std::uint64_t stream) {
    return uniform(inverted_width, inverted_width,
                   std::sqrt(6.0 / (2.0 * inverted_width)), rng.split(stream));
  };
  AttentionWeights w;
  w.heads = heads;
  w.query = one(0);
  if (!tied) w.key = one(1);
  w.value = one(2);
  w.output = one(3);
  return w;
}

// How the worst of many inputs fares, from iteration to iteration.
struct Curve {
  std::vector<double> error;  // max |X⁽ᵏ⁾ − X|_inf of iteration k = index + 1
  std::vector<double> bound;  // from above, or empty
  double worst_ratio = 0.0;   // of steps, above rounding
  double diverged = 0.0;      // inputs that did
};

struct Question {
  const Map<double>& f;
  std::optional<double> lipschitz;
  double scale, width;
  Index inputs;
  int iterations;
};

Curve curve_of(const Question& q, const ExperimentOptions& o) {
  struct One {
    Curve curve;
    bool diverged;
  };
  std::vector<One> all(q.inputs);
  const ResidualMap g{&q.f, q.scale, q.lipschitz};
  parallel_for(q.inputs, o.threads, [&](Index i) {
    Matrix x = uniform(inverted_tokens, inverted_width, q.width,
                       Rng(o.seed).split(1).split(i));
    x.row(0).setZero();
    Curve& c = all[i].curve;
    const Inversion found =
        invert(g, g(x),
               {.tolerance = 1e-300,  // go on to the end
                .max_iterations = q.iterations,
                .keep_going = [&](const InvertStep& s) {
                  c.error.push_back(sequence_norm(s.x - x, Norm::inf));
                  if (s.error_bound) c.bound.push_back(*s.error_bound);
                  return true;
                }});
    all[i].diverged = found.status == InvertStatus::diverged;
    c.worst_ratio = found.worst_ratio;
    // x is the preimage of what g(x) was before it was rounded
    for (double& b : c.bound) b = well_above(b + *found.rounding);
    // where nothing but rounding was left, it stays
    while (!all[i].diverged &&
           c.error.size() < static_cast<std::size_t>(q.iterations)) {
      c.error.push_back(c.error.back());
      if (!c.bound.empty()) c.bound.push_back(c.bound.back());
    }
  });
  Curve worst = all.front().curve;
  for (const One& one : all) {
    worst.error.resize(std::min(worst.error.size(), one.curve.error.size()));
    for (std::size_t k = 0; k < worst.error.size(); ++k)
      worst.error[k] = std::max(worst.error[k], one.curve.error[k]);
    for (std::size_t k = 0; k < worst.bound.size(); ++k)
      worst.bound[k] = std::max(worst.bound[k], one.curve.bound[k]);
    worst.worst_ratio = std::max(worst.worst_ratio, one.curve.worst_ratio);
    worst.diverged += one.diverged;
  }
  return worst;
}

void set_iteration(Record& r, const Curve& curve, int iteration) {
  const std::size_t k = iteration - 1;
  r.steps = iteration;
  r.converged = false;
  if (k < curve.error.size()) {
    r.lower = curve.error[k];
    r.lower_by = Procedure::reconstruction;
    r.converged = curve.error[k] <= 1e-10;
  }
  if (k < curve.bound.size()) {
    r.upper = curve.bound[k];
    r.upper_by = Procedure::a_posteriori;
  }
  r.details = {{"worst_ratio", curve.worst_ratio},
               {"diverged", curve.diverged}};
}

}  // namespace

void kim_inversion(const ExperimentOptions& o, const Notebook& book) {
  const Rng rng = Rng(o.seed).split(0);
  const AttentionWeights tied = glorot(true, rng), untied = glorot(false, rng);
  const AttentionOptions l2{.kind = Kind::l2, .threads = 1};
  const MultiHeadAttention<double> plain(tied, l2);
  const ContractiveL2<double> contractive(tied, l2);
  const MultiHeadAttention<double> dot(untied, {.threads = 1});
  struct Subject {
    std::string name;
    Kind kind;
    const Map<double>& f;
    std::optional<double> lipschitz;
  };
  const std::vector<Subject> subjects = {
      {"L2", Kind::l2, plain, {}},
      {"Contractive-L2", Kind::l2, contractive, 1.0},
      {"dot-product", Kind::dot, dot, {}}};
  const std::vector<int> iterations = {1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100};
  const Index inputs = o.full ? 128 : 16;

  for (const double width : {1.0, 10.0}) {
    book.open(
        {.name = fmt::format("kim-inversion, inputs within {}", width),
         .title = fmt::format(
             "Residual attention inverted by fixed point, inputs within {}",
             width),
         .explanation = fmt::format(
             "Y = X + c f(X), then X from Y by X <- Y - c f(X); 64 tokens, 64 "
             "features, 8 heads, Glorot's weights; one token is 0, the others "
             "are uniform within {}. Below the largest error |X found - X| in "
             "the inf-norm over the inputs; above what is proved of it, for "
             "Contractive-L2 (L2 divided by its bound) alone. Converged: at "
             "most 1e-10.",
             width),
         .x_name = "iteration",
         .y_name = "largest reconstruction error",
         .log_x = true,
         .log_y = true});
    for (const Subject& subject : subjects)
      for (const double c : {0.5, 0.7, 0.9}) {
        std::optional<Curve> curve;  // made for the first row that is wanted
        const std::string series = fmt::format("{}, c = {}", subject.name, c);
        Record question = attention_question("Glorot, d=64, heads=8");
        question.map = "inverse";
        question.kind = name_of(subject.kind);
        question.norm = Norm::inf;
        question.n = inverted_tokens;
        question.d = inverted_width;
        question.parameters = {{"scale", c},
                               {"width", width},
                               {"inputs", static_cast<double>(inputs)}};
        question.quantity = Quantity::reconstruction_error;
        for (const int k : iterations) {
          book.ask({series, static_cast<double>(k)}, question, [&](Record& r) {
            if (!curve)
              curve = curve_of({subject.f, subject.lipschitz, c, width, inputs,
                                iterations.back()},
                               o);
            set_iteration(r, *curve, k);
            if (subject.lipschitz)
              r.details["divisor"] = contractive.bound(inverted_tokens).value();
          });
        }
      }
  }
}

}  // namespace lipscope
