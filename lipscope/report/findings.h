#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// The one sentence at the end of a command: what its records say. Each takes
/// the records of one command in any order and returns a line without a
/// newline, or nothing where there are no records to speak of. Fields that a
/// record lacks, and numbers that are not finite, are taken for unknown.
namespace lipscope {

using Findings = std::vector<nlohmann::ordered_json>;

/// measure: which layer and head reacts most, and how strongly.
std::string measured_finding(const Findings& records);

/// bound: the best bound, and over what; of several questions the range of the
/// best ones.
std::string bounds_finding(const Findings& records);

/// search: the largest constant found, and how far below its bound.
std::string searched_finding(const Findings& records);

/// meanfield: whether tokens that may be cut react more than whole ones.
std::string meanfield_finding(const Findings& records);

/// invert, of a layer: how many inputs came back, and how exactly.
std::string inverted_finding(const Findings& records);

/// invert, of a trained model: how much of the text came back.
std::string recovered_finding(const Findings& records);

/// certify: at how many positions a radius is proved, and which.
std::string certified_finding(const Findings& records);

/// compare: what two files say of the same questions.
std::string compared_finding(const Findings& first, const Findings& second);

/// train: the loss that was reached, and whether the constant was kept. The
/// fields: best_step, best_valid_nll, test_nll; limit and certified, where the
/// constant was limited; cost_in_valid_nll, where it was measured.
std::string trained_finding(const nlohmann::ordered_json& summary);

/// reproduce: whether the claim of the paper is seen in the rows of this
/// experiment, with the number and what was expected.
std::string reproduced_finding(const std::string& experiment,
                               const Findings& records);

}  // namespace lipscope
