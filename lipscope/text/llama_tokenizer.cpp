#include "lipscope/text/llama_tokenizer.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"
#include "lipscope/text/utf8.h"

namespace lipscope {
namespace {

constexpr TokenId beginning = 1, end_of_text = 2;
constexpr TokenId first_byte = 3, first_text = first_byte + 256;

// Every way to cut a piece in two is looked at, and longer pieces than this are
// no pieces of language: those of Llama have up to 48 bytes.
constexpr std::int32_t longest_allowed = 512;

struct FilePiece {
  std::string piece;
  float score = 0;
};

// Takes numbers and bytes from the front of the file.
class Reader {
 public:
  Reader(std::string_view place, std::span<const std::byte> content)
      : place_(place), rest_(content), size_(content.size()) {}

  bool at_end() const { return rest_.empty(); }
  std::size_t at() const { return size_ - rest_.size(); }

  std::span<const std::byte> take(std::size_t count) {
    if (count > rest_.size())
      throw InputError(fmt::format(
          "{}: byte {}: {} more bytes expected, there are {}; the file may "
          "have been cut short",
          place_, at(), count, rest_.size()));
    const std::span<const std::byte> taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  template <class Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

 private:
  std::string_view place_;
  std::span<const std::byte> rest_;
  std::size_t size_;
};

std::vector<FilePiece> read_pieces(std::string_view place,
                                   std::span<const std::byte> content) {
  Reader reader(place, content);
  const auto longest = reader.number<std::int32_t>();
  if (longest < 1 || longest > longest_allowed)
    throw InputError(fmt::format(
        "{}: the longest piece is said to have {} bytes, expected 1 to {}",
        place, longest, longest_allowed));
  std::vector<FilePiece> pieces;
  while (!reader.at_end()) {
    const std::size_t at = reader.at();
    FilePiece read;
    read.score = reader.number<float>();
    const auto length = reader.number<std::int32_t>();
    if (length < 1 || length > longest || !std::isfinite(read.score))
      throw InputError(fmt::format(
          "{}: byte {}: piece {} has {} bytes and score {}, expected 1 to {} "
          "bytes and a finite score",
          place, at, pieces.size(), length, read.score, longest));
    const auto bytes = reader.take(static_cast<std::size_t>(length));
    read.piece.assign(reinterpret_cast<const char*>(bytes.data()),
                      bytes.size());
    pieces.push_back(std::move(read));
  }
  return pieces;
}

// Newer files write a byte as "<0x0A>", older ones as the character of that
// number, in UTF-8 from 0x80 on.
void check_byte_piece(std::string_view place, const std::string& piece,
                      TokenId id) {
  const int byte = id - first_byte;
  if (piece != fmt::format("<0x{:02X}>", byte) &&
      piece != std::string(1, static_cast<char>(byte)) &&
      piece != utf8_of(static_cast<char32_t>(byte)))
    throw InputError(fmt::format("{}: piece {} is {}, expected byte <0x{:02X}>",
                                 place, id, printable(piece), byte));
}

}  // namespace

LlamaTokenizer::LlamaTokenizer(std::string_view place,
                               std::span<const std::byte> content) {
  const std::vector<FilePiece> read = read_pieces(place, content);
  const auto size = static_cast<TokenId>(read.size());
  if (size < first_text)
    throw InputError(
        fmt::format("{}: {} pieces, expected {} at least: unknown, beginning, "
                    "end, and the bytes",
                    place, size, first_text));
  for (TokenId id = 0; id < size; ++id) {
    const std::string& piece = read[id].piece;
    const bool is_byte = id >= first_byte && id < first_text;
    if (is_byte) check_byte_piece(place, piece, id);
    pieces_.push_back(
        is_byte ? std::string(1, static_cast<char>(id - first_byte)) : piece);
    if (id < first_text) continue;
    const auto [known, is_new] = ids_.emplace(piece, id);
    if (!is_new)
      throw InputError(fmt::format("{}: pieces {} and {} are both {}", place,
                                   known->second, id, printable(piece)));
  }

  // all pairs of pieces that are a piece together
  for (TokenId id = first_text; id < size; ++id) {
    const std::string_view piece = pieces_[id];
    for (std::size_t cut = 1; cut < piece.size(); ++cut) {
      const auto left = ids_.find(piece.substr(0, cut));
      if (left == ids_.end()) continue;
      const auto right = ids_.find(piece.substr(cut));
      if (right == ids_.end()) continue;
      merges_.add(left->second, right->second, id, -read[id].score);
    }
  }
}

std::vector<AddedToken> LlamaTokenizer::special() const {
  std::vector<AddedToken> tokens;
  for (TokenId id = 0; id < first_byte; ++id) {
    std::string_view name = pieces_[id];
    while (name.starts_with('\n')) name.remove_prefix(1);
    while (name.ends_with('\n')) name.remove_suffix(1);
    tokens.push_back({.content = std::string(name), .id = id});
  }
  return tokens;
}

std::vector<Token> LlamaTokenizer::encode(std::string_view text,
                                          bool beginning_of_text) const {
  check_utf8(text);
  std::vector<Token> tokens;
  // the piece of a character, or its bytes, standing at [begin, end)
  const auto add = [&](std::string_view character, std::size_t begin,
                       bool in_text) {
    if (const auto found = ids_.find(character); found != ids_.end()) {
      tokens.push_back(
          {found->second, begin, begin + (in_text ? character.size() : 0)});
      return;
    }
    for (const char byte : character) {
      const std::size_t next = begin + (in_text ? 1 : 0);
      tokens.push_back(
          {first_byte + static_cast<unsigned char>(byte), begin, next});
      begin = next;
    }
  };
  if (beginning_of_text && !text.empty()) add(" ", 0, false);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = character_at(text, at).size;
    add(text.substr(at, size), at, true);
    at += size;
  }
  return merges_.apply(std::move(tokens));
}

std::string LlamaTokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  bool first = true;
  for (const TokenId id : ids) {
    if (id != beginning && id != end_of_text) {
      const std::string_view piece = pieces_[id];
      text += first && piece.starts_with(' ') ? piece.substr(1) : piece;
    }
    first = id == beginning;
  }
  return text;
}

}  // namespace lipscope
