#include "lipscope/text/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"
#include "lipscope/text/utf8.h"

namespace lipscope {
namespace {

constexpr double unknown_penalty = 10;

std::uint64_t edge(std::uint32_t node, char byte) {
  return static_cast<std::uint64_t>(node) << 8 |
         static_cast<unsigned char>(byte);
}

std::vector<std::string> names_of(const std::vector<ScoredPiece>& pieces) {
  std::vector<std::string> names;
  for (const ScoredPiece& piece : pieces) names.push_back(piece.piece);
  return names;
}

}  // namespace

Unigram::Unigram(std::string_view place, const std::vector<ScoredPiece>& pieces,
                 UnigramOptions options)
    : ids_(ids_by_piece(place, names_of(pieces))),
      worst_score_(std::numeric_limits<double>::infinity()),
      options_(options),
      ends_(1, -1) {
  const auto size = static_cast<TokenId>(pieces.size());
  if (options_.unknown && (*options_.unknown < 0 || *options_.unknown >= size))
    throw InputError(fmt::format("{}: unk_id is {}, of a vocabulary of {}",
                                 place, *options_.unknown, size));
  for (TokenId id = 0; id < size; ++id) {
    scores_.push_back(pieces[id].score);
    worst_score_ = std::min(worst_score_, pieces[id].score);
    std::uint32_t node = root;
    for (const char byte : pieces[id].piece) {
      const auto [found, is_new] = children_.try_emplace(
          edge(node, byte), static_cast<std::uint32_t>(ends_.size()));
      if (is_new) ends_.push_back(-1);
      node = found->second;
    }
    if (node != root) ends_[node] = id;
  }
  for (int byte = 0; byte < 256; ++byte)
    byte_ids_[byte] = byte_piece(ids_, static_cast<unsigned char>(byte));
}

std::optional<std::uint32_t> Unigram::child(std::uint32_t node,
                                            char byte) const {
  const auto found = children_.find(edge(node, byte));
  if (found == children_.end()) return std::nullopt;
  return found->second;
}

// The best way to write what stands before each place: its score, and where
// its last piece begins.
std::vector<Unigram::Span> Unigram::best_path(std::string_view word) const {
  struct Best {
    double score = 0;
    std::optional<std::size_t> from;
    bool unknown = false;
  };
  std::vector<Best> best(word.size() + 1);
  const auto offer = [&](std::size_t from, std::size_t to, double score,
                         bool unknown) {
    const double whole = best[from].score + score;
    if (!best[to].from || whole > best[to].score)
      best[to] = {whole, from, unknown};
  };
  for_each_character(word, [&](char32_t, std::size_t begin, std::size_t end) {
    bool is_piece = false;  // the character alone
    std::optional<std::uint32_t> node = root;
    for (std::size_t to = begin; to < word.size(); ++to) {
      node = child(*node, word[to]);
      if (!node) break;
      const TokenId id = ends_[*node];
      if (id < 0) continue;
      offer(begin, to + 1, scores_[id], id == options_.unknown);
      is_piece = is_piece || to + 1 == end;
    }
    if (is_piece) return;
    if (!options_.unknown)
      throw InputError(fmt::format(
          "the text holds {}, and the vocabulary has no piece for it",
          printable(word.substr(begin, end - begin))));
    offer(begin, end, worst_score_ - unknown_penalty, true);
  });

  std::vector<Span> path;  // from the right
  bool after_unknown = false;
  for (std::size_t end = word.size(); end > 0;) {
    const Best& last = best[end];
    if (last.unknown && after_unknown)
      path.back().begin = *last.from;
    else
      path.push_back({*last.from, end});
    after_unknown = last.unknown;
    end = *last.from;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<Token> Unigram::encode(std::string_view word) const {
  std::vector<Token> tokens;
  for (const auto& [begin, end] : best_path(word)) {
    const std::string_view spelled = word.substr(begin, end - begin);
    if (const auto found = ids_.find(spelled); found != ids_.end()) {
      tokens.push_back({found->second, begin, end});
      continue;
    }
    const auto id_of_byte = [&](char byte) {
      return byte_ids_[static_cast<unsigned char>(byte)];
    };
    if (options_.byte_fallback &&
        std::all_of(spelled.begin(), spelled.end(),
                    [&](char b) { return id_of_byte(b) >= 0; })) {
      for (std::size_t at = begin; at < end; ++at)
        tokens.push_back({id_of_byte(word[at]), at, at + 1});
      continue;
    }
    tokens.push_back({*options_.unknown, begin, end});
  }
  return tokens;
}

}  // namespace lipscope
