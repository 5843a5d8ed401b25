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
#include "lipscope/report/representatives.h"

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

namespace {

// Every record of the files, checked and under the present names; `take` is
// given the number of its file.
template <class Take>
void read_files(const PageRequest& request, const Take& take) {
  for (std::size_t file = 0; file < request.files.size(); ++file)
    read_journal(request.files[file], [&](nlohmann::ordered_json record) {
      if (begins_plan(record))
        throw InputError(
            "a plan: questions, not records; lipscope merge puts together what "
            "workers answered");
      check_fields(record, RecordUse::shown);
      use_present_bound_names(record);
      take(std::move(record), file);
    });
}

// fits and descriptions of figures are few, and needed whole
bool may_be_left_out(const nlohmann::ordered_json& record) {
  const nlohmann::ordered_json command =
      record.value("command", nlohmann::ordered_json());
  return command == "measure" || command == "certify" || command == "bound" ||
         command == "search";
}

}  // namespace

WrittenPage write_page(const PageRequest& request) {
  WrittenPage written;
  // A comparison joins two files record by record, and needs them all.
  Representatives chosen;
  if (!request.compare)
    read_files(request,
               [&](const nlohmann::ordered_json& record, std::size_t file) {
                 if (may_be_left_out(record)) chosen.note(record, file);
               });
  Page page({.compare = request.compare,
             .machine = this_machine(),
             .of_each = chosen.of_each()});
  std::vector<Findings> files;
  std::size_t number = 0;
  read_files(request, [&](nlohmann::ordered_json record, std::size_t file) {
    while (files.size() <= file) {
      page.begin_file(request.files[files.size()]);
      files.emplace_back();
    }
    if (!consistent(record)) ++written.contradictions;
    if (request.compare) files.back().push_back(compared_fields(record));
    if (!request.compare && may_be_left_out(record) && !chosen.keeps(number++))
      page.leave_out(record);
    else
      page.add(std::move(record));
  });
  while (files.size() < request.files.size()) {
    page.begin_file(request.files[files.size()]);
    files.emplace_back();
  }
  const std::string html = page.html();
  AtomicFile out(request.out);
  out.write(std::as_bytes(std::span(html)));
  out.commit();
  written.records = page.records();
  written.left_out = page.left_out();
  written.bytes = html.size();
  if (request.compare) written.finding = compared_finding(files[0], files[1]);
  return written;
}

}  // namespace lipscope::audit
