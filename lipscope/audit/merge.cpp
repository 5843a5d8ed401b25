#include "lipscope/audit/merge.h"

#include <fmt/format.h>

#include <filesystem>
#include <span>

#include "lipscope/core/errors.h"
#include "lipscope/io/atomic_file.h"
#include "lipscope/io/journal.h"
#include "lipscope/io/json_text.h"

namespace lipscope::audit {
namespace {

using nlohmann::ordered_json;

void write_whole(const std::string& path, const std::string& text) {
  AtomicFile out(path);
  out.write(std::as_bytes(std::span(text)));
  out.commit();
}

}  // namespace

Merged merge(const MergeRequest& request) {
  const Plan plan = read_plan(request.plan);
  Merge merge(plan, request.merge);
  Merged merged;
  for (const std::string& file : request.files) {
    Index line = 0;
    const JournalEnd end = read_journal(file, [&](const ordered_json& record) {
      merge.add(record, fmt::format("{}: line {}", file, ++line));
    });
    // a worker that had no answer yet leaves a file without a line; one in
    // which no line can be read is no journal, or is damaged
    if (end == JournalEnd::torn && line == 0)
      throw InputError(
          fmt::format("{}: nothing in it can be read: its only line is "
                      "incomplete; leave the file out to merge the others",
                      file));
    if (end == JournalEnd::torn)
      merged.notes.push_back(fmt::format(
          "{}: line {} is incomplete and is left out", file, line + 1));
  }
  const std::vector<const Question*> missing = merge.missing();
  std::string text;
  merge.write(
      [&](const ordered_json& row) {
        text += json_line(row);
        ++merged.records;
      },
      [&](const ordered_json& fit) {
        text += json_line(fit);
        ++merged.fits;
      });
  write_whole(request.out, text);
  if (!request.missing.empty() &&
      (!missing.empty() || std::filesystem::exists(request.missing)))
    write_whole(request.missing, plan.with(missing).text());
  merged.questions = static_cast<Index>(plan.questions().size());
  merged.missing = static_cast<Index>(missing.size());
  merged.duplicates = merge.duplicates();
  merged.cut = merge.cut();
  merged.notes.insert(merged.notes.end(), merge.differences().begin(),
                      merge.differences().end());
  return merged;
}

}  // namespace lipscope::audit
