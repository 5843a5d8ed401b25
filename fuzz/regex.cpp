// Compiles a regular expression of a tokenizer.json, and cuts texts with it.

#include "fuzz/fuzzing.h"
#include "lipscope/text/pattern.h"

using namespace lipscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view regex = fuzz::text_of(data, size);
  fuzz::may_refuse([&] {
    const Pattern pattern = Pattern::of_regex("fuzz", regex);
    for (const std::string_view text :
         {"", "ab  Ab'll \u00c9\u6771.\n[MASK] 123",
          "\n\n  \u200d\U0001F600"}) {
      std::size_t end = 0;
      for (const PatternSpan& span : pattern.spans(text)) {
        fuzz::hold(span.begin == end && span.end >= span.begin,
                   "spans lie end to end");
        end = span.end;
      }
      fuzz::hold(end == text.size(), "spans cover the text");
    }
  });
  return 0;
}
