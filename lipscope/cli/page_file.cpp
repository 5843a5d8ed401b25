#include "lipscope/cli/page_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <span>

#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/output_files.h"
#include "lipscope/core/machine.h"
#include "lipscope/io/atomic_file.h"
#include "lipscope/io/journal.h"
#include "lipscope/record/check_fields.h"
#include "lipscope/record/record.h"
#include "lipscope/report/findings.h"
#include "lipscope/report/page.h"

namespace lipscope::cli {

void declare_page_file(CLI::App& app, PageFileOptions& o, int least, int most) {
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
  declare_force(app, o.force);
}

namespace {

// what a comparison speaks of; the rest of a record may be large
nlohmann::ordered_json compared_fields(const nlohmann::ordered_json& record) {
  nlohmann::ordered_json few;
  for (const char* field :
       {"layer", "head", "map", "norm", "n", "sample", "lower"})
    if (const auto at = record.find(field); at != record.end())
      few[field] = *at;
  return few;
}

}  // namespace

void write_page_file(const PageFileOptions& o, bool compare) {
  OutputFiles named;
  for (const std::string& file : o.files) named.reads(file, "records");
  named.writes(o.out, "--out", OutputKind::page);
  named.check(o.force);

  Page page({.compare = compare, .machine = this_machine()});
  std::size_t contradictions = 0;
  std::vector<Findings> files;
  for (const std::string& file : o.files) {
    page.begin_file(file);
    files.emplace_back();
    read_journal(file, [&](nlohmann::ordered_json record) {
      check_fields(record, RecordUse::shown);
      if (!consistent(record)) ++contradictions;
      if (compare) files.back().push_back(compared_fields(record));
      page.add(std::move(record));
    });
  }
  const std::string html = page.html();
  AtomicFile out(o.out);
  out.write(std::as_bytes(std::span(html)));
  out.commit();
  if (!o.quiet)
    print_answer(fmt::format(
        "{}: {} records, {:.1f} MB; open it in a browser",
        std::filesystem::absolute(o.out).lexically_normal().string(),
        page.records(), static_cast<double>(html.size()) / 1e6));
  if (compare) print_answer(compared_finding(files[0], files[1]));
  if (contradictions > 0)
    throw Violation(fmt::format(
        "{} of the records have a number from below that exceeds one from "
        "above; the page marks them",
        contradictions));
}

}  // namespace lipscope::cli
