#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lipscope/audit/outcome.h"
#include "lipscope/audit/progress.h"
#include "lipscope/audit/selection_options.h"
#include "lipscope/audit/source.h"
#include "lipscope/audit/witness.h"
#include "lipscope/record/plan.h"
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

/// The same request for many runs, each of which answers a share of its
/// questions: the weights and the text are read once, for all of them.
class MeasureWorker {
 public:
  /// InputError for what the request has wrong.
  explicit MeasureWorker(const MeasureRequest& request,
                         const Watch& watch = {});
  ~MeasureWorker();

  /// All questions of the request, in the order of an undisturbed run, as the
  /// plan of a command line with these arguments.
  Plan plan(const std::vector<std::string>& arguments) const;

  /// Whether all layers of the model stay in memory: otherwise each run reads
  /// them one by one, and answers many questions at each.
  bool keeps_layers() const;

  Outcome run(Records& records);

 private:
  class Measuring;
  std::unique_ptr<Measuring> measuring_;
};

}  // namespace lipscope::audit
