#pragma once

/// lipscope: how strongly self-attention amplifies a change of its input, its
/// Lipschitz constant, with evidence.
///
/// All that a user of the library needs; docs/cpp.md explains it with programs.
/// What is not here is internal.
///
///   audit::measure, bound, search,   what the commands of the same names do:
///   meanfield, invert, recover,      a request in, records out
///   certify, train, reproduce
///   Records, Record                  the results, in memory and in a file that
///                                    a run goes on with after a crash
///   audit::write_page                records as one HTML page
///   MultiHeadAttention               attention as a map, with its Jacobian
///   Map, LinearOperator, check       a map of your own, and whether its
///                                    derivative is right
///   measure_norm, golub_kahan        the norm of any Jacobian or operator
///   MatrixOperator                   a matrix in somebody else's memory
///   StopWhen                         ends work from another thread
///   bounds, best_bound               what is proved from the weights
///
/// Errors are exceptions of three kinds (core/errors.h): InputError for what is
/// wrong with files and requests, RunError where a run cannot go on, and
/// std::invalid_argument for a caller's mistake.

#include "lipscope/attention/multi_head.h"       // IWYU pragma: export
#include "lipscope/audit/bound.h"                // IWYU pragma: export
#include "lipscope/audit/certify.h"              // IWYU pragma: export
#include "lipscope/audit/invert.h"               // IWYU pragma: export
#include "lipscope/audit/lone_layer.h"           // IWYU pragma: export
#include "lipscope/audit/meanfield.h"            // IWYU pragma: export
#include "lipscope/audit/measure.h"              // IWYU pragma: export
#include "lipscope/audit/merge.h"                // IWYU pragma: export
#include "lipscope/audit/page.h"                 // IWYU pragma: export
#include "lipscope/audit/recover.h"              // IWYU pragma: export
#include "lipscope/audit/reproduce.h"            // IWYU pragma: export
#include "lipscope/audit/search.h"               // IWYU pragma: export
#include "lipscope/audit/train.h"                // IWYU pragma: export
#include "lipscope/core/errors.h"                // IWYU pragma: export
#include "lipscope/core/stop.h"                  // IWYU pragma: export
#include "lipscope/core/version.h"               // IWYU pragma: export
#include "lipscope/operators/check.h"            // IWYU pragma: export
#include "lipscope/operators/compose.h"          // IWYU pragma: export
#include "lipscope/operators/linear_operator.h"  // IWYU pragma: export
#include "lipscope/operators/map.h"              // IWYU pragma: export
#include "lipscope/operators/matrix_operator.h"  // IWYU pragma: export
#include "lipscope/record/records.h"             // IWYU pragma: export
#include "lipscope/spectral/estimate.h"          // IWYU pragma: export
#include "lipscope/spectral/golub_kahan.h"       // IWYU pragma: export
#include "lipscope/theory/bounds.h"              // IWYU pragma: export
