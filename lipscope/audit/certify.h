#pragma once

#include <string>

#include "lipscope/audit/progress.h"
#include "lipscope/audit/text_piece.h"
#include "lipscope/control/attack.h"
#include "lipscope/record/records.h"
#include "lipscope/theory/stack_constant.h"

namespace lipscope::audit {

/// Which predictions of which trained model are asked about.
struct CertifyRequest {
  std::string folder;  ///< what train made
  TextPieceOptions text;
  Index positions = 1000;  ///< from the beginning on; 0: all
  AttackOptions attack;
  int threads = 0;  ///< 0: all cores; the numbers do not depend on it
};

struct Certified {
  StackConstant constant;  ///< of the whole model
};

/// How far the input of layer 0 must be moved for a prediction to change: a
/// record for each position, `lower` proved and `upper` found by an attack.
Certified certify(const CertifyRequest& request, Records& records,
                  const Watch& watch = {});

}  // namespace lipscope::audit
