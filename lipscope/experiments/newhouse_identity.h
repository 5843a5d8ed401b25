#pragma once

#include "lipscope/experiments/experiment.h"

namespace lipscope {

/// The attention of Newhouse25 with identities for weights, of which the
/// formula of its released code says 1: what it does to a change of tokens, as
/// a finite difference, against the number of tokens.
void newhouse_identity(const ExperimentOptions& options,
                       const Notebook& notebook);

}  // namespace lipscope
