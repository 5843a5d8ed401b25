#include "lipscope/experiments/generated_text.h"

#include <array>
#include <cctype>
#include <string_view>

#include "lipscope/core/rng.h"

namespace lipscope {
namespace {

using Words = std::array<std::string_view, 12>;

constexpr Words nouns = {"river", "king",   "hill",   "sailor",
                         "wolf",  "garden", "letter", "mountain",
                         "child", "winter", "bridge", "stranger"};
constexpr Words plurals = {"rivers",   "kings",   "hills",   "sailors",
                           "wolves",   "gardens", "letters", "mountains",
                           "children", "winters", "bridges", "strangers"};
constexpr Words adjectives = {"old",   "quiet",  "small", "green",
                              "cold",  "bright", "empty", "golden",
                              "proud", "gentle", "dark",  "forgotten"};
// the plural of the present; one subject adds an s
constexpr Words verbs = {"remember", "follow", "fear", "call", "find", "leave",
                         "greet",    "know",   "hear", "want", "see",  "keep"};
constexpr Words places = {"by",     "under",  "near",  "beyond",
                          "behind", "above",  "along", "across",
                          "before", "inside", "after", "toward"};

// Draws are in statements of their own: the order in which a compiler evaluates
// the parts of a sum is its own.
class Writer {
 public:
  explicit Writer(std::uint64_t seed) : rng_(seed) {}

  void sentence(std::string& text) {
    const std::size_t begin = text.size();
    clause(text);
    if (chance(0.3)) {
      text += ", and ";
      clause(text);
    }
    text[begin] = static_cast<char>(std::toupper(text[begin]));
    text += chance(0.1) ? '!' : '.';
    text += chance(0.15) ? '\n' : ' ';
  }

 private:
  bool chance(double p) { return rng_.uniform() < p; }

  // the first of a list far more often than the last, as in a language
  std::string_view one_of(const Words& words) {
    const double u = rng_.uniform();
    return words[static_cast<std::size_t>(12.0 * u * u)];
  }

  // whether it is a plural
  bool noun_phrase(std::string& text, int depth) {
    const bool plural = chance(0.4);
    text += plural || chance(0.5) ? "the " : "one ";
    if (chance(0.4)) {
      text += one_of(adjectives);
      text += ' ';
    }
    text += one_of(plural ? plurals : nouns);
    if (depth > 0 && chance(0.25)) {
      text += " that ";
      verb(text, noun_phrase(text, depth - 1));
    }
    return plural;
  }

  void verb(std::string& text, bool plural) {
    text += ' ';
    text += one_of(verbs);
    if (!plural) text += 's';
  }

  void clause(std::string& text) {
    verb(text, noun_phrase(text, 2));
    text += ' ';
    noun_phrase(text, 1);
    if (!chance(0.3)) return;
    text += ' ';
    text += one_of(places);
    text += ' ';
    noun_phrase(text, 0);
  }

  Rng rng_;
};

}  // namespace

std::string generated_text(Index characters, std::uint64_t seed) {
  Writer writer(seed);
  std::string text;
  while (static_cast<Index>(text.size()) < characters) writer.sentence(text);
  text.resize(static_cast<std::size_t>(characters));
  return text;
}

}  // namespace lipscope
