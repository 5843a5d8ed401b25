#include "lipscope/cli/page_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "lipscope/audit/page.h"
#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/output_files.h"
#include "lipscope/record/records.h"

namespace lipscope::cli {

void declare_page_file(CLI::App& app, PageFileOptions& o, int least, int most) {
  app.add_option("files", o.files,
                 "files of records, written by --out of any command")
      ->type_name("FILE.jsonl")
      ->required()
      ->expected(least, most);
  app.add_option("--out", o.out, "the page")
      ->type_name("FILE.html")
      ->capture_default_str()
      ->group("Output");
  app.add_flag("--quiet", o.quiet, "do not say where the page is")
      ->group("Output");
  declare_force(app, o.force);
}

void write_page_file(const PageFileOptions& o, bool compare) {
  OutputFiles named;
  for (const std::string& file : o.files) named.reads(file, "records");
  named.writes(o.out, "--out", OutputKind::page);
  named.check(o.force);

  const audit::WrittenPage page =
      audit::write_page({.files = o.files, .out = o.out, .compare = compare});
  if (!o.quiet)
    print_answer(fmt::format(
        "{}: {} records{}, {:.1f} MB; open it in a browser",
        std::filesystem::absolute(o.out).lexically_normal().string(),
        page.records,
        page.left_out > 0
            ? fmt::format(", which stand for {}", page.records + page.left_out)
            : "",
        static_cast<double>(page.bytes) / 1e6));
  if (compare) print_answer(page.finding);
  if (page.contradictions > 0)
    throw Violation(fmt::format(
        "{} of the records have a number from below that exceeds one from "
        "above; the page marks them",
        page.contradictions));
}

}  // namespace lipscope::cli
