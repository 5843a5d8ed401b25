// lipscope report: records as a page that a browser opens.

#include <memory>

#include "lipscope/cli/commands.h"
#include "lipscope/cli/page_file.h"

namespace lipscope::cli {

Run report_command(CLI::App& app) {
  app.description(
      "Write one HTML page that explains records: which layer reacts most, to "
      "which words, by\nhow much, and how sure that is. The page needs no "
      "network and no other file.\n\n"
      "  lipscope measure bert/ --text alice.txt --heads each --tokens --out "
      "audit.jsonl\n"
      "  lipscope report audit.jsonl\n"
      "  lipscope report audit.jsonl bounds.jsonl --out bert.html\n\n"
      "Records of every command have their figure; docs/reading-the-page.md "
      "explains them.");
  const auto options = std::make_shared<PageFileOptions>();
  options->out = "report.html";
  constexpr int many = 1000;
  declare_page_file(app, *options, 1, many);
  return [options] {
    write_page_file(*options, false);
    return 0;
  };
}

}  // namespace lipscope::cli
