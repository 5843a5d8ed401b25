#pragma once

#include <string>

#include "lipscope/audit/outcome.h"
#include "lipscope/audit/progress.h"
#include "lipscope/audit/selection_options.h"
#include "lipscope/audit/source.h"
#include "lipscope/audit/witness.h"
#include "lipscope/control/invert.h"
#include "lipscope/control/log_det.h"
#include "lipscope/record/records.h"

namespace lipscope::audit {

/// Which residual attention g(X) = X + c f(X) is inverted, and from which Y.
struct InvertRequest {
  /// `kind` may be "contractive-l2" as well, which "auto" means here; `input`
  /// is Y. Without it X is made, and the result is compared with X.
  SourceOptions source;
  SelectionOptions selection{.norm = Norm::inf};
  double scale = 0.5;  ///< c
  Index depth = 1;     ///< blocks one after the other, all with these weights
  InvertOptions invert;
  bool log_det = false;  ///< also log det of the Jacobian of g
  LogDetOptions series;
  int threads = 0;              ///< 0: all cores
  std::string save_input = {};  ///< a file for the X of a single inversion
  TakeWitness witness = {};     ///< called with each X; may be empty
};

/// The input of residual attention from its output by X <- Y - c f(X): a record
/// for each Y, with the number of iterations that was known beforehand and the
/// error that is bounded afterwards.
Outcome invert(const InvertRequest& request, Records& records,
               const Watch& watch = {});

}  // namespace lipscope::audit
