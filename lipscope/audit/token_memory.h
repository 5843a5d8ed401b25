#pragma once

#include <vector>

#include "lipscope/audit/selection.h"

namespace lipscope::audit {

/// InputError if sequences of these lengths, so many of each, are more than
/// there is memory for: the ids of all tokens and the records of all that is
/// measured; and the tokens of the longest sequence at the input of every
/// selected layer with what the layer makes of them.
void require_token_memory(const std::vector<Index>& lengths, Index samples,
                          const Subject& subject, const Selection& selection);

/// The same for the weights of attention, n by n numbers for every head, where
/// they are kept and not made again at every product: while they fit into
/// `memory` bytes (--memory; 0: a quarter of the machine's).
void require_weight_memory(Index n, const Subject& subject,
                           const Selection& selection, std::uint64_t memory);

/// The same for what takes a number for every pair of tokens of the longest
/// sequence: so many bytes a pair. `what` needs them.
void require_pair_memory(Index n, double bytes_a_pair, const std::string& what);

}  // namespace lipscope::audit
