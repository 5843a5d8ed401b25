#include "lipscope/audit/text_piece.h"

#include "lipscope/core/errors.h"
#include "lipscope/io/text_file.h"
#include "lipscope/record/fingerprint.h"

namespace lipscope::audit {

TextPiece piece_of(const TextPieceOptions& o, const Vocabulary& vocabulary) {
  const std::string text = read_text_file(o.text);
  const std::vector<int> all = vocabulary.encode(text, o.text);
  const Pieces pieces = pieces_of(static_cast<Index>(all.size()));
  Index begin = 0, end = static_cast<Index>(all.size());
  if (o.piece == "train") end = pieces.train_end;
  if (o.piece == "valid") begin = pieces.train_end, end = pieces.valid_end;
  if (o.piece == "test") begin = pieces.valid_end;
  if (end - begin < 2)
    throw InputError(fmt::format(
        "{}: {} characters to read ({}); there must be two at least", o.text,
        end - begin, o.piece));
  return {.characters = {all.begin() + begin, all.begin() + end},
          .begin = begin};
}

RecordInput input_of(const TextPieceOptions& o, const TextPiece& piece) {
  const std::vector<Index> ids(piece.characters.begin(),
                               piece.characters.end());
  return {.from = "text",
          .name = o.text,
          .sha256 = fingerprint(ids),
          .offset = piece.begin};
}

}  // namespace lipscope::audit
