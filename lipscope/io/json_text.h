#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "lipscope/core/errors.h"

namespace lipscope {

/// A text that stops being JSON, as one does that was cut short.
class JsonSyntaxError : public InputError {
 public:
  using InputError::InputError;
};

/// No file that is read here nests values deeper. Whoever takes a deep value
/// apart, the destructor of the library included, recurses into it: a hundred
/// thousand brackets would end the program.
inline constexpr int deepest_json = 64;

/// The value that a JSON text from a file holds. The text is not trusted:
/// InputError, beginning with `place`, for anything that is not JSON in UTF-8,
/// for a key that stands twice in one object, which readers would disagree
/// about, for numbers beyond the range of a double, and for nesting deeper than
/// `deepest`. Every reader of JSON goes through here. Where the text is not
/// even JSON, the error is a JsonSyntaxError.
nlohmann::json parse_json(std::string_view place, std::string_view text,
                          int deepest = deepest_json);

/// The same with keys in the order of the text, for records.
nlohmann::ordered_json parse_ordered_json(std::string_view place,
                                          std::string_view text,
                                          int deepest = deepest_json);

/// The value on a line of its own, newline included. Bytes that are not UTF-8
/// become replacement characters: a name is no reason to lose a result.
std::string json_line(const nlohmann::ordered_json& value);

/// A name from a file, made fit for a message: quoted, ASCII, not too long.
std::string printable(std::string_view name);

/// A JSON value, made fit for a message: ASCII, not too long.
std::string shown(const nlohmann::json& value);

}  // namespace lipscope
