#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lipscope {

/// How many letters must be changed, left out, put in, or exchanged with their
/// neighbour to make one word of the other (optimal string alignment).
std::size_t edit_distance(const std::string& a, const std::string& b);

/// The word of the list that was probably meant: the one that is nearest, if no
/// more than a third of its letters are wrong; or the only one that begins so.
std::optional<std::string> nearest_word(const std::string& word,
                                        const std::vector<std::string>& words);

/// "; did you mean measure?", or nothing.
std::string did_you_mean(const std::string& word,
                         const std::vector<std::string>& words);

/// The same where the message goes on: "; did you mean measure? THEN", or
/// "; THEN".
std::string did_you_mean(const std::string& word,
                         const std::vector<std::string>& words,
                         const std::string& then);

}  // namespace lipscope
