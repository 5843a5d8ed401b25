#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lipscope/text/byte_pair.h"
#include "lipscope/text/pipeline.h"

namespace lipscope {

/// GPT-2's byte-level byte-pair encoding [Radford19]: the text is cut into
/// words, and the bytes of every word are merged. From pieces, in order of id,
/// and merges, first to last, in the spelling of the files (byte_alphabet.h).
/// Every text in UTF-8 can be encoded if all bytes are pieces, and comes back
/// from its ids. InputError, beginning with `place`, for a piece that stands
/// there twice, and as BytePair.
///
/// With `add_prefix_space` a text that begins with no blank gets one, which
/// stands at no byte.
Pipeline gpt2_pipeline(std::string_view place,
                       const std::vector<std::string>& spelled,
                       const std::vector<SpelledMerge>& merges,
                       bool add_prefix_space = false);

/// The merges of a merges.txt or vocab.bpe: two pieces a line, after a first
/// line "#version: ..." that may be missing. InputError with the line, also for
/// the merges of CLIP, whose files are called the same.
std::vector<SpelledMerge> parse_merges(std::string_view place,
                                       std::string_view text);

/// From the contents of a vocab.json (or encoder.json) and of a merges.txt (or
/// vocab.bpe).
Pipeline parse_gpt2_files(std::string_view vocabulary_place,
                          std::string_view vocabulary,
                          std::string_view merges_place,
                          std::string_view merges);

}  // namespace lipscope
