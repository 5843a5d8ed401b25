#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lipscope::audit {

/// Which files of records are shown, and where the page goes.
struct PageRequest {
  std::vector<std::string> files;  ///< records, as Records writes them
  std::string out = "report.html";
  bool compare = false;  ///< two files side by side, not one audit in several
};

struct WrittenPage {
  std::size_t records = 0;  ///< that are shown
  /// Not shown, where they are too many for a browser: others stand for them
  /// (report/representatives.h).
  std::size_t left_out = 0;
  std::size_t bytes = 0;  ///< of the page
  /// Records whose number from below exceeds one from above; the page marks
  /// them.
  std::size_t contradictions = 0;
  std::string finding;  ///< of a comparison: what the two files say
};

/// One HTML page that shows records and needs no network and no other file.
/// InputError, with the line, for a file that is not one of records.
WrittenPage write_page(const PageRequest& request);

}  // namespace lipscope::audit
