#include "lipscope/attention/mask.h"

#include <fmt/format.h>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

// Far from both ends a window shows every token the same: so many tokens have
// one of each sort.
Index as_many_as_differ(const Mask& mask, Index n) {
  return std::min(n,
                  4 * *mask.window + mask.padding_before + mask.padding_after);
}

}  // namespace

Index most_visible(const Mask& mask, Index n) {
  if (!mask.window) return visible(mask, n - 1, n).size();
  n = as_many_as_differ(mask, n);
  Index most = 0;
  for (Index i = 0; i < n; ++i)
    most = std::max(most, visible(mask, i, n).size());
  return most;
}

Index most_seeing(const Mask& mask, Index n) {
  if (!mask.window) return seeing(mask, mask.padding_before, n).size();
  n = as_many_as_differ(mask, n);
  Index most = 0;
  for (Index j = 0; j < n; ++j)
    most = std::max(most, seeing(mask, j, n).size());
  return most;
}

Mask at_length(Mask mask, Index n) {
  if (mask.window && *mask.window >= n) mask.window.reset();
  return mask;
}

std::string name_of(const Mask& mask) {
  std::string name = mask.hides_later ? "causal" : "";
  const auto add = [&](const std::string& part) {
    name += (name.empty() ? "" : ", ") + part;
  };
  if (mask.window) add(fmt::format("window {}", *mask.window));
  if (mask.padding_before > 0 || mask.padding_after > 0)
    add(fmt::format("padding {} before and {} after", mask.padding_before,
                    mask.padding_after));
  return name.empty() ? "none" : name;
}

void require_sound(const Mask& mask, Index n) {
  require(!mask.window || *mask.window >= 1, "mask: a window of {} tokens",
          mask.window.value_or(0));
  require(mask.padding_before >= 0 && mask.padding_after >= 0 &&
              mask.padding_before + mask.padding_after < n,
          "mask: {} tokens, of which {} before and {} after are padding", n,
          mask.padding_before, mask.padding_after);
  // how many tokens i sees is the least of a few numbers that are linear in i,
  // so that the first token or the last one sees fewest
  for (const Index i : {Index{0}, n - 1})
    require(visible(mask, i, n).size() >= 1,
            "mask: token {} of {} sees no token ({})", i, n, name_of(mask));
}

}  // namespace lipscope
