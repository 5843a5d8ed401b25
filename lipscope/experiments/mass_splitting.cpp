#include <cmath>

#include "lipscope/experiments/shared_steps.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/transport/local_constant.h"
#include "lipscope/transport/ratio.h"

namespace lipscope {
namespace {

// how far tokens are really moved, beside the longest: enough for the distance
// to be far above rounding, little enough for the first order to rule
constexpr double small_step = 1e-7;

// a gap above this is said to be not solved
constexpr double small_gap = 1e-9;

double longest(const Measure& mu) { return mu.x.rowwise().norm().maxCoeff(); }

Record question_at(const Measure& mu, const std::string& model, Norm norm) {
  Record r = attention_question(model);
  r.norm = norm;
  r.n = mu.n();
  r.d = mu.x.cols();
  r.radius_max = longest(mu);
  return r;
}

// The constant as tokens move whole and as they may be cut, and what attention
// really does to the distance in either case.
void ask_all(const AttentionWeights& weights, const Measure& mu, double x,
             Record question, const ExperimentOptions& o,
             const Notebook& book) {
  const AttentionOptions options{.threads = o.threads};
  const MeasureOptions solver{.seed = o.seed, .threads = o.threads};
  std::optional<LocalConstant> made;
  const auto constant = [&]() -> const LocalConstant& {
    if (!made) made = local_constant(weights, options, mu, solver);
    return *made;
  };
  book.ask({"whole", x}, question,
           [&](Record& r) { set_sides(r, constant().moving); });
  book.ask({"cut", x}, question, [&](Record& r) {
    const LocalConstant& c = constant();
    set_sides(r, c.splits() ? c.splitting : c.moving);
    r.upper = c.upper();
    r.details["token"] = static_cast<double>(c.token);
  });

  const double size = longest(mu);
  question.parameters["step"] = small_step;
  question.scope = Scope::ball;
  question.radius_max = size * (1.0 + small_step);
  for (const bool cut : {false, true}) {
    const char* series = cut ? "cut, W2 ratio" : "whole, W2 ratio";
    book.ask({series, x}, question, [&](Record& r) {
      const LocalConstant& c = constant();
      const double far = c.displacement.rowwise().norm().maxCoeff();
      const TransportRatio t = transport_ratio(
          weights, options, mu,
          cut ? parted(mu, c.token, c.splitting.direction, small_step * size)
              : moved(mu, c.displacement, small_step * size / far));
      r.lower = t.lower;
      r.lower_by = Procedure::exact_transport;
      r.converged = t.relative_gap <= small_gap;
      r.details = {{"ratio", t.value},
                   {"relative_gap", t.relative_gap},
                   {"first_order", cut ? c.splitting.lower : c.moving.lower}};
      set_bound(r, best_bound(
                       bounds(weights, {.n = mu.n(),
                                        .radius = *r.radius_max * (1 + 1e-12)}),
                       Norm::w2));
    });
  }
}

void small_masses(const ExperimentOptions& o, const Notebook& book) {
  book.open(
      {.name = "mass-splitting",
       .title = "A token that may be cut reacts more than tokens that move",
       .explanation =
           "One dimension, A = -1, V = 1: mass 1 - w at 0 and w at "
           "1/sqrt(w). The constant in W2 where tokens move whole, and where a "
           "token may be cut into halves that part; and the distances after "
           "over those before of measures really moved so, by exact transport.",
       .x_name = "w",
       .y_name = "constant in W2",
       .log_x = true,
       .log_y = true});
  std::vector<double> masses = {0.25, 0.1, 0.01, 0.001};
  if (o.full) masses = geometric(0.25, 1e-6, 24);
  for (const double w : masses) {
    const Measure mu =
        make_measure(Matrix{{0.0}, {1.0 / std::sqrt(w)}}, Vector{{1.0 - w, w}});
    ask_all(scalar_head(-1.0, 1.0), mu, w,
            question_at(mu, "d=1, A=-1, V=1", Norm::w2), o, book);
  }
}

// Tokens of equal masses: to write each twice is to let it be cut.
void copies(const ExperimentOptions& o, const Notebook& book) {
  book.open(
      {.name = "mass-splitting, copies",
       .title = "Writing every token twice lets it be cut",
       .explanation =
           "One dimension, A = -0.345, V = 1, tokens 9.531 and 0.796, each "
           "written several times: as measures they are the same, and the "
           "sequence with copies reacts as the measure does.",
       .x_name = "copies",
       .y_name = "2-norm of the Jacobian"});
  const AttentionWeights weights = scalar_head(-0.345, 1.0);
  const Measure mu = uniform_measure(Matrix{{9.531}, {0.796}}, Mask::none);
  for (Index pieces = 1; pieces <= 4; ++pieces) {
    const Measure same = split_evenly(mu, pieces);
    book.ask(
        {"sequence with copies", static_cast<double>(pieces)},
        question_at(same, "d=1, A=-0.345, V=1", Norm::two), [&](Record& r) {
          measure_attention(r, weights, {.threads = o.threads}, same.x, o.seed);
        });
  }
  ask_all(weights, mu, 1.0, question_at(mu, "d=1, A=-0.345, V=1", Norm::w2), o,
          book);
}

}  // namespace

void mass_splitting(const ExperimentOptions& o, const Notebook& book) {
  small_masses(o, book);
  copies(o, book);
}

}  // namespace lipscope
