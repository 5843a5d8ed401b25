#pragma once

#include <string>

#include "lipscope/model/stack.h"

namespace lipscope {

/// Why the model predicts no masked tokens: its family has no such head that is
/// read here, or its folder has not the tensors of it, by name. Empty where it
/// does.
std::string why_no_masked_tokens(const Model& model);

/// All layers of a model of masked tokens (BERT, RoBERTa, DistilBERT) and its
/// masked-language-model head,
///
///   logits = norm(act(h W + b)) Eᵀ + b',   E the table of tokens.
///
/// InputError with why_no_masked_tokens.
Stack load_masked_stack(const Model& model);

}  // namespace lipscope
