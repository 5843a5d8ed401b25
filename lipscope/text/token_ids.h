#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "lipscope/text/token.h"

namespace lipscope {

/// The token ids in a file: integers from 0, separated by white space; none at
/// all in an empty one. InputError, with the line and the word, for anything
/// else. Whether a vocabulary has them is for its owner to say.
std::vector<TokenId> read_token_ids(const std::filesystem::path& path);

/// The same from the content of a file.
std::vector<TokenId> parse_token_ids(std::string_view place,
                                     std::string_view text);

}  // namespace lipscope
