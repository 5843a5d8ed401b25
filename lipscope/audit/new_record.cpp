#include "lipscope/audit/new_record.h"

#include "lipscope/attention/kinds.h"
#include "lipscope/record/config_fingerprint.h"

namespace lipscope::audit {
namespace {

// what the weights' own hash does not say of the map
void set_weights(const Subject& subject, const Selection& s,
                 nlohmann::ordered_json& parameters) {
  if (subject.model)
    parameters["config_sha256"] = fingerprint(subject.model->config);
  else
    parameters["num_heads"] = subject.heads();
  if (kind_of(s.kind).scaled)
    parameters.update({{"tau", s.cosine.tau},
                       {"nu", s.cosine.nu},
                       {"epsilon", s.cosine.epsilon}});
}

}  // namespace

Record new_record(const std::string& command, const Subject& subject,
                  const Selection& s, std::uint64_t seed) {
  Record r;
  r.command = command;
  r.model = subject.name;
  r.model_sha256 = subject.sha256;
  r.map = name_of(s.map);
  r.kind = s.kind_name;
  r.norm = s.norm;
  r.d = subject.features();
  r.seed = seed;
  set_weights(subject, s, r.parameters);
  return r;
}

void set_mask(const Selection& s, Record& r) {
  r.mask = mask_name(s, r.layer, r.n);
}

void set_solver(const MeasureOptions& o, Record& r) {
  r.delta = o.delta;
  r.parameters["tolerance"] = o.tolerance;
  r.parameters["max_steps"] = o.max_steps;
  if (o.enclose > 1.0) r.parameters["enclose"] = o.enclose;
  if (!o.from_above) r.parameters["enclose"] = "none";
  // what --memory decides: for a fit over many lengths, its points say it
  if (r.n == 0) return;
  if (const MemoryPlan plan = memory_plan(r.n * r.d, o); plan != MemoryPlan{})
    r.parameters["restart_after"] = {plan.steps_f32, plan.steps_f64};
}

}  // namespace lipscope::audit
