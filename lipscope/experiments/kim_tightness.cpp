#include <cmath>

#include "lipscope/experiments/shared_steps.h"
#include "lipscope/theory/bounds.h"

namespace lipscope {
namespace {

const AttentionOptions tied{.kind = Kind::l2, .threads = 1};

// Σ_j |J_0j|: the row of the token at 0, one of those that the norm is the
// largest of
double row_sum(const AttentionWeights& weights, const Matrix& x) {
  const MultiHeadAttention<double> f(weights, tied);
  const auto j = f.linearize(x);
  return j->apply_adjoint(Vector::Unit(j->rows(), 0)).lpNorm<1>();
}

}  // namespace

void kim_tightness(const ExperimentOptions& o, const Notebook& book) {
  book.open(
      {.name = "kim-tightness",
       .title = "L2 attention nearly attains its bound",
       .explanation =
           "Tied L2 attention, one head in one dimension, all weights 1, in "
           "the inf-norm. Above 4p + 1 with p e^(p+1) = N - 1; below a token "
           "at 0 and half of the others at each of +-sqrt(p+1), whose row sum "
           "is 4p - 1 + 2/(p+1), and the best tokens that ascents find.",
       .x_name = "N",
       .y_name = "inf-norm of the Jacobian",
       .log_x = true});
  AttentionWeights one = scalar_head(1.0, 1.0);
  one.key = Matrix();
  const std::vector<Index> lengths = {3, 5, 9, 21, 51, 101, 201, 501, 1001};
  for (const Index n : lengths) {
    // beyond 201 tokens an ascent takes seconds: from the closed form alone
    const Index restarts = o.full ? 50 : n <= 201 ? 8 : 0;
    const std::optional<Bound> above =
        best_bound(bounds(one, {.kind = Kind::l2, .n = n}), Norm::inf);
    const auto x = static_cast<double>(n);
    Record question = attention_question("d=1, W_Q=W_V=1");
    question.kind = name_of(Kind::l2);
    question.norm = Norm::inf;
    question.n = n;
    question.d = 1;
    question.scope = Scope::everywhere;
    book.ask({"closed form", x}, question, [&](Record& r) {
      const Construction c =
          named_construction(constructions(one, tied, everywhere(), n), "kim");
      r.lower = row_sum(one, c.x);
      r.lower_by = KnownBy(Procedure::row_sum).at("construction");
      r.details = {{"formula", c.predicted.value()},
                   {"p", (above->value - 1.0) / 4.0}};
      set_bound(r, above);
    });
    if (n > 501 && !o.full) continue;  // half a minute
    question.parameters["restarts"] = static_cast<double>(restarts);
    book.ask({"best found", x}, question, [&](Record& r) {
      set_searched(
          r, search(one, tied, everywhere(),
                    {.norm = Norm::inf,
                     .n = n,
                     .restarts = restarts,
                     .seed = o.seed,
                     .keep_going = [&](const SearchProgress& p) {
                       book.tell(fmt::format("N = {}, start {}/{}, {:.6g}", n,
                                             p.start, p.starts, p.best));
                       return true;
                     }}));
      set_bound(r, above);
    });
  }
}

}  // namespace lipscope
