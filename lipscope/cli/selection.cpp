#include "lipscope/cli/selection.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "lipscope/core/errors.h"

namespace lipscope::cli {
namespace {

std::vector<std::optional<Index>> parse_heads(const std::string& text,
                                              Index count) {
  std::vector<std::optional<Index>> heads;
  if (text == "all") return {std::nullopt};
  if (text == "each") {
    for (Index h = 0; h < count; ++h) heads.push_back(h);
    return heads;
  }
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    Index h = -1;
    const char* end = part.data() + part.size();
    const auto read = std::from_chars(part.data(), end, h);
    if (read.ec != std::errc() || read.ptr != end || h < 0 || h >= count)
      throw InputError(
          fmt::format("--heads {}: expected all, each, or numbers from 0 to {}",
                      text, count - 1));
    if (std::find(heads.begin(), heads.end(), h) != heads.end())
      throw InputError(fmt::format("--heads {}: {} stands twice", text, h));
    heads.push_back(h);
  }
  if (heads.empty())
    throw InputError("--heads: expected all, each, or a list of numbers");
  return heads;
}

}  // namespace

void declare_selection(CLI::App& app, SelectionOptions& o) {
  const char* group = "What is measured";
  app.add_option("--map", o.map,
                 "attn: tokens to the output of W_O; core: tokens to the heads "
                 "end to end, before W_O")
      ->capture_default_str()
      ->group(group);
  app.add_option("--heads", o.heads,
                 "all together, each by itself, or these: 0,3,5")
      ->capture_default_str()
      ->group(group);
  app.add_option("--mask", o.mask, "none, causal, or auto (none for a layer)")
      ->capture_default_str()
      ->group(group);
  app.add_option("--norm", o.norm,
                 "2: of the whole sequence; inf: of its largest entry")
      ->capture_default_str()
      ->group(group);
}

Selection select(const SelectionOptions& o, const Layer& layer) {
  Selection s;
  if (o.map == "residual" || o.map == "block" || o.map == "model")
    throw InputError(fmt::format(
        "--map {}: a single layer has no residual, MLP or norm around it; "
        "expected attn or core",
        o.map));
  if (o.map != "attn" && o.map != "core")
    throw InputError(fmt::format("--map {}: expected attn or core", o.map));
  s.project = o.map == "attn";

  if (o.mask == "causal")
    s.mask = Mask::causal;
  else if (o.mask != "none" && o.mask != "auto")
    throw InputError(fmt::format(
        "--mask {}: expected none, causal or auto; padding and sliding-window "
        "masks are not supported",
        o.mask));

  if (o.norm == "token")
    throw InputError(
        "--norm token: the token norm of a Jacobian has no formula and is not "
        "measured; expected 2 or inf");
  if (o.norm != "2" && o.norm != "inf")
    throw InputError(fmt::format("--norm {}: expected 2 or inf", o.norm));
  s.norm = o.norm;
  s.heads = parse_heads(o.heads, layer.weights.heads);
  return s;
}

}  // namespace lipscope::cli
