#include "lipscope/text/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <optional>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/io/json_text.h"
#include "lipscope/text/pcre2_regex.h"
#include "lipscope/text/utf8.h"

namespace lipscope {
namespace {

struct CodeDeleter {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct MatchDeleter {
  void operator()(pcre2_match_data* match) const {
    pcre2_match_data_free(match);
  }
};
using Match = std::unique_ptr<pcre2_match_data, MatchDeleter>;

std::string message_of(int error) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

// A compiled expression, which is shared and never changes.
class Compiled {
 public:
  Compiled(std::string_view place, std::string_view regex)
      : place_(place), regex_(regex) {
    const std::string pattern = pcre2_regex(place, regex);
    int error = 0;
    PCRE2_SIZE at = 0;
    // Oniguruma's ^ and $ are those of a line
    code_.reset(pcre2_compile(
        reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
        PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
        &error, &at, nullptr));
    if (!code_)
      throw InputError(fmt::format("{}: the regular expression {}: {}", place_,
                                   printable(regex_), message_of(error)));
    // where the machine allows no compiled code, it is interpreted instead
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
  }

  Match new_match() const {
    return Match(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
  }

  // The first match from `at` on, or nothing.
  std::optional<PatternSpan> find(std::string_view text, std::size_t at,
                                  pcre2_match_data* match) const {
    const auto search = [&](std::uint32_t options) {
      // checking the whole text again for every word would be quadratic
      return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                         text.size(), at, PCRE2_NO_UTF_CHECK | options, match,
                         nullptr);
    };
    int found = search(0);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = search(PCRE2_NO_JIT);
    if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
    if (found < 1)
      throw InputError(fmt::format(
          "{}: the regular expression {} cannot be matched from "
          "byte {} of {} on: {}",
          place_, printable(regex_), at, text.size(), message_of(found)));
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(match);
    return PatternSpan{ends[0], ends[1], true};
  }

 private:
  std::string place_, regex_;
  std::unique_ptr<pcre2_code, CodeDeleter> code_;
};

// Matches as they come, and what stands between them.
class Cut {
 public:
  explicit Cut(std::string_view text) : text_(text) {}
  void add(std::size_t begin, std::size_t end) {
    if (done_ < begin) spans_.push_back({done_, begin, false});
    spans_.push_back({begin, end, true});
    done_ = end;
  }
  std::vector<PatternSpan> finish() {
    if (done_ < text_.size()) spans_.push_back({done_, text_.size(), false});
    return std::move(spans_);
  }

 private:
  std::string_view text_;
  std::size_t done_ = 0;
  std::vector<PatternSpan> spans_;
};

}  // namespace

Pattern Pattern::of_string(std::string content) {
  return Pattern([content = std::move(content)](std::string_view text) {
    Cut cut(text);
    for (std::size_t at = 0; !content.empty();) {
      at = text.find(content, at);
      if (at == text.npos) break;
      cut.add(at, at + content.size());
      at += content.size();
    }
    return cut.finish();
  });
}

Pattern Pattern::of_characters(std::function<bool(char32_t)> is_one) {
  return Pattern([is_one = std::move(is_one)](std::string_view text) {
    Cut cut(text);
    for_each_character(text,
                       [&](char32_t c, std::size_t begin, std::size_t end) {
                         if (is_one(c)) cut.add(begin, end);
                       });
    return cut.finish();
  });
}

Pattern Pattern::of_regex(std::string_view place, std::string_view regex) {
  const auto compiled = std::make_shared<const Compiled>(place, regex);
  return Pattern([compiled](std::string_view text) {
    const Match match = compiled->new_match();
    Cut cut(text);
    std::optional<std::size_t> last;  // where the last match ended
    for (std::size_t at = 0; at <= text.size();) {
      const auto found = compiled->find(text, at, match.get());
      if (!found) break;
      // an empty match directly behind the last one is none
      if (found->begin == found->end && last == found->end) {
        at += at < text.size() ? character_at(text, at).size : 1;
        continue;
      }
      cut.add(found->begin, found->end);
      at = found->end;
      last = at;
    }
    return cut.finish();
  });
}

}  // namespace lipscope
