#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lipscope/text/normalizers.h"
#include "lipscope/text/pipeline.h"
#include "lipscope/text/word_piece.h"

namespace lipscope {

/// How to read a vocab.txt; the defaults are those of the uncased BERT.
struct BertOptions {
  BertNormalization normalization;
  WordPieceOptions word_piece;
  /// Tokens that are one wherever they stand in a text, as far as the
  /// vocabulary has them.
  std::vector<std::string> special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]",
                                      "[MASK]"};
};

/// BERT's tokenizer [Devlin19] from its pieces in order of id. InputError,
/// beginning with `place`, for a piece that stands there twice, and if the
/// unknown one is not there.
Pipeline bert_pipeline(std::string_view place,
                       const std::vector<std::string>& pieces,
                       const BertOptions& options = {});

/// From the content of a vocab.txt: one piece a line, ids from 0.
Pipeline parse_bert_vocabulary(std::string_view place, std::string_view text,
                               const BertOptions& options);

/// How to read the vocab.txt beside a tokenizer_config.json with this content:
/// its do_lower_case, strip_accents, tokenize_chinese_chars and the names of
/// its special tokens (unk_token, cls_token, …).
BertOptions parse_bert_config(std::string_view place, std::string_view text);

}  // namespace lipscope
