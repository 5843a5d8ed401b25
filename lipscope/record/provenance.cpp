#include "lipscope/record/provenance.h"

#include <fmt/format.h>

#include <vector>

#include "lipscope/core/errors.h"
#include "lipscope/core/machine.h"
#include "lipscope/core/version.h"
#include "lipscope/io/json_text.h"
#include "lipscope/io/sha256.h"

namespace lipscope {
namespace {

using nlohmann::ordered_json;

constexpr const char* of_the_line = "line_sha256";

std::string said_in(const ordered_json& record, const char* field) {
  const auto at = record.find(field);
  return at != record.end() && at->is_string() ? at->get<std::string>()
                                               : std::string("unknown");
}

std::string line_hash(const ordered_json& record) {
  return sha256_text(json_line(record));
}

}  // namespace

ordered_json with_provenance(ordered_json record) {
  static const std::string line = command_line(), machine = this_machine(),
                           cpu = kind_of_cpu();
  record["command_line"] = line;
  record["machine"] = machine;
  record["build"] = build_flags();
  record["cpu"] = cpu;
  return record;
}

ordered_json without_provenance(ordered_json record) {
  for (const char* field :
       {"command_line", "machine", "build", "cpu", of_the_line})
    record.erase(field);
  return record;
}

std::string made_on(const ordered_json& record) {
  return fmt::format("commit {}, build {}, {}", said_in(record, "commit"),
                     said_in(record, "build"), said_in(record, "cpu"));
}

ordered_json answer_of(ordered_json record) {
  record = without_provenance(std::move(record));
  for (const char* field : {"commit", "seconds", "model", "sample", "input"})
    record.erase(field);
  if (const auto details = record.find("details");
      details != record.end() && details->is_object()) {
    std::vector<std::string> times;
    for (const auto& [name, value] : details->items())
      if (name.ends_with("seconds")) times.push_back(name);
    for (const std::string& name : times) details->erase(name);
  }
  return record;
}

ordered_json sealed(ordered_json record) {
  record.erase(of_the_line);
  const std::string hash = line_hash(record);
  record[of_the_line] = hash;
  return record;
}

void check_seal(const ordered_json& record) {
  const auto at = record.find(of_the_line);
  if (at == record.end()) return;
  ordered_json rest = record;
  rest.erase(of_the_line);
  if (*at != line_hash(rest))
    throw InputError(
        "was changed since it was written: its line_sha256 is not that of its "
        "fields");
}

}  // namespace lipscope
