#include "lipscope/audit/selection.h"

#include <algorithm>

#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/nearest_word.h"

namespace lipscope::audit {
namespace {

// "all" is answered by the caller; "each" by every number below count
std::vector<std::optional<Index>> parse_list(const std::string& text,
                                             const std::string& option,
                                             const std::string& words,
                                             Index count) {
  std::vector<std::optional<Index>> list;
  for (const std::string& part : split(text, ',')) {
    Index i = -1;
    try {
      i = parse_number<Index>(part, option);
    } catch (const InputError&) {
    }
    if (i < 0 || i >= count)
      throw InputError(
          fmt::format("{} {}: expected {}, or numbers from 0 to "
                      "{}",
                      option, text, words, count - 1));
    if (std::find(list.begin(), list.end(), i) != list.end())
      throw InputError(fmt::format("{} {}: {} stands twice", option, text, i));
    list.push_back(i);
  }
  return list;
}

std::vector<std::optional<Index>> each(Index count) {
  std::vector<std::optional<Index>> all;
  for (Index i = 0; i < count; ++i) all.push_back(i);
  return all;
}

MapName parse_map(const std::string& name, const Subject& subject) {
  for (const MapName map : {MapName::core, MapName::attn, MapName::residual,
                            MapName::block, MapName::model}) {
    if (name != name_of(map)) continue;
    if (subject.layer && map != MapName::core && map != MapName::attn)
      throw InputError(fmt::format(
          "--map {}: a single layer has no residual, MLP or norm around it; "
          "expected attn or core",
          name));
    return map;
  }
  throw InputError(fmt::format(
      "--map {}: expected {}{}", name,
      subject.layer ? "attn or core" : "core, attn, residual, block or model",
      did_you_mean(name, {"attn", "core", "residual", "block", "model"})));
}

// Tied L2 attention has no keys of its own: what another kind would compare is
// not there. Of other models every kind takes what it needs.
void choose_kind(Selection& s, const std::string& name,
                 const Subject& subject) {
  s.kind = parse_kind(name);
  s.kind_name = name_of(s.kind);
  if (!subject.model) return;
  const ModelConfig& c = subject.model->config;
  if (name == "auto") {
    s.kind = c.kind;
    s.kind_name = c.kind_name();
  } else if (kind_of(c.kind).tied && s.kind != c.kind) {
    throw InputError(fmt::format(
        "--kind {}: {} has {} attention, whose queries are its keys; expected "
        "auto or {}",
        name, subject.name, c.kind_name(), name_of(c.kind)));
  }
}

}  // namespace

Selection select(const SelectionOptions& o, const SourceOptions& source,
                 const Subject& subject) {
  Selection s;
  choose_kind(s, source.kind, subject);
  s.cosine = source.cosine;
  s.map = parse_map(o.map, subject);

  if (o.mask == "auto")
    s.mask = subject.mask();
  else if (o.mask == "causal")
    s.mask = Mask::causal;
  else if (o.mask != "none")
    throw InputError(
        fmt::format("--mask {}: expected none, causal or auto{}", o.mask,
                    did_you_mean(o.mask, {"none", "causal", "auto"},
                                 "padding and sliding-window masks are not "
                                 "supported")));

  s.norm = o.norm;

  s.layers = {std::nullopt};
  if (subject.layer && o.layers != "all")
    throw InputError(
        fmt::format("--layers {}: {} is one layer", o.layers, subject.name));
  if (subject.model && s.map == MapName::model && o.layers != "all")
    throw InputError(
        fmt::format("--layers {}: --map model is all of them", o.layers));
  if (subject.model && s.map != MapName::model)
    s.layers = o.layers == "all"
                   ? each(subject.layers())
                   : parse_list(o.layers, "--layers", "all", subject.layers());

  s.heads = {std::nullopt};
  if (o.heads != "all") {
    if (s.map != MapName::core && s.map != MapName::attn)
      throw InputError(fmt::format("--heads {}: --map {} has all heads in it",
                                   o.heads, o.map));
    s.heads = o.heads == "each" ? each(subject.heads())
                                : parse_list(o.heads, "--heads", "all, each",
                                             subject.heads());
  }
  return s;
}

ModelMapOptions map_options(const Selection& s, std::optional<Index> head) {
  return {.kind = s.kind,
          .mask = s.mask,
          .heads = head ? std::vector<Index>{*head} : std::vector<Index>{},
          .cosine = s.cosine};
}

}  // namespace lipscope::audit
