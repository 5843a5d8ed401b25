#pragma once

#include <string_view>

#include "lipscope/text/tokenizer.h"

namespace lipscope {

/// From the content of a tokenizer.json, as Hugging Face's tokenizers write it.
/// Each part of the file is one step of the pipeline:
///
///   normalizer       normalizer_json.h
///   pre_tokenizer    pre_tokenizer_json.h
///   model            model_json.h
///   added_tokens     added_tokens.h
///
/// What it says of truncation, padding, post-processing and decoding is passed
/// over. The ids are those of Hugging Face's tokenizers, or there is an
/// InputError that begins with `place` and names the key and its value: for
/// what is not implemented, and for what is malformed.
Tokenizer parse_tokenizer_json(std::string_view place, std::string_view text);

}  // namespace lipscope
