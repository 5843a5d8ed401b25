#pragma once

#include "lipscope/text/json_section.h"
#include "lipscope/text/pre_tokenizers.h"

namespace lipscope {

/// The pre-tokenizer of a tokenizer.json, or one of a Sequence. InputError,
/// beginning with its place, for a type or a value that is not known, by its
/// name.
PreTokenizer parse_pre_tokenizer(const JsonSection& step);

/// What a Metaspace puts for a blank, and when it puts one at the beginning.
struct MetaspaceOptions {
  std::string mark;
  PrependScheme scheme = PrependScheme::always;
  bool split = true;
};
MetaspaceOptions parse_metaspace(const JsonSection& step);

}  // namespace lipscope
