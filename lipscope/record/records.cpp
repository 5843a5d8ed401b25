#include "lipscope/record/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/core/version.h"
#include "lipscope/io/sha256.h"
#include "lipscope/record/check_fields.h"
#include "lipscope/record/key.h"
#include "lipscope/record/provenance.h"
#include "lipscope/report/table.h"

namespace lipscope {

using nlohmann::ordered_json;

void check_sides(const ordered_json& record) {
  if (consistent(record)) return;
  const auto text = [&](const char* field) {
    return cell(record.value(field, ordered_json(nullptr)));
  };
  throw Violation(fmt::format(
      "a number from below exceeds one from above: lower {}, upper {} (log10 "
      "{}), upper_whp {} (n = {}, sample {}). This is a bug in lipscope or a "
      "failure of probability delta; the record says how it was got",
      text("lower"), text("upper"), text("upper_log10"), text("upper_whp"),
      text("n"), text("sample")));
}

namespace {

std::string joined(const std::set<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

// The version is part of a record's key and the commit is not: two commits of
// one version answer alike.
std::vector<std::string> notes_on_origin(
    const std::vector<ordered_json>& records) {
  std::set<std::string> versions, commits;
  std::size_t of_versions = 0, of_commits = 0;
  for (const ordered_json& record : records) {
    const std::string made_by = record.value("version", "unknown");
    const std::string built_from = record.value("commit", "unknown");
    if (made_by != version()) {
      versions.insert(made_by);
      ++of_versions;
    } else if (built_from != commit()) {
      commits.insert(built_from);
      ++of_commits;
    }
  }
  std::vector<std::string> notes;
  if (of_versions > 0)
    notes.push_back(fmt::format(
        "records of version {} ({} in the file) are not answers of this "
        "version, {}, and are done again",
        joined(versions), of_versions, version()));
  if (of_commits > 0)
    notes.push_back(fmt::format(
        "records of commit {} ({} in the file) are kept as answers: the "
        "version is the same, the commit now is {}",
        joined(commits), of_commits, commit()));
  return notes;
}

}  // namespace

Records::Records(RecordsOptions options) : options_(std::move(options)) {}

void Records::open() {
  if (options_.file.empty() || journal_) return;
  journal_ = std::make_unique<Journal>(
      options_.file,
      options_.resume ? Journal::Mode::resume : Journal::Mode::append,
      [](const ordered_json& record) {
        check_fields(record, RecordUse::resumed);
      });
  for (const ordered_json& record : journal_->records()) {
    if (!is_complete(record)) continue;
    answered_.emplace(key_hash(record), record);
    written_.insert(line_hash(record));
  }
  if (options_.resume && options_.noted)
    for (const std::string& note : notes_on_origin(journal_->records()))
      options_.noted(note);
}

std::string Records::key_hash(const ordered_json& record) {
  return sha256_text(key_of(record));
}

std::string Records::line_hash(const ordered_json& record) {
  return sha256_text(key_of(record) + "\n" + place_of(record));
}

const ordered_json* Records::find(const Record& question) {
  open();
  if (answered_.empty()) return nullptr;
  const auto at = answered_.find(key_hash(to_json(question)));
  if (at == answered_.end()) return nullptr;
  check_sides(at->second);
  return &at->second;
}

void Records::write(const ordered_json& record) {
  open();
  if (!journal_) return;
  // a cut record is no answer: the whole one may follow it
  if (is_complete(record) && !written_.insert(line_hash(record)).second) return;
  journal_->append(options_.share ? sealed(record) : record);
}

void Records::show(const ordered_json& record) {
  if (options_.shown) options_.shown(record);
  rows_.push_back(record);
}

bool Records::keep(const Record& question) {
  const ordered_json* found = find(question);
  if (!found) return false;
  ordered_json row = at_the_place_of(to_json(question), *found);
  row.erase("line_sha256");  // of its old place
  write(row);
  show(without_provenance(row));
  return true;
}

void Records::add(const GrowthRecord& record) {
  const ordered_json json = to_json(record);
  write(json);
  if (options_.shown) options_.shown(json);
  fits_.push_back(json);
}

void Records::add(const Record& record) {
  if (keep(record)) return;
  const ordered_json json = to_json(record);
  require(says_no_less_than_certain(json),
          "records: upper_whp stands above upper (n = {}, sample {})",
          json["n"].dump(), json["sample"].dump());
  write(with_provenance(json));
  show(json);
  check_sides(json);
}

void Records::check(Index number, const Record& question) const {
  if (options_.share) options_.share->check(number, to_json(question));
}

Index Records::count_of(Index total) const {
  if (!options_.share) return total;
  options_.share->check_total(total);
  return options_.share->size();
}

void Records::count(Index found, Index to_do) const {
  if (options_.resume && options_.counted) options_.counted(found, to_do);
}

bool Records::all_converged() const {
  return std::all_of(rows_.begin(), rows_.end(), [](const ordered_json& r) {
    return r["status"] == "converged";
  });
}

}  // namespace lipscope
