#include "lipscope/experiments/shared_steps.h"

#include <cmath>
#include <utility>

#include "lipscope/attention/common_mode.h"
#include "lipscope/core/errors.h"
#include "lipscope/model/model.h"
#include "lipscope/record/evidence.h"

namespace lipscope {

AttentionWeights head_of_forms(const Matrix& a, const Matrix& v) {
  const Index d = a.rows();
  AttentionWeights w;
  // A = W_Q W_Kᵀ/√k
  w.query = std::sqrt(static_cast<double>(d)) * a;
  w.key = Matrix::Identity(d, d);
  w.value = v;
  return w;
}

AttentionWeights scalar_head(double a, double v) {
  return head_of_forms(Matrix::Constant(1, 1, a), Matrix::Constant(1, 1, v));
}

void set_sides(Record& r, const Measurement& m) {
  set_lower(r, m);
  if (m.upper) set_upper(r, *m.upper, NormMethod::dense_gram);
}

void measure_attention(Record& record, const AttentionWeights& weights,
                       const AttentionOptions& options, const Matrix& x,
                       std::uint64_t seed) {
  const MultiHeadAttention<float> search(weights, options);
  set_sides(record, measure_norm(
                        search, MultiHeadAttention<double>(weights, options), x,
                        {.from_above = false,
                         .seed = seed,
                         .threads = options.threads,
                         .common_shift = common_shift_of(search)}));
}

void set_searched(Record& r, const SearchResult& result) {
  const Found& best = result.best;
  r.lower = best.value;
  r.lower_by =
      KnownBy(best.value_by).at(best.start + (best.climbed ? " + ascent" : ""));
  if (r.norm == Norm::two) r.residual = best.residual;
  r.steps = result.evaluations;
  r.converged = result.complete && best.converged;
  r.details["start_count"] = static_cast<double>(result.starts);
}

void set_bound(Record& r, const std::optional<Bound>& bound) {
  r.upper.reset();
  r.upper_log10.reset();
  r.upper_by = {};
  if (bound) set_upper(r, *bound);
}

std::optional<Bound> bound_by(const Statement& statement,
                              const std::vector<Bound>& bounds) {
  for (const Bound& b : bounds)
    if (b.name == statement.name) return b;
  return std::nullopt;
}

Construction named_construction(std::vector<Construction> all,
                                const std::string& name) {
  for (Construction& c : all)
    if (c.name == name) return std::move(c);
  throw RunError(fmt::format("these weights have no input '{}'", name));
}

std::vector<double> geometric(double first, double last, int count) {
  std::vector<double> all;
  for (int i = 0; i < count; ++i)
    all.push_back(first * std::pow(last / first, i / (count - 1.0)));
  return all;
}

std::vector<Index> shown_layers(const Model& model, bool all) {
  const Index count = model.config.layers;
  std::vector<Index> layers;
  for (Index l = 0; l < count; ++l)
    if (all || l == 0 || l == count / 2 || l == count - 1) layers.push_back(l);
  return layers;
}

void require_plain_scores(const ExperimentOptions& o) {
  if (!o.model->config.plain_scores())
    throw InputError(
        fmt::format("{}: has {}; this experiment reads models without that, "
                    "GPT-2 or BERT",
                    o.model_name, o.model->config.score_features()));
}

}  // namespace lipscope
