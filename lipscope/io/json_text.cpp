#include "lipscope/io/json_text.h"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "lipscope/core/errors.h"

namespace lipscope {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

template <class Json>
Json parse(std::string_view place, std::string_view text, int deepest) {
  // the parser takes a zero byte for the end and would not read on
  if (const std::size_t zero = text.find('\0'); zero != text.npos)
    throw JsonSyntaxError(fmt::format(
        "{}: byte {} of {} is zero, expected JSON", place, zero, text.size()));

  // The parser keeps the last of two equal keys and says nothing, so they are
  // watched for while it works. The parser does not recurse, but whatever takes
  // its value apart does.
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  using Event = typename Json::parse_event_t;
  const auto watch = [&](int depth, Event event, Json& parsed) {
    if ((event == Event::object_start || event == Event::array_start) &&
        depth >= deepest)
      throw InputError(
          fmt::format("{}: nested more than {} deep", place, deepest));
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key &&
        !keys.back().insert(parsed.template get<std::string>()).second)
      throw InputError(
          fmt::format("{}: the key {} stands there twice", place,
                      printable(parsed.template get<std::string>())));
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const typename Json::parse_error& error) {
    throw JsonSyntaxError(
        fmt::format("{}: stops being JSON in UTF-8 at byte {} of {}", place,
                    error.byte, text.size()));
  } catch (const typename Json::out_of_range&) {
    throw InputError(
        fmt::format("{}: holds a number beyond the range of a double", place));
  }
}

}  // namespace

json parse_json(std::string_view place, std::string_view text, int deepest) {
  return parse<json>(place, text, deepest);
}

ordered_json parse_ordered_json(std::string_view place, std::string_view text,
                                int deepest) {
  return parse<ordered_json>(place, text, deepest);
}

std::string json_line(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace) +
         '\n';
}

std::string printable(std::string_view name) {
  std::string text =
      json(name).dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > 120) text = text.substr(0, 116) + "...\"";
  return text;
}

std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

}  // namespace lipscope
