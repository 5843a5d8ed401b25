#include "lipscope/text/gpt2_files.h"

#include <nlohmann/json.hpp>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"
#include "lipscope/text/pieces.h"

namespace lipscope {

Pipeline gpt2_pipeline(std::string_view place,
                       const std::vector<std::string>& spelled,
                       const std::vector<SpelledMerge>& merges,
                       bool add_prefix_space) {
  return Pipeline(nullptr, byte_level(add_prefix_space, true),
                  BytePair(place, ids_by_piece(place, spelled), merges, {}),
                  spelled, {.kind = Spelling::Kind::bytes});
}

std::vector<SpelledMerge> parse_merges(std::string_view place,
                                       std::string_view text) {
  std::vector<SpelledMerge> merges;
  std::size_t number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++number;
    if (number == 1 && line.starts_with("#version")) continue;
    const std::size_t blank = line.find(' ');
    if (blank == 0 || blank == line.npos || blank + 1 == line.size() ||
        line.find(' ', blank + 1) != line.npos)
      throw InputError(
          fmt::format("{}: line {}: {} is not two pieces with a blank between",
                      place, number, printable(line)));
    // CLIP's files have the same names, and its words end with this mark
    if (line.ends_with("</w>"))
      throw InputError(fmt::format(
          "{}: line {}: {} has a piece that ends a word with \"</w>\", which "
          "GPT-2's files do not have; expected a tokenizer.json for it",
          place, number, printable(line)));
    merges.emplace_back(line.substr(0, blank), line.substr(blank + 1));
  }
  return merges;
}

Pipeline parse_gpt2_files(std::string_view vocabulary_place,
                          std::string_view vocabulary,
                          std::string_view merges_place,
                          std::string_view merges) {
  const PieceIds ids = parse_piece_ids(
      vocabulary_place, parse_json(vocabulary_place, vocabulary));
  const std::vector<std::string> spelled = pieces_by_id(vocabulary_place, ids);
  return Pipeline(
      nullptr, byte_level(false, true),
      BytePair(merges_place, ids, parse_merges(merges_place, merges), {}),
      spelled, {.kind = Spelling::Kind::bytes});
}

}  // namespace lipscope
