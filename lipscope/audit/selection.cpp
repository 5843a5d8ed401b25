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
  } else if (c.position_heads > 0) {
    throw InputError(fmt::format(
        "--kind {}: {} has position heads, beside which no other kind is put; "
        "expected auto",
        name, subject.name));
  } else if (kind_of(c.kind).tied && s.kind != c.kind) {
    throw InputError(fmt::format(
        "--kind {}: {} has {} attention, whose queries are its keys; expected "
        "auto or {}",
        name, subject.name, c.kind_name(), name_of(c.kind)));
  }
}

// "BEFORE:AFTER"
void choose_padding(const std::string& text, MaskChoice& mask) {
  if (text.empty()) return;
  const std::vector<std::string> parts = split(text, ':');
  const auto wrong = [&] {
    return InputError(fmt::format(
        "--padding {}: expected BEFORE:AFTER, how many tokens at the beginning "
        "and at the end are padding, such as 0:3",
        text));
  };
  if (parts.size() != 2) throw wrong();
  try {
    mask.padding_before = parse_number<Index>(parts[0], "--padding");
    mask.padding_after = parse_number<Index>(parts[1], "--padding");
  } catch (const InputError&) {
    throw wrong();
  }
  // no sequence is as long
  constexpr Index most = Index{1} << 40;
  for (const Index count : {mask.padding_before, mask.padding_after})
    if (count < 0 || count > most) throw wrong();
}

void choose_mask(Selection& s, const SelectionOptions& o,
                 const Subject& subject) {
  if (o.mask == "causal")
    s.mask = Mask::causal;
  else if (o.mask == "none")
    s.mask = Mask::none;
  else if (o.mask != "auto")
    throw InputError(fmt::format(
        "--mask {}: expected none, causal or auto{}", o.mask,
        did_you_mean(o.mask, {"none", "causal", "auto"},
                     "windows and padding are --window and --padding")));
  if (o.window != 0) s.mask.window = o.window;
  choose_padding(o.padding, s.mask);
  set_masks(s, subject);
  if (!subject.model || subject.model->config.position_heads == 0) return;
  for (const Mask& mask : s.masks)
    if (mask != Mask::causal)
      throw InputError(fmt::format(
          "--mask, --window, --padding: {} has position heads, which look "
          "back; they have no other mask than causal",
          subject.name));
}

}  // namespace

void set_masks(Selection& s, const Subject& subject) {
  s.masks.clear();
  for (Index l = 0; l < subject.layers(); ++l)
    s.masks.push_back(s.mask.over(subject.mask(l)));
}

const Mask& Selection::mask_of(std::optional<Index> layer) const {
  return masks.at(static_cast<std::size_t>(layer.value_or(0)));
}

MaskChoice Selection::padding() const {
  MaskChoice only;
  only.padding_before = mask.padding_before;
  only.padding_after = mask.padding_after;
  return only;
}

void require_sound_masks(const std::vector<Mask>& masks,
                         const std::vector<Index>& lengths) {
  try {
    for (const Mask& mask : masks)
      for (const Index n : lengths) require_sound(mask, n);
  } catch (const std::invalid_argument& wrong) {
    throw InputError(fmt::format("--padding: {}", wrong.what()));
  }
}

std::string mask_name(const Selection& s, std::optional<Index> layer, Index n) {
  if (layer || s.masks.size() == 1)
    return name_of(at_length(s.mask_of(layer), n));
  // layers of a model differ by their windows alone
  const auto hides = [&](const Mask& mask) {
    return at_length(mask, n).window.has_value();
  };
  const auto windowed = std::find_if(s.masks.begin(), s.masks.end(), hides);
  if (windowed == s.masks.end()) return name_of(at_length(s.masks[0], n));
  const auto count = std::count_if(s.masks.begin(), s.masks.end(), hides);
  const std::string name = name_of(*windowed);
  if (count == static_cast<std::ptrdiff_t>(s.masks.size())) return name;
  return fmt::format("{} in {} of {} layers", name, count, s.masks.size());
}

Selection select(const SelectionOptions& o, const SourceOptions& source,
                 const Subject& subject) {
  Selection s;
  choose_kind(s, source.kind, subject);
  s.cosine = source.cosine;
  s.map = parse_map(o.map, subject);

  choose_mask(s, o, subject);
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
    if (subject.model && subject.model->config.position_heads > 0)
      throw InputError(fmt::format(
          "--heads {}: {} has position heads, beside which no head runs alone; "
          "expected all",
          o.heads, subject.name));
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
