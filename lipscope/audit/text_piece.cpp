#include "lipscope/audit/text_piece.h"

#include "lipscope/core/errors.h"
#include "lipscope/io/text_file.h"
#include "lipscope/record/fingerprint.h"
#include "lipscope/text/tokenizer.h"
#include "lipscope/train/corpus.h"

namespace lipscope::audit {

namespace {

std::vector<TokenId> encoded(const Tokenizer& tokenizer,
                             const std::string& file) {
  const std::string text = read_text_file(file);
  try {
    return ids_of(tokenizer.encode(text));
  } catch (const InputError& wrong) {
    throw InputError(fmt::format("{}: {}", file, wrong.what()));
  }
}

}  // namespace

TextPiece piece_of(const TextPieceOptions& o, const Tokenizer& tokenizer) {
  const std::vector<TokenId> all = encoded(tokenizer, o.text);
  const Pieces pieces = pieces_of(static_cast<Index>(all.size()));
  Index begin = 0, end = static_cast<Index>(all.size());
  if (o.piece == "train") end = pieces.train_end;
  if (o.piece == "valid") begin = pieces.train_end, end = pieces.valid_end;
  if (o.piece == "test") begin = pieces.valid_end;
  if (o.piece == "last-tenth") begin = pieces.train_end;
  if (end - begin < 2)
    throw InputError(
        fmt::format("{}: {} tokens to read ({}); there must be two at least",
                    o.text, end - begin, o.piece));
  return {.tokens = {all.begin() + begin, all.begin() + end}, .begin = begin};
}

RecordInput input_of(const TextPieceOptions& o, const TextPiece& piece) {
  const std::vector<Index> ids(piece.tokens.begin(), piece.tokens.end());
  return {.from = "text",
          .name = o.text,
          .sha256 = fingerprint(ids),
          .offset = piece.begin};
}

}  // namespace lipscope::audit
