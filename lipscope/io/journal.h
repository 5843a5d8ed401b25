#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "lipscope/io/file_descriptor.h"

namespace lipscope {

/// A file of JSON objects, one a line, that no crash leaves torn: what append
/// has returned from is on the disk, and what it was interrupted in is cut off
/// when the journal is next opened.
///
/// One process at a time holds a journal, by an exclusive lock on the file. A
/// device or a pipe can be written to as well; it is neither locked nor read.
class Journal {
 public:
  enum class Mode {
    append,  ///< what is there stays, and is not looked at
    resume   ///< what is there can be asked for, so that it is not done again
  };

  /// Opens the journal, or makes an empty one; its folder must be there.
  ///
  /// In both modes every line is checked. A last line that was cut off in the
  /// middle is removed; one that only lacks its newline is given it. InputError
  /// for a journal that another run has open, and, with the line, for a file
  /// that is not a journal, which is left as it was: a line that is no JSON
  /// object, or is nested deeper than any record (deepest_json).
  ///
  /// In Mode::resume every record is shown to `check`, if there is one; an
  /// InputError that it throws is given the file and the line.
  using Check = std::function<void(const nlohmann::ordered_json&)>;
  Journal(const std::filesystem::path& path, Mode mode,
          const Check& check = {});

  /// What was there on opening, in order; empty in Mode::append.
  const std::vector<nlohmann::ordered_json>& records() const {
    return records_;
  }

  /// Adds one object, and returns when it is on the disk. NaN and infinity
  /// become null. RunError if it cannot be written: the file then ends with the
  /// record before.
  void append(const nlohmann::ordered_json& record);

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
  bool regular_ = true;  // a file, that is, not a device or a pipe
  bool torn_ = false;    // a failed append could not be taken back
  std::vector<nlohmann::ordered_json> records_;
};

/// Whether the last line of a journal is cut off.
enum class JournalEnd { whole, torn };

/// Hands over what a journal holds, in order, and leaves the file alone: one
/// that is being written can be read, and a last line that is cut off is left
/// out. InputError, with the line, for a file that is not a journal, and where
/// `take` throws one.
JournalEnd read_journal(
    const std::filesystem::path& path,
    const std::function<void(nlohmann::ordered_json)>& take);

}  // namespace lipscope
