#include "lipscope/record/key.h"

#include "lipscope/io/sha256.h"

namespace lipscope {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

json field(const ordered_json& of, const char* name) {
  const auto at = of.is_object() ? of.find(name) : of.end();
  return at == of.end() ? json() : json(*at);
}

// json sorts its keys: in which order they were written does not matter. A path
// that is not UTF-8 is no reason to fail.
std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string key_of(const ordered_json& record) {
  json key;
  for (const char* name :
       {"schema",    "command",  "version",  "model_sha256", "layer",
        "head",      "map",      "kind",     "mask",         "norm",
        "d",         "n",        "delta",    "seed",         "dtype",
        "scope",     "quantity", "value_of", "fits",         "confidence",
        "parameters"})
    key[name] = field(record, name);
  if (key["model_sha256"].is_null()) key["model"] = field(record, "model");
  const ordered_json input = field(record, "input");
  key["input"] = {field(input, "from"), field(input, "sha256")};
  return text_of(key);
}

std::string question_key(const ordered_json& record) {
  const json command = field(record, "command");
  const auto without = [&](std::initializer_list<const char*> parameters) {
    ordered_json question = record;
    if (question.contains("parameters") && question["parameters"].is_object())
      for (const char* name : parameters) question["parameters"].erase(name);
    question.erase("scope");
    return sha256_text(key_of(question));
  };
  if (command == "bound") return without({"bound", "tokens"});
  if (command == "search") return without({"of"});
  return sha256_text(key_of(record));
}

std::string place_of(const ordered_json& record) {
  return text_of({field(record, "model"), field(record, "sample"),
                  field(record, "input")});
}

ordered_json at_the_place_of(const ordered_json& asked, ordered_json found) {
  for (const char* name : {"model", "sample", "input"})
    if (asked.contains(name)) found[name] = asked[name];
  return found;
}

bool is_complete(const ordered_json& record) {
  return field(record, "cut").is_null();
}

}  // namespace lipscope
