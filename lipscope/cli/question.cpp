#include "lipscope/cli/question.h"

#include "lipscope/cli/config_fingerprint.h"

namespace lipscope::cli {
namespace {

// what the weights' own hash does not say of the map
void tell_weights(const Subject& subject, const Selection& s,
                  nlohmann::ordered_json& parameters) {
  if (subject.model)
    parameters["config_sha256"] = fingerprint(subject.model->config);
  else
    parameters["num_heads"] = subject.heads();
  if (s.kind == Kind::cosine)
    parameters.update({{"tau", s.cosine.tau},
                       {"nu", s.cosine.nu},
                       {"epsilon", s.cosine.epsilon}});
}

}  // namespace

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
  tell_weights(subject, s, r.parameters);
  return r;
}

}  // namespace lipscope::cli
