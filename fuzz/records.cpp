// Reads records as report and --resume do: the fields are checked, numbers from
// below and above are compared, questions are formed, and a page is made.

#include "fuzz/fuzzing.h"
#include "lipscope/io/journal.h"
#include "lipscope/record/check_fields.h"
#include "lipscope/record/key.h"
#include "lipscope/record/record.h"
#include "lipscope/report/page.h"
#include "lipscope/report/page_parts.h"

using namespace lipscope;

// the page without its looks, which the build writes into the library
namespace lipscope::page_parts {
const std::string_view html = "{{title}}{{style}}{{chart}}{{script}}{{data}}";
const std::string_view style, script, chart;
}  // namespace lipscope::page_parts

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const fuzz::MemoryFile file(fuzz::text_of(data, size));
  fuzz::may_refuse([&] {
    Page page;
    page.begin_file("fuzz");
    read_journal(file.path(), [&](const nlohmann::ordered_json& record) {
      // what is not checked must do no harm either
      consistent(record);
      key_of(record);
      check_fields(record, RecordUse::shown);
      page.add(record);
    });
    fuzz::hold(page.html().find("</script") == std::string::npos,
               "no record ends the script of the page");
  });
  fuzz::may_refuse([&] {
    const Journal journal(file.path(), Journal::Mode::resume,
                          [](const nlohmann::ordered_json& record) {
                            check_fields(record, RecordUse::resumed);
                          });
    for (const nlohmann::ordered_json& record : journal.records())
      key_of(record);
  });
  return 0;
}
