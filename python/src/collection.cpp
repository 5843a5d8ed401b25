#include "collection.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/io/atomic_file.h"
#include "lipscope/io/json_text.h"
#include "lipscope/record/provenance.h"

namespace lipscope::python {

using nlohmann::ordered_json;

Collection::Collection(Plan plan, std::filesystem::path file, bool resume)
    : plan_(std::move(plan)), file_(std::move(file)), merge_(plan_) {
  if (file_.empty()) return;
  journal_ = std::make_unique<Journal>(file_, Journal::Mode::append);
  Index line = 0;
  read_journal(file_, [&](const ordered_json& record) {
    ++line;
    if (begins_plan(record))
      throw InputError("a plan, not records; give another name");
    if (resume && merge_.asks(record))
      merge_.add(record, fmt::format("{}: line {}", file_.string(), line));
    else
      ahead_ += json_line(record);
  });
}

void Collection::take(const std::string& line, const std::string& worker) {
  const ordered_json record = parse_ordered_json(worker, line);
  const std::string place = fmt::format("what {} answered", worker);
  if (merge_.add(record, place) && journal_) journal_->append(record);
}

void Collection::finish() {
  if (!journal_) return;
  AtomicFile out(file_);
  const auto write = [&](const std::string& text) {
    out.write(std::as_bytes(std::span(text)));
  };
  write(ahead_);
  const auto write_line = [&](const ordered_json& json) {
    write(json_line(json));
  };
  merge_.write(write_line, write_line);
  out.commit();
  journal_.reset();
}

std::vector<ordered_json> Collection::rows() const {
  std::vector<ordered_json> rows;
  merge_.write(
      [&](const ordered_json& row) { rows.push_back(without_provenance(row)); },
      [](const ordered_json&) {});
  return rows;
}

std::vector<ordered_json> Collection::fits() const {
  std::vector<ordered_json> fits;
  merge_.write([](const ordered_json&) {},
               [&](const ordered_json& fit) { fits.push_back(fit); });
  return fits;
}

}  // namespace lipscope::python
