#include <algorithm>
#include <cmath>

#include "lipscope/experiments/shared_steps.h"
#include "lipscope/model/layer.h"
#include "lipscope/model/model.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/castin24.h"

namespace lipscope {
namespace {

// a head, the ball its tokens are in, and how it is asked about
struct Case {
  const AttentionWeights& weights;
  Index head = 0;
  double radius = 0.0;
  std::string where;  // of the ball: "R = 2"
  Record question;    // what all points share
  std::vector<Index> lengths;
  Index longest_search = 0;  // longer ones are not searched
  SearchOptions search;
};

void sweep(const Case& c, Mask mask, const ExperimentOptions& o,
           const Notebook& book) {
  const AttentionOptions options{
      .mask = mask, .heads = {c.head}, .threads = o.threads};
  for (const Index n : c.lengths) {
    const auto x = static_cast<double>(n);
    Record question = c.question;
    question.n = n;
    question.mask = name_of(mask);
    question.radius_max = c.radius;
    question.scope = Scope::ball;
    const auto above = [&] {
      return bounds(c.weights, {.mask = mask,
                                .heads = {c.head},
                                .n = n,
                                .radius = c.radius * (1 + 1e-12)});
    };
    // one token that all others look at
    std::optional<Construction> made;
    const auto tokens = [&]() -> const Construction& {
      if (!made)
        made = named_construction(
            constructions(c.weights, options, ball(c.radius), n), "growth");
      return *made;
    };
    book.ask({"construction", x}, question, [&](Record& r) {
      measure_attention(r, c.weights, options, tokens().x, o.seed);
      r.lower_by = r.lower_by.at("construction");
      r.details["formula"] = tokens().predicted.value();
      set_bound(r, best_bound(above(), Norm::two));
    });
    book.ask({"formula", x}, question, [&](Record& r) {
      r.lower = tokens().predicted.value();
      r.lower_by = Procedure::formula;
      set_bound(r, bound_by(castin24_ball_statement, above()));
    });
    if (n > c.longest_search) continue;
    question.parameters = {
        {"restarts", static_cast<double>(c.search.restarts)},
        {"max_evaluations", static_cast<double>(c.search.max_evaluations)}};
    book.ask({"best found", x}, question, [&](Record& r) {
      SearchOptions looking = c.search;
      looking.n = n;
      looking.seed = o.seed;
      looking.keep_going = [&](const SearchProgress& p) {
        book.tell(fmt::format("n = {}, start {}/{}, {:.6g}", n, p.start,
                              p.starts, p.best));
        return true;
      };
      set_searched(r, search(c.weights, options, ball(c.radius), looking));
      set_bound(r, best_bound(above(), Norm::two));
    });
  }
}

void both_masks(const Case& c, const std::string& of,
                const ExperimentOptions& o, const Notebook& book) {
  for (const Mask mask : {Mask::none, Mask::causal}) {
    book.open(
        {.name = fmt::format("castin-adversarial, {}{}, mask {}", of, c.where,
                             name_of(mask)),
         .title = fmt::format("The root of n and its end: {}{}, mask {}", of,
                              c.where, name_of(mask)),
         .explanation =
             "One token that all others look at, made from the extreme "
             "eigenvalues of the score form: the norm grows like the root of n "
             "while n is below about exp(2 gamma R^2), then no more. The "
             "formula from below, the norm measured there, the best that "
             "ascents find; above, the project's bound, and beside the formula "
             "that of the paper where there is no query bias.",
         .x_name = "n",
         .y_name = "2-norm of the Jacobian",
         .log_x = true,
         .log_y = true});
    sweep(c, mask, o, book);
  }
}

std::vector<Index> powers_of_two(Index last) {
  std::vector<Index> all;
  for (Index n = 2; n <= last; n *= 2) all.push_back(n);
  return all;
}

void small_head(const ExperimentOptions& o, const Notebook& book) {
  const Matrix a{{-0.5, 0.0}, {0.0, -0.05}};
  const AttentionWeights weights = head_of_forms(a, Matrix::Identity(2, 2));
  std::vector<Index> lengths = powers_of_two(o.full ? 4096 : 512);
  lengths.push_back(20);
  std::sort(lengths.begin(), lengths.end());
  Record question = attention_question("A=diag(-0.5,-0.05), V=I");
  question.d = 2;
  for (const double radius : {1.5, 2.0, 2.5}) {
    // γ = −λ_min = 1/2
    const double size = 0.5 * radius * radius;
    both_masks({.weights = weights,
                .radius = radius,
                .where = fmt::format("gamma R^2 = {}", size),
                .question = question,
                .lengths = lengths,
                .longest_search = o.full ? 256 : 32,
                .search = {.restarts = o.full ? 50 : 4,
                           .max_evaluations = o.full ? 1000 : 200}},
               "", o, book);
  }
}

// the head whose scores are largest, or all of them
std::vector<Index> shown_heads(const AttentionWeights& w, bool all) {
  std::vector<Index> heads;
  Index largest = 0;
  double most = -1.0;
  for (Index h = 0; h < w.heads; ++h) {
    heads.push_back(h);
    const double score = head_norms(head(w, h), {.radius = 1.0}, false).score;
    if (score > most) largest = h;
    most = std::max(most, score);
  }
  return all ? heads : std::vector<Index>{largest};
}

void heads_of_model(const ExperimentOptions& o, const Notebook& book) {
  require_plain_scores(o);
  for (const Index l : shown_layers(*o.model, o.full)) {
    const AttentionWeights weights =
        load_layer(*o.model, l, MapName::attn).attention;
    const std::optional<NormWeights> norm = load_input_norm(*o.model, l);
    for (const Index h : shown_heads(weights, o.full)) {
      const double score =
          head_norms(head(weights, h), {.radius = 1.0}, false).score;
      std::vector<std::pair<std::string, double>> radii;
      for (const double size : {2.0, 8.0})
        radii.emplace_back(fmt::format("|A| R^2 = {}", size),
                           std::sqrt(size / score));
      if (norm)
        radii.emplace_back("R of the norm layer", norm_layer_radius(*norm));
      Record question = attention_question(o.model_name);
      question.layer = l;
      question.head = h;
      question.d = weights.features();
      for (const auto& [where, radius] : radii)
        both_masks({.weights = weights,
                    .head = h,
                    .radius = radius,
                    .where = where,
                    .question = question,
                    .lengths = o.full ? std::vector<Index>{8, 16, 32, 64, 128,
                                                           256, 512, 1024}
                                      : std::vector<Index>{8, 32, 128, 512},
                    .longest_search = o.full ? 32 : 8,
                    .search = {.restarts = 0, .max_evaluations = 30}},
                   fmt::format("layer {} head {}, ", l, h), o, book);
    }
  }
}

}  // namespace

void castin_adversarial(const ExperimentOptions& o, const Notebook& book) {
  if (o.model)
    heads_of_model(o, book);
  else
    small_head(o, book);
}

}  // namespace lipscope
