#include "lipscope/text/sourced_text.h"

#include <algorithm>

#include "lipscope/text/utf8.h"

namespace lipscope {

SourcedText::SourcedText(std::string_view text, std::size_t begin)
    : text_(text) {
  sources_.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i)
    sources_.push_back({begin + i, begin + i + 1});
}

Source SourcedText::source(std::size_t begin, std::size_t end) const {
  Source all = sources_[begin];
  for (std::size_t i = begin + 1; i < end; ++i) {
    all.begin = std::min(all.begin, sources_[i].begin);
    all.end = std::max(all.end, sources_[i].end);
  }
  return all;
}

SourcedText SourcedText::part(std::size_t begin, std::size_t end) const {
  SourcedText some;
  some.append(*this, begin, end);
  return some;
}

void SourcedText::append(std::string_view bytes, Source from) {
  text_ += bytes;
  sources_.resize(text_.size(), from);
}

void SourcedText::append(char32_t character, Source from) {
  append(utf8_of(character), from);
}

void SourcedText::append(const SourcedText& other, std::size_t begin,
                         std::size_t end) {
  text_.append(other.text_, begin, end - begin);
  sources_.insert(sources_.end(), other.sources_.begin() + begin,
                  other.sources_.begin() + end);
}

void SourcedText::prepend(std::string_view bytes) {
  sources_.insert(sources_.begin(), bytes.size(), {begin(), begin()});
  text_.insert(0, bytes);
}

}  // namespace lipscope
