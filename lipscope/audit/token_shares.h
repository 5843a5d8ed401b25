#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lipscope/spectral/estimate.h"

namespace lipscope::audit {

/// Where the worst change sits, token by token: of the direction v going in and
/// of J v coming out,
///
///   input_share_i = |v_i|² / ‖v‖²,   output_share_i = |(J v)_i|² / ‖J v‖²,
///
/// each to three digits, and `tokens`, which are left out where `words` is
/// empty. Where J v = 0 the output has no share and is null.
nlohmann::ordered_json token_shares(const std::vector<std::string>& words,
                                    Index n, const Measurement& measured);

/// Sequences of more tokens than this have shares and no flow: it takes a
/// product for each token, and n² numbers in the record.
constexpr Index longest_flow = 32;

/// From which token to which the worst change goes, for each of the sequences
/// of n tokens in x that `found` is of: {"flow": rows}, the rows of a matrix of
/// token_flows (spectral/token_flow.h) to four decimals, null where J v = 0; {}
/// where n exceeds longest_flow.
std::vector<nlohmann::ordered_json> flow_details(
    const Map<double>& f, const Matrix& x, Index n,
    const std::vector<Measurement>& found);

}  // namespace lipscope::audit
