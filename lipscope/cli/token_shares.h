#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lipscope/spectral/estimate.h"

namespace lipscope::cli {

/// Where the worst change sits, token by token: of the direction v going in and
/// of J v coming out,
///
///   input_share_i = |v_i|² / ‖v‖²,   output_share_i = |(J v)_i|² / ‖J v‖²,
///
/// each to three digits, and `tokens`, which are left out where `words` is
/// empty. Where J v = 0 the output has no share and is null.
nlohmann::ordered_json token_shares(const std::vector<std::string>& words,
                                    Index n, const Measurement& measured);

}  // namespace lipscope::cli
