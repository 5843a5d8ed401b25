#include "lipscope/text/word_piece.h"

#include <algorithm>
#include <utility>

#include "lipscope/text/utf8.h"

namespace lipscope {

WordPiece::WordPiece(std::string_view place, PieceIds ids,
                     WordPieceOptions options)
    : options_(std::move(options)), beginning_(std::move(ids)) {
  const std::string& prefix = options_.continuing_prefix;
  for (const auto& [piece, id] : beginning_) {
    longest_piece_ = std::max(longest_piece_, piece.size());
    if (piece.starts_with(prefix))
      continuing_.emplace(piece.substr(prefix.size()), id);
  }
  unknown_ = unknown_piece(place, beginning_, options_.unknown);
}

std::vector<Token> WordPiece::encode(std::string_view word) const {
  const std::vector<Token> unknown = {{unknown_, 0, word.size()}};
  std::vector<std::size_t> starts;  // where each character begins, and the end
  for_each_character(word, [&](char32_t, std::size_t begin, std::size_t) {
    starts.push_back(begin);
  });
  const std::size_t size = starts.size();
  starts.push_back(word.size());
  if (size > options_.longest_word) return unknown;

  std::vector<Token> tokens;
  std::size_t from = 0, reach = 0;
  while (from < size) {
    const PieceIds& pieces = from == 0 ? beginning_ : continuing_;
    // no piece that begins here ends beyond `reach`
    while (reach < size && starts[reach + 1] - starts[from] <= longest_piece_)
      ++reach;
    std::size_t to = reach;
    for (; to > from; --to) {
      const auto found =
          pieces.find(word.substr(starts[from], starts[to] - starts[from]));
      if (found == pieces.end()) continue;
      tokens.push_back({found->second, starts[from], starts[to]});
      break;
    }
    if (to == from) return unknown;
    from = to;
  }
  return tokens;
}

}  // namespace lipscope
