#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/campaign/case.h"

namespace lipscope::campaign {

/// What was seen of each bound.
class Tally {
 public:
  struct Seen {
    std::uint64_t cases = 0;
    double most = 0.0;        ///< the largest reached/allowed
    std::uint64_t where = 0;  ///< and the case that has it
    double mixed = 0.0;       ///< the largest where attention is mixed
  };

  void add(const std::vector<Claim>& claims, std::uint64_t number);
  void add(const Tally& other);
  void put(const std::string& name, const Seen& seen) { seen_[name] = seen; }

  const std::map<std::string, Seen>& seen() const { return seen_; }

  /// A case whose ratio is above 1 by more than rounding.
  struct Violation {
    std::string name;
    Seen seen;
  };
  std::vector<Violation> violations() const;

  /// | bound | cases | largest ratio | case |
  std::string table() const;

 private:
  std::map<std::string, Seen> seen_;
};

nlohmann::ordered_json to_json(const Tally& tally);
/// InputError with the text that was expected.
Tally tally_of(const nlohmann::ordered_json& json);

}  // namespace lipscope::campaign
