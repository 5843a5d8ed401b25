#pragma once

#include <string>

#include "lipscope/audit/progress.h"
#include "lipscope/audit/text_piece.h"
#include "lipscope/control/attack.h"
#include "lipscope/record/records.h"
#include "lipscope/theory/stack_constant.h"

namespace lipscope::audit {

/// Which predictions of which model are asked about.
struct CertifyRequest {
  std::string folder;  ///< of the model
  TextPieceOptions text;
  Index positions = 1000;  ///< from the beginning on; 0: all
  AttackOptions attack;
  int threads = 0;  ///< 0: all cores; the numbers do not depend on it
};

struct Certified {
  StackConstant constant;  ///< of the whole model
};

/// How far the input of layer 0 must be moved for the prediction of the next
/// token to change: a record for each position, `lower` proved and `upper`
/// found by an attack. InputError, by name, for models that do not predict it
/// (BERT, LSTMs have no attention) and those for which no radius is proved
/// (Llama).
Certified certify(const CertifyRequest& request, Records& records,
                  const Watch& watch = {});

}  // namespace lipscope::audit
