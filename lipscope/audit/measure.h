#pragma once

#include <string>

#include "lipscope/audit/outcome.h"
#include "lipscope/audit/progress.h"
#include "lipscope/audit/selection_options.h"
#include "lipscope/audit/source.h"
#include "lipscope/audit/witness.h"
#include "lipscope/record/records.h"
#include "lipscope/spectral/estimate.h"

namespace lipscope::audit {

/// Which maps are measured, at which inputs, and how.
struct MeasureRequest {
  SourceOptions source;
  SelectionOptions selection;
  MeasureOptions solver;
  /// What proves `upper` where the Jacobian is too large to decompose: auto,
  /// none, all, or the name of one (see Certificates).
  std::string certificate = "auto";
  std::uint64_t memory = 0;  ///< bytes for attention weights; 0: a quarter
  double budget = 0.0;       ///< seconds; 0: no limit
  bool tokens = false;  ///< how much of the worst change sits on each token
  /// Files for the witness and the tokens of a single measurement; empty: none.
  std::string save_direction = {}, save_input = {};
  /// Called with the direction and the tokens of each measurement that is made.
  /// May be empty.
  TakeWitness witness = {};
};

/// The norm of the Jacobian of every selected map at every input: a record for
/// each, from below with a witness and from above with a proof, and the growth
/// with the length where there are several. InputError for what the request has
/// wrong, before any work.
Outcome measure(const MeasureRequest& request, Records& records,
                const Watch& watch = {});

}  // namespace lipscope::audit
