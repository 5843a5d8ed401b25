#pragma once

#include "lipscope/model/stack.h"
#include "lipscope/train/language_model.h"

namespace lipscope {

/// A transformer that learns, its weights as they are in f64; what contractive
/// attention is divided by is in W_O. Throws std::invalid_argument for an LSTM.
template <class Real>
Stack stack_of(const LanguageModel<Real>& model, const VectorOf<Real>& weights);

}  // namespace lipscope
