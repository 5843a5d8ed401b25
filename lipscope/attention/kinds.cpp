#include "lipscope/attention/kinds.h"

#include <iterator>
#include <stdexcept>

namespace lipscope {

// each in the file of its name
extern const AttentionKind dot_kind, l2_kind, l2_untied_kind, cosine_kind,
    sigmoid_kind;

namespace {

constexpr const AttentionKind* table[] = {&dot_kind, &l2_kind, &l2_untied_kind,
                                          &cosine_kind, &sigmoid_kind};
static_assert(std::size(table) == std::size(all_kinds));

}  // namespace

const AttentionKind& kind_of(Kind kind) {
  for (const AttentionKind* entry : table)
    if (entry->kind == kind) return *entry;
  throw std::invalid_argument("kind_of: no such kind");
}

std::string name_of(Kind kind) { return std::string(kind_of(kind).name); }

}  // namespace lipscope
