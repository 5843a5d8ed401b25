#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace lipscope {

/// The value that a JSON text from a file holds. The text is not trusted:
/// InputError, beginning with `place`, for anything that is not JSON in UTF-8,
/// for a key that stands twice in one object, which readers would disagree
/// about, and for nesting deeper than `deepest`.
nlohmann::json parse_json(std::string_view place, std::string_view text,
                          int deepest = 64);

/// A name from a file, made fit for a message: quoted, ASCII, not too long.
std::string printable(std::string_view name);

/// A JSON value, made fit for a message: ASCII, not too long.
std::string shown(const nlohmann::json& value);

}  // namespace lipscope
