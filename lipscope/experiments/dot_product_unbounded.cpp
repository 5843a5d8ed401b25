#include <cmath>

#include "lipscope/experiments/shared_steps.h"
#include "lipscope/spectral/inf_norm.h"
#include "lipscope/theory/bounds.h"

namespace lipscope {

void dot_product_unbounded(const ExperimentOptions& o, const Notebook& book) {
  book.open(
      {.name = "dot-product-unbounded",
       .title = "Dot-product attention is not Lipschitz, L2 attention is",
       .explanation =
           "One head in one dimension, all weights 1, at X = (0, t, -t). The "
           "token at 0 looks at all alike, and dot-product attention moves it "
           "by its own move times J_11 = 2t^2/3 + 1/3. Tied L2 attention at "
           "the same tokens stays below its bound over all inputs.",
       .x_name = "t",
       .y_name = "norm of the Jacobian",
       .log_x = true,
       .log_y = true});
  const std::vector<double> sizes =
      geometric(1.0, o.full ? 1e6 : 1e3, o.full ? 25 : 13);
  for (const Kind kind : {Kind::dot, Kind::l2})
    for (const Norm norm : {Norm::two, Norm::inf})
      for (const double t : sizes) {
        AttentionWeights one = scalar_head(1.0, 1.0);
        if (kind == Kind::l2) one.key = Matrix();
        const AttentionOptions options{.kind = kind, .threads = 1};
        const Matrix x{{0.0}, {t}, {-t}};
        const std::string series =
            fmt::format("{}, {}-norm", kind == Kind::dot ? "dot-product" : "L2",
                        name_of(norm));
        Record question = attention_question("d=1, W_Q=W_K=W_V=1");
        question.kind = name_of(kind);
        question.norm = norm;
        question.n = 3;
        question.d = 1;
        question.radius_max = t;
        question.scope = kind == Kind::dot ? Scope::input : Scope::everywhere;
        book.ask({series, t}, question, [&](Record& r) {
          const MultiHeadAttention<double> f(one, options);
          const auto j = f.linearize(x);
          if (norm == Norm::two) {
            measure_attention(r, one, options, x, o.seed);
          } else {
            r.lower = inf_norm(*j).value;
            r.lower_by = NormMethod::row_sweep;
          }
          r.details["J_11"] = j->apply(Vector::Unit(3, 0))[0];
          if (kind == Kind::dot) {
            r.details["formula"] = (2.0 * t * t + 1.0) / 3.0;
            return;
          }
          set_bound(r, best_bound(bounds(one, {.kind = kind, .n = 3}), norm));
        });
      }
}

}  // namespace lipscope
