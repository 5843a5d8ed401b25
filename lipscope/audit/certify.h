#pragma once

#include <string>
#include <vector>

#include "lipscope/audit/progress.h"
#include "lipscope/audit/text_piece.h"
#include "lipscope/control/attack.h"
#include "lipscope/record/plan.h"
#include "lipscope/record/records.h"
#include "lipscope/theory/stack_constant.h"

namespace lipscope::audit {

/// Which predictions of which model are asked about.
struct CertifyRequest {
  std::string folder;  ///< of the model
  TextPieceOptions text;
  Index positions = 1000;  ///< from the beginning on; 0: all
  /// Tokens that are read, at most; 0: as many as the model can, and 32 of a
  /// model of masked tokens.
  Index context = 0;
  AttackOptions attack;
  int threads = 0;  ///< 0: all cores; the numbers do not depend on it
};

struct Certified {
  StackConstant constant;  ///< of the whole model, over all inputs
  /// The part of which nothing is proved near the text, and why; else empty.
  std::string unbounded;
};

/// How far the input of layer 0 must be moved for a prediction to change: a
/// record for each position, `lower` proved and `upper` found by an attack. The
/// prediction is that of the next token, or, where the folder of a model of
/// masked tokens (BERT) has its head, of the token at this position, which is
/// masked. Where a part of the model has no bound, `lower` is null and the
/// record says which part. InputError, by name, for models that predict nothing
/// (BERT without its head) and LSTMs, which have no attention.
Certified certify(const CertifyRequest& request, Records& records,
                  const Watch& watch = {});

/// The questions of the request, one for each position.
Plan plan(const CertifyRequest& request,
          const std::vector<std::string>& arguments, const Watch& watch = {});

}  // namespace lipscope::audit
