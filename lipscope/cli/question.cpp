#include "lipscope/cli/question.h"

namespace lipscope::cli {

Record question(const std::string& command, const Subject& subject,
                const Selection& s, std::uint64_t seed) {
  Record r;
  r.command = command;
  r.model = subject.name;
  r.model_sha256 = subject.sha256;
  r.map = name_of(s.map);
  r.kind = s.kind_name;
  r.mask = name_of(s.mask);
  r.norm = s.norm;
  r.d = subject.features();
  r.seed = seed;
  return r;
}

}  // namespace lipscope::cli
