#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "lipscope/attention/kinds.h"
#include "lipscope/attention/multi_head.h"
#include "lipscope/core/rng.h"

/// Random attention layers of every make, for tests that must hold for all.
namespace lipscope::test {

struct LayerCase {
  Kind kind = Kind::dot;
  Mask mask = Mask::none;
  Index heads = 1;
  bool fills = true;  ///< the heads' widths add up to the model's
  bool biases = false;
  bool output = true;
  std::uint64_t seed = 0;

  Index n = 5, d = 12;
  Index key_heads = 0;
  bool rope = false;
  bool weighed = false;  ///< unequal masses, and tokens that see prefixes

  std::string name() const {
    return name_of(kind) + " mask " + name_of(mask) + " heads " +
           std::to_string(heads) + (fills ? " filling" : " narrow") +
           (biases ? " biased" : "") + (output ? " projected" : "") +
           (key_heads > 0 ? " keys " + std::to_string(key_heads) : "") +
           (rope ? " rotated" : "") + (weighed ? " weighed" : "") + " seed " +
           std::to_string(seed);
  }
};

/// Every kind, mask, number of heads from 1 to 4, width, bias and projection.
inline std::vector<LayerCase> all_layer_cases() {
  std::vector<LayerCase> cases;
  for (const Kind kind : all_kinds)
    for (const Mask mask : {Mask::none, Mask::causal})
      for (const Index heads : {1, 2, 3, 4})
        for (const bool fills : {true, false})
          for (const bool biases : {false, true})
            for (const bool output : {true, false})
              cases.push_back(
                  {kind, mask, heads, fills, biases, output, cases.size()});
  return cases;
}

/// Heads that share keys and values, rotary positions, and both.
inline std::vector<LayerCase> grouped_and_rotated_cases() {
  std::vector<LayerCase> cases;
  for (const Kind kind : all_kinds)
    for (const Mask mask : {Mask::none, Mask::causal})
      for (const Index key_heads : {0, 1, 2})
        for (const bool rope : {false, true}) {
          if ((key_heads == 0 && !rope) ||
              (rope && !kind_of(kind).no_rope.empty()))
            continue;
          cases.push_back({.kind = kind,
                           .mask = mask,
                           .heads = 4,
                           .biases = true,
                           .output = key_heads != 1,
                           .seed = cases.size(),
                           .d = 16,
                           .key_heads = key_heads,
                           .rope = rope});
        }
  return cases;
}

/// Tokens with masses: plain, and with what each sees told apart from the mask.
inline std::vector<LayerCase> weighed_cases() {
  std::vector<LayerCase> cases;
  for (const Kind kind : all_kinds)
    for (const Mask mask : {Mask::none, Mask::causal})
      for (const Index heads : {1, 3})
        if (kind_of(kind).shares())
          cases.push_back({.kind = kind,
                           .mask = mask,
                           .heads = heads,
                           .biases = heads > 1,
                           .seed = cases.size(),
                           .weighed = true});
  return cases;
}

/// Windows and padding: of one token, of a few, wider than the sequence; alone
/// and together, causal and not.
inline std::vector<Mask> windowed_and_padded_masks() {
  return {{.window = 1},
          {.window = 2},
          {.window = 3},
          {.window = 9},
          {.hides_later = true, .window = 1},
          {.hides_later = true, .window = 2},
          {.hides_later = true, .window = 3},
          {.hides_later = true, .window = 9},
          {.padding_before = 2},
          {.padding_after = 2},
          {.padding_before = 1, .padding_after = 2},
          {.hides_later = true, .padding_after = 2},
          {.window = 3, .padding_before = 1, .padding_after = 2},
          {.hides_later = true, .window = 3, .padding_after = 2}};
}

/// Every kind under each of them, of one head and of several, with rotary
/// positions where they can be.
inline std::vector<LayerCase> masked_cases() {
  std::vector<LayerCase> cases;
  for (const Kind kind : all_kinds)
    for (const Mask& mask : windowed_and_padded_masks())
      for (const Index heads : {1, 2})
        cases.push_back({.kind = kind,
                         .mask = mask,
                         .heads = heads,
                         .fills = heads > 1,
                         .biases = true,
                         .output = cases.size() % 3 != 0,
                         .seed = cases.size(),
                         .n = 7,
                         .rope = heads > 1 && kind_of(kind).no_rope.empty()});
  return cases;
}

/// Whether each token sees itself alone: a softmax then has nothing to weigh.
inline bool sees_only_itself(const Mask& mask) {
  return mask.window && *mask.window == 1;
}

inline AttentionWeights random_layer(const LayerCase& c) {
  const Rng rng(c.seed + 1);
  const Index d = c.d;
  // widths that do not fill the model, and differ between q and v
  const Index k = c.fills ? d / c.heads : 5, w = c.fills ? d / c.heads : 3;
  const auto bias = [&](Index size, std::uint64_t stream) {
    return c.biases ? Vector(flatten(gaussian(1, size, rng.split(stream))))
                    : Vector();
  };
  const double scale = 1.0 / std::sqrt(static_cast<double>(d));

  AttentionWeights layer;
  layer.heads = c.heads;
  layer.key_heads = c.key_heads;
  const Index groups = layer.groups();
  layer.query = scale * gaussian(d, c.heads * k, rng.split(0));
  layer.query_bias = bias(c.heads * k, 4);
  if (!kind_of(c.kind).tied) {
    layer.key = scale * gaussian(d, groups * k, rng.split(1));
    layer.key_bias = bias(groups * k, 5);
  }
  layer.value = scale * gaussian(d, groups * w, rng.split(2));
  layer.value_bias = bias(groups * w, 6);
  if (c.output) {
    layer.output = scale * gaussian(c.heads * w, d, rng.split(3));
    layer.output_bias = bias(d, 7);
  }
  return layer;
}

inline Matrix random_tokens(const LayerCase& c, double size = 1.0) {
  return size * gaussian(c.n, c.d, Rng(c.seed + 1).split(8));
}

inline AttentionOptions options_of(const LayerCase& c) {
  // a small base, so that every plane of a narrow head turns
  AttentionOptions o{
      .kind = c.kind,
      .mask = c.mask,
      .rope = c.rope ? std::optional(Rotary{.theta = 50.0}) : std::nullopt};
  if (c.weighed) {
    o.log_mass = 2.0 * gaussian(c.n, 1, Rng(c.seed + 1).split(9));
    // two that share a place, and a last one that nobody sees
    if (c.mask == Mask::causal)
      for (Index i = 0; i < c.n; ++i)
        o.seen.push_back(std::min(i + i % 2 + 1, c.n - 1));
  }
  return o;
}

}  // namespace lipscope::test
