#include "lipscope/text/token_ids.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"
#include "lipscope/io/mapped_file.h"
#include "lipscope/text/pieces.h"

namespace lipscope {
namespace {

constexpr std::string_view blanks = " \t\r\v\f";

TokenId parse_id(std::string_view place, std::size_t line,
                 std::string_view word) {
  TokenId id = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, id);
  if (error != std::errc() || stop != end || id < 0 || word.front() == '-')
    throw InputError(fmt::format(
        "{}: line {}: {} is not a token id, an integer from 0 to {}", place,
        line, printable(word), std::numeric_limits<TokenId>::max()));
  return id;
}

}  // namespace

std::vector<TokenId> parse_token_ids(std::string_view place,
                                     std::string_view text) {
  std::vector<TokenId> ids;
  std::size_t number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++number;
    for (std::size_t at = line.find_first_not_of(blanks); at != line.npos;) {
      const std::size_t end =
          std::min(line.find_first_of(blanks, at), line.size());
      ids.push_back(parse_id(place, number, line.substr(at, end - at)));
      at = line.find_first_not_of(blanks, end);
    }
  }
  return ids;
}

std::vector<TokenId> read_token_ids(const std::filesystem::path& path) {
  const MappedFile file(path);
  return parse_token_ids(path.string(),
                         {reinterpret_cast<const char*>(file.bytes().data()),
                          file.bytes().size()});
}

}  // namespace lipscope
