#pragma once

#include <optional>
#include <string>

#include "lipscope/audit/outcome.h"
#include "lipscope/audit/progress.h"
#include "lipscope/audit/source.h"
#include "lipscope/control/invert.h"
#include "lipscope/record/records.h"

namespace lipscope::audit {

/// What only trained folders are asked.
struct TrainedOptions {
  /// f64: as they are; f32: rounded first.
  NumberFormat activations = NumberFormat::f64;
  /// How far Y may be from the exact activations; what storing it may have
  /// done, if nothing is said.
  std::optional<double> given_error = {};
  std::string save_output = {};  ///< Y.npy, or nowhere
};

struct RecoverRequest {
  SourceOptions source;  ///< the folder, the text, or Y in `input`
  InvertOptions invert;
  TrainedOptions trained;
  std::string save_input = {};  ///< X.npy, or nowhere
  int threads = 0;              ///< 0: all cores
};

/// Whether the folder is one that train made.
bool is_trained(const std::string& folder);

/// The text that a trained model without norms read, from its last activations:
/// a record for each passage.
Outcome recover(const RecoverRequest& request, Records& records,
                const Watch& watch = {});

}  // namespace lipscope::audit
