#include "lipscope/cli/conclusion.h"

#include <fmt/format.h>
#include <unistd.h>

#include "lipscope/cli/terminal.h"
#include "lipscope/core/visible_text.h"
#include "lipscope/report/csv.h"
#include "lipscope/report/wrap.h"

namespace lipscope::cli {

View view_of(const OutputOptions& o) {
  return {.quiet = o.quiet,
          .width = o.view.wide ? 0 : screen_width(STDOUT_FILENO)};
}

void print_answer(const std::string& answer) {
  if (answer.empty()) return;
  print_text(wrapped(visible_line(answer), screen_width(STDOUT_FILENO)) + "\n");
}

void print_lines(const std::string& text) {
  print_text(fitted(visible_text(text), screen_width(STDOUT_FILENO)));
}

void print_note(const std::string& note) {
  if (note.empty()) return;
  fmt::print(stderr, "{}\n",
             fitted(visible_text(note), screen_width(STDERR_FILENO)));
}

void conclude(const OutputOptions& o, const Rows& rows,
              const Conclusion& conclusion) {
  if (o.json) return;
  const Rows shown = chosen_rows(rows, o.view, conclusion.most);
  if (o.view.csv) {
    print_out(csv(shown));
    return;
  }
  const View view = view_of(o);
  std::string text = conclusion.table(shown, view);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  // a line that is no row is broken between words
  if (!text.empty()) print_text(fitted(text, view.width) + "\n\n");
  print_answer(conclusion.answer);
}

}  // namespace lipscope::cli
