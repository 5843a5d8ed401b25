#include "lipscope/text/pre_tokenizer_json.h"

#include "lipscope/text/pattern_json.h"
#include "lipscope/text/utf8.h"

namespace lipscope {
namespace {

PreTokenizer parse_pre_tokenizers(const JsonSection& step) {
  std::vector<PreTokenizer> steps;
  for (const JsonSection& one : step.sections("pretokenizers"))
    steps.push_back(parse_pre_tokenizer(one));
  return in_sequence(std::move(steps));
}

SplitBehavior parse_behavior(const JsonSection& step,
                             const std::string& otherwise) {
  const std::string name = step.text("behavior", otherwise);
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  step.refuse("behavior",
              "Removed, Isolated, MergedWithPrevious, MergedWithNext or "
              "Contiguous");
}

}  // namespace

MetaspaceOptions parse_metaspace(const JsonSection& step) {
  MetaspaceOptions options;
  options.mark = step.text("replacement");
  if (options.mark.empty() ||
      character_at(options.mark, 0).size != options.mark.size())
    step.refuse("replacement", "one character");
  options.split = step.flag("split", true);
  const std::string scheme = step.text("prepend_scheme", "always");
  if (scheme == "never")
    options.scheme = PrependScheme::never;
  else if (scheme == "first")
    options.scheme = PrependScheme::first;
  else if (scheme != "always")
    step.refuse("prepend_scheme", "always, never or first");
  // older files have this alone
  if (!step.flag("add_prefix_space", true) && step.has("prepend_scheme") &&
      options.scheme != PrependScheme::never)
    step.refuse("prepend_scheme", "never, as add_prefix_space is false");
  if (!step.flag("add_prefix_space", true))
    options.scheme = PrependScheme::never;
  return options;
}

PreTokenizer parse_pre_tokenizer(const JsonSection& step) {
  const std::string type = step.text("type");
  if (type == "Sequence") return parse_pre_tokenizers(step);
  if (type == "ByteLevel")
    return byte_level(step.flag("add_prefix_space", true),
                      step.flag("use_regex", true));
  if (type == "Split") {
    Pattern pattern = parse_pattern(step);
    return split_at(std::move(pattern), parse_behavior(step, ""),
                    step.flag("invert", false));
  }
  if (type == "Metaspace") {
    const MetaspaceOptions options = parse_metaspace(step);
    return metaspace(character_at(options.mark, 0).code, options.scheme,
                     options.split);
  }
  if (type == "Digits")
    return split_at_digits(step.flag("individual_digits", false));
  if (type == "Punctuation")
    return split_at_punctuation(parse_behavior(step, "Isolated"));
  if (type == "BertPreTokenizer") return bert_words();
  if (type == "Whitespace") return words_and_signs();
  if (type == "WhitespaceSplit") return split_at_white_space();
  step.refuse("type",
              "Sequence, ByteLevel, Split, Metaspace, Digits, Punctuation, "
              "BertPreTokenizer, Whitespace or WhitespaceSplit");
}

}  // namespace lipscope
