// lipscope report, lipscope compare: records as a page that a browser opens.

#include <filesystem>
#include <memory>
#include <span>
#include <thread>

#include "lipscope/cli/commands.h"
#include "lipscope/cli/machine.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/record.h"
#include "lipscope/core/errors.h"
#include "lipscope/io/atomic_file.h"
#include "lipscope/io/journal.h"
#include "lipscope/report/page.h"

namespace lipscope::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  std::string out;
  bool quiet = false;
};

void declare(CLI::App& app, Options& o, int least, int most) {
  app.add_option("files", o.files, "records, as --out of any command has them")
      ->type_name("FILE.jsonl")
      ->required()
      ->expected(least, most);
  app.add_option("--out", o.out, "the page")
      ->type_name("FILE.html")
      ->capture_default_str()
      ->group("Output");
  app.add_flag("--quiet", o.quiet, "do not say where the page is")
      ->group("Output");
}

int write_page(const Options& o, bool compare) {
  Page page({.compare = compare,
             .machine = fmt::format("{}, {} cores", cpu_field("model name"),
                                    std::thread::hardware_concurrency())});
  std::size_t contradictions = 0;
  for (const std::string& file : o.files) {
    page.begin_file(file);
    read_journal(file, [&](nlohmann::ordered_json record) {
      if (!consistent(record)) ++contradictions;
      page.add(std::move(record));
    });
  }
  const std::string html = page.html();
  AtomicFile out(o.out);
  out.write(std::as_bytes(std::span(html)));
  out.commit();
  if (!o.quiet)
    fmt::print("{}: {} records, {:.1f} MB; open it in a browser\n",
               std::filesystem::absolute(o.out).lexically_normal().string(),
               page.records(), static_cast<double>(html.size()) / 1e6);
  if (contradictions > 0)
    throw Violation(fmt::format(
        "{} of the records have a number from below that exceeds one from "
        "above; the page marks them",
        contradictions));
  return 0;
}

}  // namespace

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
  const auto options = std::make_shared<Options>();
  options->out = "report.html";
  constexpr int many = 1000;
  declare(app, *options, 1, many);
  return [options] { return write_page(*options, false); };
}

Run compare_command(CLI::App& app) {
  app.description(
      "Write one HTML page that sets two files of records side by side: two "
      "models, or two\nkinds of attention on the same weights. What was asked "
      "of both (layer, head, map, norm,\nn, sample) is compared.\n\n"
      "  lipscope measure bert/ --text alice.txt --out dot.jsonl\n"
      "  lipscope measure bert/ --text alice.txt --kind l2 --out l2.jsonl\n"
      "  lipscope compare dot.jsonl l2.jsonl");
  const auto options = std::make_shared<Options>();
  options->out = "compare.html";
  declare(app, *options, 2, 2);
  return [options] { return write_page(*options, true); };
}

}  // namespace lipscope::cli
