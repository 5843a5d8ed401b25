#pragma once

#include <string>

#include "lipscope/audit/meanfield_records.h"
#include "lipscope/audit/outcome.h"
#include "lipscope/audit/progress.h"
#include "lipscope/audit/selection_options.h"
#include "lipscope/audit/source.h"
#include "lipscope/record/records.h"
#include "lipscope/spectral/estimate.h"

namespace lipscope::audit {

/// Which clouds of tokens, with masses, go through which attention.
struct MeanfieldRequest {
  SourceOptions source;
  SelectionOptions selection{.norms = false};
  MeasureOptions solver;
  MeanfieldChanges changes{.step = 1e-7, .restarts = 8};
  /// Of the tokens, in place of those that came with the weights; empty: those.
  Vector mass = {}, position = {};
  /// Files for the worst change and the tokens of a single input; empty: none.
  std::string save_direction = {}, save_input = {};
};

/// How far apart two clouds of tokens come out that were near each other, in
/// the Wasserstein distance W2 or, under a mask, in the conditional distance
/// d2: where tokens move, where they may be cut, and where they really moved.
Outcome meanfield(const MeanfieldRequest& request, Records& records,
                  const Watch& watch = {});

}  // namespace lipscope::audit
