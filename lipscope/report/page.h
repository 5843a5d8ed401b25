#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/report/columns.h"

namespace lipscope {

struct PageOptions {
  /// Two files side by side, and not one audit in several files.
  bool compare = false;
  std::string machine;  ///< on which the page is made, in words
  /// Where not all records are added: of windows that differ in nothing else,
  /// so many at most stand for all.
  std::size_t of_each = 0;
  /// Tokens whose shares go into the page. Beyond, those of the largest
  /// constants of every layer and head are kept, and the page says so.
  std::size_t most_shares = 150'000;
  /// Numbers of flows from token to token, likewise.
  std::size_t most_flows = 300'000;
};

/// One HTML page that shows records to people and needs nothing else: no
/// network, no other file. Its style, its script and Chart.js are in the
/// library (page/, page_parts.h).
///
/// Nothing in a record is trusted: strings reach the page as data, never as
/// HTML or script.
class Page {
 public:
  explicit Page(PageOptions options = {}) : options_(options) {}

  /// The records that follow are those of this file.
  void begin_file(const std::string& name);
  void add(nlohmann::ordered_json record);

  /// A record that others stand for: it is counted, with its seconds.
  void leave_out(const nlohmann::ordered_json& record);

  std::size_t left_out() const { return left_out_; }

  /// Of all files. Growth fits are not counted, nor what only describes the
  /// figure of an experiment (docs/records.md).
  std::size_t records() const { return columns_.size(); }

  std::string html() const;

 private:
  // where the worst change of one record sits, in units of 1e-4
  struct Shares {
    std::size_t record = 0;
    std::size_t text = 0;  // of texts_
    double lower = 0.0;
    std::string group;  // its file, layer and head
    std::vector<int> input, output;
    std::vector<int> flow;  // n rows of n, end to end; empty where not known
  };

  void keep_of_experiment(const nlohmann::ordered_json& record);
  std::string findings() const;
  void take_shares(nlohmann::ordered_json& record);
  std::vector<Shares> chosen_shares() const;
  std::string data() const;

  PageOptions options_;
  std::vector<std::string> files_;
  std::vector<std::size_t> counts_;  // of records, by file
  std::size_t left_out_ = 0;
  double left_out_seconds_ = 0.0;
  Columns columns_;
  std::vector<std::string> growth_;   // fits, as JSON
  std::vector<std::string> figures_;  // descriptions of experiments, as JSON
  // records of each experiment of each file, for what is said of its claim
  std::map<std::pair<std::size_t, std::string>,
           std::vector<nlohmann::ordered_json>>
      experiments_;
  std::vector<std::string> texts_;  // lists of tokens, as JSON
  std::unordered_map<std::string, std::size_t> text_places_;
  std::vector<Shares> shares_;
};

/// Whether a text begins as these pages do.
bool is_page(std::string_view beginning);

}  // namespace lipscope
