#pragma once

#include <string_view>

#include "lipscope/text/tokenizer.h"

namespace lipscope {

/// From the content of a tokenizer.json, as Hugging Face's tokenizers write it:
/// a model BPE behind a pre-tokenizer ByteLevel, or a model WordPiece behind
/// BertNormalizer and BertPreTokenizer.
///
/// What it says of truncation, padding, post-processing and decoding is passed
/// over; added tokens are matched in the text (added_tokens.h). InputError,
/// beginning with `place`, for another model, normalizer or pre-tokenizer, by
/// its name; for options that would change the ids and are not implemented
/// (dropout, suffixes, byte_fallback, ...); and for what is malformed.
Tokenizer parse_tokenizer_json(std::string_view place, std::string_view text);

/// How to read the vocab.txt beside a tokenizer_config.json with this content:
/// its do_lower_case, strip_accents, tokenize_chinese_chars and the names of
/// its special tokens (unk_token, cls_token, …). What it does not say is as for
/// the uncased BERT.
WordPieceOptions parse_bert_config(std::string_view place,
                                   std::string_view text);

}  // namespace lipscope
