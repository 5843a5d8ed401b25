#include "lipscope/report/bound_names.h"

#include <string_view>
#include <utility>

namespace lipscope {
namespace {

using nlohmann::ordered_json;

constexpr std::pair<std::string_view, std::string_view> present_names[] = {
    {"own_ball", "column_sums"},
    {"own_meanfield", "column_sums_meanfield"},
    {"own_causal", "column_sums_causal"},
    {"own_causal_meanfield", "hardy_meanfield"},
    {"own_token", "row_sums"},
    {"own_l2", "l2_diagonal_apart"},
    {"own_l2_token", "l2_row_sums"},
    {"own_l2_kernel", "l2_kernel"},
    {"own_cosine", "cosine_column_sums"},
    {"own_local", "covariances"},
    {"own_split", "split_paths"},
    {"own_blocks", "token_pairs"}};

bool in_a_word(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

void rename_text(ordered_json& in, const char* field) {
  const auto at = in.find(field);
  if (at != in.end() && at->is_string())
    *at = present_bound_name(at->get<std::string>());
}

// {"own_split": 2.5, …}
void rename_keys(ordered_json& in, const char* field) {
  const auto at = in.find(field);
  if (at == in.end() || !at->is_object()) return;
  ordered_json renamed = ordered_json::object();
  for (const auto& [name, value] : at->items())
    renamed[present_bound_name(name)] = value;
  *at = std::move(renamed);
}

}  // namespace

std::string present_bound_name(const std::string& name) {
  std::string out;
  for (std::size_t i = 0; i < name.size();) {
    std::size_t end = i;
    while (end < name.size() && in_a_word(name[end])) ++end;
    std::string_view word = std::string_view(name).substr(i, end - i);
    for (const auto& [old, present] : present_names)
      if (word == old) {
        word = present;
        break;
      }
    out += word;
    if (end < name.size()) out += name[end];
    i = end + 1;
  }
  return out;
}

std::string present_certificate_word(const std::string& word) {
  if (word == "blocks") return "pairs";
  if (word == "local") return "covariances";
  return word;
}

void use_present_bound_names(ordered_json& record) {
  if (!record.is_object()) return;
  for (const char* field : {"lower_by", "upper_by"}) rename_text(record, field);
  const auto parameters = record.find("parameters");
  if (parameters != record.end() && parameters->is_object()) {
    for (const char* field : {"bound", "series"})
      rename_text(*parameters, field);
    const auto word = parameters->find("certificate");
    if (word != parameters->end() && word->is_string())
      *word = present_certificate_word(word->get<std::string>());
  }
  const auto details = record.find("details");
  if (details != record.end() && details->is_object()) {
    rename_text(*details, "upper_whp_by");
    for (const char* field : {"certificates", "bounds_log10"})
      rename_keys(*details, field);
  }
}

}  // namespace lipscope
