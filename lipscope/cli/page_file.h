#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace lipscope::cli {

/// Files of records, and the page to be made of them.
struct PageFileOptions {
  std::vector<std::string> files;
  std::string out;
  bool quiet = false;
  bool force = false;
};

/// From `least` to `most` files.
void declare_page_file(CLI::App& app, PageFileOptions& options, int least,
                       int most);

/// Writes the page, side by side where two files are to be compared, and says
/// where it is. Throws Violation, after it is written, if the numbers of a
/// record contradict each other.
void write_page_file(const PageFileOptions& options, bool compare);

}  // namespace lipscope::cli
