#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lipscope/audit/source.h"
#include "lipscope/cli/output.h"

/// Nothing that a command reads is written over, and nothing that somebody else
/// made. A command says what it reads and what it will write, and both are
/// looked at before the work begins: not after hours of it.
namespace lipscope::cli {

/// How a file of each kind begins, which is how it is known as ours.
enum class OutputKind {
  records,  ///< a JSON object with "schema" and "command" on the first line
  plan,     ///< the same, with "command": "plan"
  matrix,   ///< NumPy's magic number
  page,     ///< as the page of report does
  trained   ///< beside a config.json with "model_type": "lipscope"
};

class OutputFiles {
 public:
  /// `option` names it in messages: "--text", "the records". A folder stands
  /// for the files in it. An empty path is nothing.
  void reads(const std::filesystem::path& path, const std::string& option);

  /// An empty path is nothing. Devices and pipes may be written to freely.
  void writes(const std::filesystem::path& path, const std::string& option,
              OutputKind kind);

  /// The files of --save-direction and --save-input.
  void writes_matrices(const std::filesystem::path& direction,
                       const std::filesystem::path& input) {
    writes(direction, "--save-direction", OutputKind::matrix);
    writes(input, "--save-input", OutputKind::matrix);
  }

  /// All that training writes into its folder.
  void writes_model(const std::filesystem::path& folder,
                    const std::string& option);

  /// InputError where an output is a file that is read, or another output, by
  /// whatever path or link; and, unless forced, where it is a file that does
  /// not begin as its kind does. A forced file of records that is none is
  /// emptied here, as records are added at the end.
  void check(bool force) const;

 private:
  struct File {
    std::filesystem::path path;
    std::string option;
    OutputKind kind = OutputKind::records;
  };
  std::vector<File> read_, written_;
};

/// The files that these options name.
OutputFiles files_of(const audit::SourceOptions& source,
                     const OutputOptions& output);

}  // namespace lipscope::cli
