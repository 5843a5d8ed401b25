#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lipscope/attention/multi_head.h"
#include "lipscope/audit/radius.h"
#include "lipscope/io/number_format.h"

namespace lipscope {
struct ModelInMemory;
}

namespace lipscope::audit {

struct LoneLayer;

/// Where weights and tokens come from, as the user says it.
struct SourceOptions {
  std::string model;    ///< MODEL_DIR, a Hugging Face folder
  std::string weights;  ///< FILE.safetensors with one layer
  std::string random;   ///< "gpt2", "bert", or "d=768,heads=12": made up
  /// A layer or a model in memory, in place of the three above.
  std::shared_ptr<const LoneLayer> layer = {};
  std::shared_ptr<const ModelInMemory> model_in_memory = {};
  Index num_heads = 0;
  std::string kind = "auto";  ///< "auto": the model's own; of a layer, dot
  CosineScales cosine;        ///< of kind cosine

  std::string input;  ///< X.npy
  /// Tokens in memory, in place of `input`.
  std::shared_ptr<const Matrix> tokens = {};
  /// X.npy, the input of layer 0 of a model; or the same in memory.
  std::string embedded = {};
  std::shared_ptr<const Matrix> embedded_tokens = {};
  std::string text, ids;  ///< files, for a model
  /// Token ids in memory, in place of `ids`.
  std::vector<Index> token_ids = {};
  std::string lengths;  ///< "2:100:2" or "8,32,128"
  Index samples = 0;    ///< of each length; 0: 10 of a text, 1 otherwise
  Index offset = 0;     ///< tokens of the text that are skipped
  /// Of generated tokens, or of all that a bound or a search speaks of.
  std::optional<Radius> radius;
  /// Of the pass through a model: f32 or f64.
  NumberFormat dtype = NumberFormat::f32;
  std::uint64_t seed = 0;
  /// All layers of a model stay in memory if their weights in f64 take fewer
  /// bytes than this; otherwise one at a time does. Numbers do not depend on
  /// it.
  double layer_memory = 1e9;
};

/// Whether the tokens are given as numbers, in a file or in memory.
bool gives_tokens(const SourceOptions& options);

/// Whether the input of layer 0 is given, in a file or in memory.
bool gives_embedded(const SourceOptions& options);

/// Whether they are given as a text or as ids, in a file or in memory.
bool gives_text(const SourceOptions& options);

/// The name of the text, or of the list of ids, for messages.
std::string text_name(const SourceOptions& options);

/// "a:b:s" (b left out), "a:b", or "a,b,c", as positive integers.
std::vector<Index> parse_lengths(const std::string& text);

/// Those of a source; 128 where it says none.
std::vector<Index> lengths_of(const SourceOptions& options);

/// "auto" is dot: what a layer by itself has.
Kind parse_kind(const std::string& name);

/// What --kind takes: auto and the names of all kinds.
std::vector<std::string> kind_words();

/// "a, b or c", of at least one word.
std::string listed(const std::vector<std::string>& words);

/// InputError, beginning with `where`, for what is no number from end to end.
template <class Number>
Number parse_number(const std::string& text, const std::string& where);

std::vector<std::string> split(const std::string& text, char by);

}  // namespace lipscope::audit
