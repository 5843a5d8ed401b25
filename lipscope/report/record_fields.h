#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

/// How sentences read a record: what is absent, null, of another type or not
/// finite is unknown.
namespace lipscope {

std::optional<double> number_of(const nlohmann::ordered_json& record,
                                const std::string& field);
std::string text_of(const nlohmann::ordered_json& record,
                    const std::string& field);

/// An object inside the record, "details" or "parameters"; empty if absent.
const nlohmann::ordered_json& inside(const nlohmann::ordered_json& record,
                                     const std::string& field);

/// "layer 3, head 7", "layer 3", "head 7", "the layer", "the model": whose
/// constant it is.
std::string whose(const nlohmann::ordered_json& record);

/// The same with the length: "layer 3, n = 64".
std::string where(const nlohmann::ordered_json& record);

/// `upper`, or its logarithm where only that is a number: log10, and in words.
struct UpperNumber {
  double log10 = 0.0;
  std::string words;  ///< "12.5" or "10^350.2"
};
std::optional<UpperNumber> upper_of(const nlohmann::ordered_json& record);

/// "1 input", "2 inputs".
std::string counted(std::size_t count, const std::string& noun);

/// " 2 of 10 measurements did not converge." or nothing.
std::string not_converged(const std::vector<nlohmann::ordered_json>& records,
                          const std::string& noun);

}  // namespace lipscope
