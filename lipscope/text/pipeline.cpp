#include "lipscope/text/pipeline.h"

#include <unordered_map>
#include <utility>

namespace lipscope {

Pipeline::Pipeline(Normalizer normalizer, PreTokenizer pre_tokenizer,
                   Model model, const std::vector<std::string>& spelled,
                   Spelling spelling)
    : normalizer_(std::move(normalizer)),
      pre_tokenizer_(std::move(pre_tokenizer)),
      model_(std::move(model)),
      spelling_(std::move(spelling)),
      pieces_(spelling_.read(spelled)) {}

SourcedText Pipeline::normalized(SourcedText text) const {
  return normalizer_ ? normalizer_(std::move(text)) : text;
}

std::string Pipeline::normalized(std::string_view text) const {
  return normalized(SourcedText(text)).text();
}

std::vector<SourcedText> Pipeline::words(SourcedText text) const {
  if (pre_tokenizer_) return pre_tokenizer_(std::move(text));
  std::vector<SourcedText> all;
  all.push_back(std::move(text));
  return all;
}

std::vector<Token> Pipeline::encode(std::string_view text, std::size_t begin,
                                    const AddedTokens& added) const {
  const SourcedText all = normalized(SourcedText(text, begin));
  // words come again and again; their tokens are found once
  std::unordered_map<std::string, std::vector<Token>> known;
  std::vector<Token> tokens;
  for (const TextSpan& span : added.split(all.text())) {
    if (span.id) {
      const Source source = all.source(span.begin, span.end);
      tokens.push_back({*span.id, source.begin, source.end});
      continue;
    }
    for (const SourcedText& word : words(all.part(span.begin, span.end))) {
      const auto [entry, is_new] = known.try_emplace(word.text());
      if (is_new)
        entry->second = std::visit(
            [&](const auto& m) { return m.encode(word.text()); }, model_);
      for (const Token& token : entry->second) {
        const Source source = word.source(token.begin, token.end);
        tokens.push_back({token.id, source.begin, source.end});
      }
    }
  }
  return tokens;
}

}  // namespace lipscope
