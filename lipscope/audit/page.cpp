#include "lipscope/audit/page.h"

#include <span>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/core/machine.h"
#include "lipscope/io/atomic_file.h"
#include "lipscope/io/journal.h"
#include "lipscope/record/check_fields.h"
#include "lipscope/record/plan.h"
#include "lipscope/record/record.h"
#include "lipscope/report/bound_names.h"
#include "lipscope/report/findings.h"
#include "lipscope/report/page.h"

namespace lipscope::audit {
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

WrittenPage write_page(const PageRequest& request) {
  Page page({.compare = request.compare, .machine = this_machine()});
  WrittenPage written;
  std::vector<Findings> files;
  for (const std::string& file : request.files) {
    page.begin_file(file);
    files.emplace_back();
    read_journal(file, [&](nlohmann::ordered_json record) {
      if (begins_plan(record))
        throw InputError(
            "a plan: questions, not records; lipscope merge puts "
            "together what workers answered");
      check_fields(record, RecordUse::shown);
      use_present_bound_names(record);
      if (!consistent(record)) ++written.contradictions;
      if (request.compare) files.back().push_back(compared_fields(record));
      page.add(std::move(record));
    });
  }
  const std::string html = page.html();
  AtomicFile out(request.out);
  out.write(std::as_bytes(std::span(html)));
  out.commit();
  written.records = page.records();
  written.bytes = html.size();
  if (request.compare) written.finding = compared_finding(files[0], files[1]);
  return written;
}

}  // namespace lipscope::audit
