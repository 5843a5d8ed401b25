#include "lipscope/cli/text_piece.h"

#include "lipscope/core/errors.h"
#include "lipscope/io/text_file.h"

namespace lipscope::cli {

void declare_text_piece(CLI::App& app, TextPieceOptions& o) {
  app.add_option("--text", o.text, "a text in UTF-8")
      ->required()
      ->type_name("FILE");
  app.add_option("--split", o.piece,
                 "all of it, or the piece that train makes of it")
      ->check(CLI::IsMember({"all", "train", "valid", "test"}))
      ->capture_default_str();
}

std::vector<int> characters_of(const TextPieceOptions& o,
                               const Vocabulary& vocabulary) {
  const std::string text = read_text_file(o.text);
  std::vector<int> all = vocabulary.encode(text, o.text);
  const Pieces pieces = pieces_of(static_cast<Index>(all.size()));
  const auto cut = [&](Index begin, Index end) {
    return std::vector<int>(all.begin() + begin, all.begin() + end);
  };
  if (o.piece == "train") all = cut(0, pieces.train_end);
  if (o.piece == "valid") all = cut(pieces.train_end, pieces.valid_end);
  if (o.piece == "test")
    all = cut(pieces.valid_end, static_cast<Index>(all.size()));
  if (all.size() < 2)
    throw InputError(fmt::format(
        "{}: {} characters to read ({}); there must be two at least", o.text,
        all.size(), o.piece));
  return all;
}

}  // namespace lipscope::cli
