#pragma once

#include "lipscope/attention/multi_head.h"
#include "lipscope/experiments/experiment.h"
#include "lipscope/search/search.h"
#include "lipscope/spectral/estimate.h"
#include "lipscope/theory/bound.h"

/// Steps that several experiments take.
namespace lipscope {

/// A head with scores xAyᵀ and values xV, no biases and no output projection.
AttentionWeights head_of_forms(const Matrix& a, const Matrix& v);

/// The same in one dimension.
AttentionWeights scalar_head(double a, double v);

/// From below with its evidence; from above where the measurement says it.
void set_sides(Record& record, const Measurement& measurement);

/// ‖J(x)‖₂ of attention.
void measure_attention(Record& record, const AttentionWeights& weights,
                       const AttentionOptions& options, const Matrix& x,
                       std::uint64_t seed);

/// What a search found; the norm and the length are those of the record.
void set_searched(Record& record, const SearchResult& result);

/// From above, in place of what the record has there; nothing if there is none.
void set_bound(Record& record, const std::optional<Bound>& bound);

/// The bound of that statement; nothing where it does not apply.
std::optional<Bound> bound_by(const Statement& statement,
                              const std::vector<Bound>& bounds);

/// The construction of that name; RunError where there is none.
Construction named_construction(std::vector<Construction> all,
                                const std::string& name);

/// So many numbers from first to last, each the same multiple of the one
/// before.
std::vector<double> geometric(double first, double last, int count);

/// The model's first, middle and last layer, or all of them.
std::vector<Index> shown_layers(const Model& model, bool all);

/// InputError where the model rotates tokens by position: the experiments that
/// make tokens from the score form have none for that.
void require_plain_scores(const ExperimentOptions& options);

}  // namespace lipscope
