#include "lipscope/record/check_fields.h"

#include <string>
#include <string_view>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"

namespace lipscope {
namespace {

using nlohmann::ordered_json;

enum Type : unsigned {
  null = 1,
  boolean = 2,
  whole = 4,
  number = 8,  // whole numbers among them
  string = 16,
  list = 32,
  object = 64,
  objects = 128  // a list of objects
};

struct Field {
  std::string_view name;
  unsigned types;
};

// what every record has, null where it does not apply
constexpr Field fields[] = {{"schema", whole},
                            {"command", string},
                            {"version", string},
                            {"model", string | null},
                            {"model_sha256", string | null},
                            {"layer", whole | null},
                            {"head", whole | string | null},
                            {"map", string | null},
                            {"kind", string | null},
                            {"mask", string | null},
                            {"norm", string | null},
                            {"n", whole | null},
                            {"d", whole | null},
                            {"sample", whole | null},
                            {"radius_max", number | null},
                            {"radius_rms", number | null},
                            {"lower", number | null},
                            {"lower_by", string | null},
                            {"upper", number | null},
                            {"upper_log10", number | null},
                            {"upper_by", string | null},
                            {"upper_whp", number | null},
                            {"delta", number | null},
                            {"scope", string | null},
                            {"residual", number | null},
                            {"steps", whole | null},
                            {"status", string},
                            {"dtype", string | null},
                            {"seed", whole},
                            {"seconds", number}};

// what some have
constexpr Field others[] = {{"commit", string},  // since version 0.2.0
                            {"quantity", string | null},
                            {"lower_is", string | null},
                            {"upper_is", string | null},
                            {"value_of", string},
                            {"value", number | null},
                            {"parameters", object},
                            {"details", object},
                            {"input", object | null},
                            {"cut", string | null},
                            {"fits", string},
                            {"command_line", string},
                            {"machine", string},
                            {"build", string},
                            {"cpu", string},
                            {"line_sha256", string},
                            {"points", whole},
                            {"exponent", number},
                            {"exponent_low", number},
                            {"exponent_high", number},
                            {"confidence", number},
                            {"constant", number},
                            {"r_squared", number},
                            {"radius_correlation", number | null}};

// what was asked for and what was found beside the numbers, as far as tables
// and pages read them
constexpr Field parameters[] = {
    {"experiment", string},  {"series", string},          {"x_name", string},
    {"x", number},           {"split", string},           {"change", string},
    {"pieces", whole},       {"optimise", string},        {"of", string},
    {"text", string | null}, {"scale", number},           {"depth", whole},
    {"t", number | null},    {"tokens", boolean | string}};
constexpr Field input[] = {{"from", string},
                           {"name", string | null},
                           {"sha256", string},
                           {"offset", whole | null}};
constexpr Field details[] = {
    {"predicted", string},    {"next", string},
    {"runner_up", string},    {"margin", number},
    {"becomes", string},      {"best", boolean},
    {"right", boolean},       {"lower_log10", number | null},
    {"log_det", object},      {"curve", objects},
    {"blocks", objects},      {"starts", objects},
    {"text", string},         {"outcome", string},
    {"citation", string},     {"certificates", object},
    {"parts_log10", objects}, {"nothing_proved", string},
    {"bounds", whole}};

bool is_of(const ordered_json& value, unsigned types) {
  if (value.is_null()) return types & null;
  if (value.is_boolean()) return types & boolean;
  if (value.is_number_integer()) return types & (whole | number);
  if (value.is_number()) return types & number;
  if (value.is_string()) return types & string;
  if (value.is_object()) return types & object;
  if (types & list) return true;
  if (!(types & objects)) return false;
  for (const ordered_json& item : value)
    if (!item.is_object()) return false;
  return true;
}

std::string words_of(unsigned types) {
  std::string words;
  for (const auto& [type, name] : {std::pair(whole, "a whole number"),
                                   {number, "a number"},
                                   {string, "a string"},
                                   {boolean, "true or false"},
                                   {list, "a list"},
                                   {objects, "a list of objects"},
                                   {object, "an object"},
                                   {null, "null"}})
    if (types & type)
      words += (words.empty() ? "" : " or ") + std::string(name);
  return words;
}

// Where records are only shown, null is the same as absent.
void check_field(const ordered_json& record, const Field& field,
                 const std::string& within, RecordUse use) {
  const auto at = record.find(field.name);
  if (at == record.end() || is_of(*at, field.types)) return;
  if (use == RecordUse::shown && at->is_null()) return;
  throw InputError(fmt::format("\"{}{}\" is {}, expected {}", within,
                               field.name, shown(nlohmann::json(*at)),
                               words_of(field.types)));
}

}  // namespace

void check_fields(const ordered_json& record, RecordUse use) {
  for (const Field& field : fields) check_field(record, field, "", use);
  for (const Field& field : others) check_field(record, field, "", use);
  const auto check_inside = [&](const char* name, const auto& known) {
    const auto at = record.find(name);
    if (at == record.end() || !at->is_object()) return;
    for (const Field& field : known)
      check_field(*at, field, std::string(name) + ".", use);
  };
  check_inside("parameters", parameters);
  check_inside("input", input);
  check_inside("details", details);

  // fits of growth are recognised whole, and have fewer fields
  if (use == RecordUse::shown) return;
  if (record.value("command", "") == "growth") return;
  for (const Field& field : fields)
    if (!record.contains(field.name))
      throw InputError(fmt::format("no \"{}\", expected {}", field.name,
                                   words_of(field.types)));
  // what the tables of a command read
  const auto need = [&](const ordered_json& of, const std::string& within,
                        const char* name) {
    if (!of.contains(name))
      throw InputError(fmt::format("no \"{}{}\"", within, name));
  };
  const std::string command = record["command"];
  for (const char* detailed :
       {"bound", "search", "meanfield", "invert", "certify"})
    if (command == detailed) need(record, "", "details");
  if (command == "certify")
    for (const char* name :
         {"predicted", "next", "right", "margin", "runner_up"})
      need(record["details"], "details.", name);
}

}  // namespace lipscope
