#include "lipscope/train/state_file.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "lipscope/core/errors.h"
#include "lipscope/io/text_file.h"
#include "lipscope/model/config_reader.h"

namespace lipscope {
namespace {

// zero is a number of steps as well
Index steps(const ConfigReader& r, const char* key) {
  if (r.need(key) == 0) return 0;
  return r.needed_count(key, Index{1} << 40);
}

}  // namespace

std::string StateFile::checkpoint() const {
  return fmt::format("checkpoint-{}.safetensors", step);
}

std::string to_text(const StateFile& s) {
  nlohmann::ordered_json json = {{"step", s.step},
                                 {"checkpoint", s.checkpoint()},
                                 {"sha256", s.sha256},
                                 {"best_step", s.best_step},
                                 {"best_valid_nll", nullptr}};
  if (s.best_nll) json["best_valid_nll"] = *s.best_nll;
  return json.dump(2) + "\n";
}

StateFile read_state(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "state.json";
  return parse_state(read_text_file(path, largest_config), path.string());
}

StateFile parse_state(std::string_view text, const std::string& where) {
  const ConfigReader r(text, where);
  StateFile s;
  s.step = steps(r, "step");
  s.sha256 = r.needed_text("sha256");
  s.best_step = steps(r, "best_step");
  if (r.needed_text("checkpoint") != s.checkpoint())
    r.refuse("checkpoint", r.need("checkpoint"),
             fmt::format("expected {} after {} steps", s.checkpoint(), s.step));
  if (const nlohmann::json* best = r.find("best_valid_nll")) {
    if (!best->is_number() || !std::isfinite(best->get<double>()))
      r.refuse("best_valid_nll", *best, "expected a number");
    s.best_nll = best->get<double>();
  }
  return s;
}

}  // namespace lipscope
