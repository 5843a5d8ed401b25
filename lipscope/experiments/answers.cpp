#include "lipscope/experiments/answers.h"

#include <cmath>
#include <utility>

#include "lipscope/attention/common_mode.h"
#include "lipscope/core/errors.h"

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

void answer(Row& row, const Measurement& m) {
  row.lower = m.lower;
  row.lower_by = m.lower_by;
  row.residual = m.residual;
  row.steps = m.steps;
  row.converged = m.converged;
  if (!m.upper) return;
  row.upper = *m.upper;
  row.upper_by = m.upper_by;
  if (*m.upper > 0.0) row.upper_log10 = std::log10(*m.upper);
}

void answer_measured(Row& row, const AttentionWeights& weights,
                     const AttentionOptions& options, const Matrix& x,
                     std::uint64_t seed) {
  const MultiHeadAttention<float> search(weights, options);
  answer(row,
         measure_norm(search, MultiHeadAttention<double>(weights, options), x,
                      {.seed = seed,
                       .threads = options.threads,
                       .common_shift = common_shift_of(search)}));
}

void answer_found(Row& row, const SearchResult& result) {
  const Found& best = result.best;
  row.lower = best.value;
  row.lower_by =
      best.start + (best.climbed ? " + ascent, " : ", ") + best.value_by;
  if (row.norm == "2") row.residual = best.residual;
  row.steps = result.evaluations;
  row.converged = result.complete && best.converged;
  row.details.emplace_back("start_count", static_cast<double>(result.starts));
}

void answer_above(Row& row, const std::optional<Bound>& bound) {
  row.upper.reset();
  row.upper_log10.reset();
  row.upper_by.clear();
  if (!bound) return;
  if (std::isfinite(bound->value)) row.upper = bound->value;
  if (std::isfinite(bound->log10)) row.upper_log10 = bound->log10;
  row.upper_by = bound->name;
}

std::optional<Bound> named_bound(const std::vector<Bound>& bounds,
                                 const std::string& name) {
  for (const Bound& b : bounds)
    if (b.name == name) return b;
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

void require_no_rope(const ExperimentOptions& o) {
  if (o.model->config.rope_theta)
    throw InputError(
        fmt::format("{}: its tokens are rotated by position; this experiment "
                    "reads models without that, GPT-2 or BERT",
                    o.model_name));
}

}  // namespace lipscope
