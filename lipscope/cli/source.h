#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lipscope/attention/multi_head.h"

namespace lipscope::cli {

/// Where weights and tokens come from, as the user says it.
struct SourceOptions {
  std::string weights;  ///< FILE.safetensors with one layer
  std::string random;   ///< "d=768,heads=12": a layer made up
  Index num_heads = 0;
  std::string kind = "dot";
  CosineScales cosine;  ///< of kind cosine

  std::string input;    ///< X.npy
  std::string lengths;  ///< "2:100:2" or "8,32,128", of generated tokens
  Index samples = 1;
  std::string radius;  ///< of generated tokens: a number, or "ln"
  std::uint64_t seed = 0;
};

void declare_source(CLI::App& app, SourceOptions& options);

/// One attention layer, and how to speak of it.
struct Layer {
  AttentionWeights weights;
  Kind kind = Kind::dot;
  CosineScales cosine;
  std::string name;  ///< the file, or the recipe
  std::optional<std::string> sha256;
  Matrix x;  ///< the tokens that came with the weights, or empty
  /// What a layer norm before this layer lets through: its gain and bias, both
  /// empty where there is none.
  Vector norm_gain, norm_bias;
};

/// The layer that the options name. InputError if it is not to be had.
Layer load_layer(const SourceOptions& options);

/// One point at which something is measured.
struct Tokens {
  Matrix x;  ///< [n×d]
  Index sample = 0;
};

/// How to make the tokens of a sweep, one after the other: nothing is made
/// before it is asked for, so that a long sweep needs little memory.
class TokenSource {
 public:
  TokenSource(const SourceOptions& options, const Layer& layer);

  Index size() const;
  Tokens at(Index i) const;

 private:
  Matrix given_;  // if not empty, the one point
  std::vector<Index> lengths_;
  Index samples_ = 1, features_ = 0;
  std::optional<double> radius_;
  std::uint64_t seed_ = 0;
};

/// "a:b:s" (b left out), "a:b", or "a,b,c", as positive integers.
std::vector<Index> parse_lengths(const std::string& text);

Kind parse_kind(const std::string& name);

}  // namespace lipscope::cli
