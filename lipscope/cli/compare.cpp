// lipscope compare: two files of records side by side on one page.

#include <memory>

#include "lipscope/cli/commands.h"
#include "lipscope/cli/page_file.h"

namespace lipscope::cli {

Run compare_command(CLI::App& app) {
  app.description(
      "Write one HTML page that sets two files of records side by side: two "
      "models, or two\nkinds of attention on the same weights. What was asked "
      "of both (layer, head, map, norm,\nn, sample) is compared.\n\n"
      "  lipscope measure bert/ --text alice.txt --out dot.jsonl\n"
      "  lipscope measure bert/ --text alice.txt --kind l2 --out l2.jsonl\n"
      "  lipscope compare dot.jsonl l2.jsonl");
  const auto options = std::make_shared<PageFileOptions>();
  options->out = "compare.html";
  declare_page_file(app, *options, 2, 2);
  return [options] {
    write_page_file(*options, true);
    return 0;
  };
}

}  // namespace lipscope::cli
