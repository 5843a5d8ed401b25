#include "lipscope/cli/recovered_table.h"

#include <fmt/format.h>

#include "lipscope/report/table.h"
#include "lipscope/report/wrap.h"

namespace lipscope::cli {

using nlohmann::ordered_json;

std::string recovered_table(const std::vector<ordered_json>& records,
                            const View& view) {
  if (records.empty()) return "";
  const ordered_json& first = records.front();
  std::string text = fmt::format(
      "{}: text from the last layer's activations, kind {}, mask {}, norm "
      "{}\n\n",
      cell(first["model"]), cell(first["kind"]), cell(first["mask"]),
      cell(first["norm"]));
  std::vector<ordered_json> lines;
  for (const ordered_json& r : records) {
    lines.push_back(r);
    lines.back().update(r["details"]);
  }
  text += table({{"n", "n"},
                 {"sample", "sample", 1},
                 {"recovered", "recovered"},
                 {"proved", "proved"},
                 {"lower", "error"},
                 {"upper", "bound"},
                 {"margin", "margin", 2},
                 {"steps", "iterations", 4},
                 {"outcome", "status", 3},
                 {"seconds", "seconds", 5}},
                lines, view.width);
  text += "\nBlock by block, the first of them\n\n" +
          table({{"block", "block"},
                 {"iterations", "iterations"},
                 {"a_priori", "enough", 2},
                 {"contraction", "q"},
                 {"lipschitz", "Lip_inf <=", 1},
                 {"error_bound", "own bound"},
                 {"status", "status"}},
                first["details"]["blocks"].get<std::vector<ordered_json>>(),
                view.width);
  for (const ordered_json& line : lines)
    text +=
        fmt::format("\n--- text, n = {}, sample {} ---\n{}\n", cell(line["n"]),
                    cell(line["sample"]), line["text"].get<std::string>());
  if (view.quiet) return text;
  return text + "\n" +
         legend(
             {{"recovered",
               "characters that came out as they went in, where that is "
               "known"},
              {"proved",
               "characters of which no other is within the bound: the "
               "activations come from a text, and it has these"},
              {"error",
               "of the embeddings, in their worst entry, measured where they "
               "are known"},
              {"bound",
               "it is at most this; '-' where nothing is proved: then the "
               "text is what came out, and no more is known of it"},
              {"margin",
               "half the smallest distance of two characters' embeddings: a "
               "bound below it proves all"},
              {"enough",
               "this number of iterations is enough, known after the first "
               "step; own bound: of what the iteration of this block adds to "
               "the error"}},
             view.width);
}

}  // namespace lipscope::cli
