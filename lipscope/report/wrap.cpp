#include "lipscope/report/wrap.h"

#include <utf8proc.h>

#include <algorithm>

namespace lipscope {

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (std::size_t at = 0; at < text.size();) {
    utf8proc_int32_t code = -1;
    const utf8proc_ssize_t size = utf8proc_iterate(
        bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    if (size <= 0) {
      ++at;
      ++width;
      continue;
    }
    width += static_cast<std::size_t>(std::max(0, utf8proc_charwidth(code)));
    at += static_cast<std::size_t>(size);
  }
  return width;
}

std::string wrapped(std::string_view text, std::size_t width,
                    std::size_t indent) {
  if (width == 0) return std::string(text);
  std::string lines;
  std::size_t used = 0;
  bool begun = false;  // the line has a word
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find_first_not_of(' ', at);
    if (begin == text.npos) break;
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    // spaces of the text between two words stay as they are
    const std::size_t gap = begun || lines.empty() ? begin - at : 0;
    const std::size_t size = display_width(word);
    if (begun && used + gap + size > width) {
      lines += '\n' + std::string(indent, ' ');
      used = indent;
    } else {
      lines += std::string(gap, ' ');
      used += gap;
    }
    lines += word;
    used += size;
    begun = true;
    at = end;
  }
  return lines;
}

std::string fitted(std::string_view text, std::size_t width) {
  if (width == 0) return std::string(text);
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const std::size_t first = line.find_first_not_of(' ');
    result += first == line.npos || display_width(line) <= width
                  ? std::string(line)
                  : wrapped(line, width, first);
    if (end < text.size()) result += '\n';
    at = end + 1;
  }
  return result;
}

std::string legend(const std::vector<Meaning>& meanings, std::size_t width) {
  constexpr std::size_t usual = 80;
  std::size_t indent = 0;
  for (const Meaning& m : meanings)
    indent = std::max(indent, display_width(m.word) + 2);
  std::string text;
  for (const Meaning& m : meanings)
    text += wrapped(m.word + std::string(indent - display_width(m.word), ' ') +
                        m.text,
                    width == 0 ? usual : width, indent) +
            '\n';
  return text;
}

}  // namespace lipscope
