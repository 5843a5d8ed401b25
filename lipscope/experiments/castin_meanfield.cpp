#include <cmath>

#include "lipscope/experiments/shared_steps.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/castin24.h"
#include "lipscope/theory/column_sums.h"
#include "lipscope/transport/local_constant.h"
#include "lipscope/transport/worst_measure.h"

namespace lipscope {
namespace {

// masses w at R and 1 − w at −R
Measure two_atoms(double R, double w) {
  return make_measure(Matrix{{R}, {-R}}, Vector{{w, 1.0 - w}});
}

}  // namespace

void castin_meanfield(const ExperimentOptions& o, const Notebook& book) {
  book.open(
      {.name = "castin-meanfield",
       .title = "Measures: growth with the radius",
       .explanation =
           "One head in one dimension, A = -1, V = 1, in the distance W2. "
           "Below, masses w and 1 - w at R and -R, tokens moving whole: w = "
           "1/(1 + exp(2R^2)), which gives at least (1 + R^2)exp(R^2)/2, and "
           "the best w. Above, the project's bound over measures in the ball, "
           "with the same exponent, and that of the paper, with twice that.",
       .x_name = "gamma R^2",
       .y_name = "constant in W2",
       .log_y = true});
  const AttentionWeights weights = scalar_head(-1.0, 1.0);
  const AttentionOptions options{.threads = o.threads};
  const MeasureOptions solver{.seed = o.seed, .threads = o.threads};
  const int restarts = o.full ? 50 : 8;
  for (double size = 0.5; size <= 5.0; size += o.full ? 0.25 : 0.5) {
    const double R = std::sqrt(size);
    const Measure start = two_atoms(R, 1.0 / (1.0 + std::exp(2.0 * size)));
    const std::vector<Bound> above = bounds(weights, {.n = 2, .radius = R});
    std::optional<WorstMeasure> worst;
    Record question = attention_question("d=1, A=-1, V=1");
    question.norm = Norm::w2;
    question.n = 2;
    question.d = 1;
    question.radius_max = R;
    question.scope = Scope::ball;
    book.ask({"masses of the paper", size}, question, [&](Record& r) {
      set_sides(r, local_constant(weights, options, start, solver).moving);
      r.details = {{"mass", start.mass[0]},
                   {"formula", 0.5 * (1.0 + size) * std::exp(size)}};
      set_bound(r, bound_by(column_sums_meanfield_statement, above));
    });
    question.parameters["restarts"] = static_cast<double>(restarts);
    for (const Statement& bound :
         {column_sums_meanfield_statement, castin24_meanfield_statement})
      book.ask({"best masses, " + bound.name, size}, question, [&](Record& r) {
        if (!worst)
          worst = worst_measure(
              weights, options, start,
              {.restarts = restarts, .seed = o.seed, .threads = o.threads});
        set_sides(
            r, local_constant(weights, options, worst->measure, solver).moving);
        r.lower_by = r.lower_by.at("ascent");
        r.details["mass"] = worst->measure.mass.minCoeff();
        set_bound(r, bound_by(bound, above));
      });
  }
}

}  // namespace lipscope
