#pragma once

#include <optional>
#include <vector>

#include "lipscope/record/record.h"

namespace lipscope::audit {

/// The changes of a cloud of tokens that are asked about.
struct MeanfieldChanges {
  double step = 0.0;    ///< 0: nothing is really moved
  Index duplicate = 0;  ///< 0: nothing is listed twice
  bool optimise_masses = false;
  std::optional<double> move_atoms = {};
  int restarts = 0;
};

/// The records of all changes at one measure.
struct MeanfieldRecords {
  Record moving, splitting;
  std::optional<Record> duplicate;
  std::vector<Record> actual, optimised;  ///< of moving whole and of cutting

  std::vector<Record> all() const;
};

/// Without what is found; `at` is what they have in common.
MeanfieldRecords meanfield_records(const Record& at,
                                   const MeanfieldChanges& changes);

}  // namespace lipscope::audit
