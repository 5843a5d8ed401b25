#include "lipscope/text/precompiled.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <cstring>

#include "lipscope/core/errors.h"
#include "lipscope/text/utf8.h"

namespace lipscope {
namespace {

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return -1;
}

std::string from_base64(std::string_view place, std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int digit = base64_digit(c);
    if (digit < 0)
      throw InputError(
          fmt::format("{}: precompiled_charsmap is not base64", place));
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  return bytes;
}

// A unit of the trie, by the layout of darts-clone
bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) == 1; }
std::uint32_t value(std::uint32_t unit) { return unit & 0x7fffffffu; }
std::uint32_t label(std::uint32_t unit) { return unit & 0x800000ffu; }
std::uint32_t offset(std::uint32_t unit) {
  return unit >> 10 << ((unit & 1u << 9) >> 6);
}

// The end of the user-perceived character that begins at `at`
std::size_t end_of_grapheme(std::string_view text, std::size_t at) {
  utf8proc_int32_t state = 0;
  Character last = character_at(text, at);
  std::size_t end = at + last.size;
  while (end < text.size()) {
    const Character c = character_at(text, end);
    if (utf8proc_grapheme_break_stateful(
            static_cast<utf8proc_int32_t>(last.code),
            static_cast<utf8proc_int32_t>(c.code), &state))
      break;
    last = c;
    end += c.size;
  }
  return end;
}

}  // namespace

Precompiled::Precompiled(std::string_view place, std::string_view base64)
    : place_(place) {
  const std::string bytes = from_base64(place, base64);
  std::uint32_t size = 0;
  if (bytes.size() >= sizeof size)
    std::memcpy(&size, bytes.data(), sizeof size);
  if (size == 0 || size % sizeof size != 0 || size > bytes.size() - sizeof size)
    throw InputError(
        fmt::format("{}: precompiled_charsmap has {} bytes, of which {} "
                    "are said to be its trie",
                    place, bytes.size(), size));
  trie_.resize(size / sizeof size);
  std::memcpy(trie_.data(), bytes.data() + sizeof size, size);
  written_ = bytes.substr(sizeof size + size);
  try {
    check_utf8(written_);
  } catch (const InputError& wrong) {
    throw InputError(
        fmt::format("{}: precompiled_charsmap: {}", place, wrong.what()));
  }
}

std::optional<std::string_view> Precompiled::instead_of(
    std::string_view bytes) const {
  std::size_t node = offset(trie_[0]);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) break;
    node ^= byte;
    if (node >= trie_.size() || label(trie_[node]) != byte) break;
    const std::uint32_t unit = trie_[node];
    node ^= offset(unit);
    if (node >= trie_.size()) break;
    if (!has_leaf(unit)) continue;
    const std::size_t place = value(trie_[node]);
    // an entry within a character, or behind the end: the file is damaged
    const bool fine =
        place < written_.size() &&
        (static_cast<unsigned char>(written_[place]) & 0xc0) != 0x80;
    if (!fine)
      throw InputError(fmt::format(
          "{}: precompiled_charsmap writes what stands at byte {} of {}, "
          "where no character begins",
          place_, place, written_.size()));
    const std::string_view found = std::string_view(written_).substr(place);
    return found.substr(0, found.find('\0'));
  }
  return std::nullopt;
}

SourcedText Precompiled::normalized(const SourcedText& text) const {
  constexpr std::size_t longest = 5;  // bytes of one that is looked up whole
  const std::string_view all = text.text();
  SourcedText out;
  // writes what stands at [begin, end) otherwise, if there is an entry
  const auto replaced = [&](std::size_t begin, std::size_t end) {
    const auto instead = instead_of(all.substr(begin, end - begin));
    if (instead) out.append(*instead, text.source(begin, end));
    return instead.has_value();
  };
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = end_of_grapheme(all, at);
    if (end - at <= longest && replaced(at, end)) {
      at = end;
      continue;
    }
    while (at < end) {
      const std::size_t next = at + character_at(all, at).size;
      if (!replaced(at, next)) out.append(text, at, next);
      at = next;
    }
  }
  return out;
}

}  // namespace lipscope
