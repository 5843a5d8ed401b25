#pragma once

#include "tests/cli/program.h"

namespace lipscope::test {

/// The records of an experiment, run as a user would, each with lower ≤ upper
/// where it has both.
inline std::vector<nlohmann::json> reproduced(const std::string& arguments) {
  const Outcome o = lipscope("reproduce " + arguments + " --json --threads 1");
  EXPECT_EQ(o.code, 0) << o.err;
  std::vector<nlohmann::json> records = json_lines(o.out);
  for (const nlohmann::json& r : records) {
    EXPECT_EQ(r["command"], "reproduce");
    EXPECT_TRUE(r["parameters"].contains("experiment"));
    if (r["lower"].is_number() && r["upper"].is_number()) {
      EXPECT_LE(r["lower"].get<double>(), r["upper"].get<double>()) << r;
    }
  }
  return records;
}

}  // namespace lipscope::test
