#include "lipscope/audit/meanfield_records.h"

namespace lipscope::audit {

std::vector<Record> MeanfieldRecords::all() const {
  std::vector<Record> all = {moving, splitting};
  if (duplicate) all.push_back(*duplicate);
  all.insert(all.end(), actual.begin(), actual.end());
  all.insert(all.end(), optimised.begin(), optimised.end());
  return all;
}

MeanfieldRecords meanfield_records(const Record& at,
                                   const MeanfieldChanges& o) {
  const auto of = [&](const char* change) {
    Record r = at;
    r.parameters["change"] = change;
    return r;
  };
  MeanfieldRecords asked{.moving = of("move"), .splitting = of("split")};
  if (o.duplicate > 0) {
    asked.duplicate = of("duplicate");
    asked.duplicate->parameters["pieces"] = o.duplicate;
  }
  // over a ball there is no upper_whp, which delta speaks of
  for (const char* change : {"moved", "parted"}) {
    if (o.step == 0) break;
    Record r = of(change);
    r.delta.reset();
    r.parameters["step"] = o.step;
    r.scope = Scope::ball;
    asked.actual.push_back(std::move(r));
  }
  for (const char* change : {"move", "split"}) {
    if (!o.optimise_masses) break;
    Record r = of(change);
    r.delta.reset();
    r.parameters["optimise"] = o.move_atoms ? "masses, atoms" : "masses";
    r.parameters["restarts"] = o.restarts;
    if (o.move_atoms) r.parameters["move_atoms"] = *o.move_atoms;
    r.scope = Scope::ball;
    asked.optimised.push_back(std::move(r));
  }
  return asked;
}

}  // namespace lipscope::audit
