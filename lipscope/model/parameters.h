#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lipscope/model/config.h"
#include "lipscope/model/weight_files.h"

namespace lipscope {

/// A tensor that a model has, by its Hugging Face name without the prefix of
/// the model's class ("h.0.ln_1.weight", not "transformer.h.0.ln_1.weight").
struct TensorSpec {
  std::string name;
  TensorShape shape;
};

/// The tensors of a model in the memory of whoever has it, by their Hugging
/// Face names. They are viewed and not copied.
struct TensorsInMemory {
  std::map<std::string, TensorView, std::less<>> tensors;
  std::string sha256;  ///< of their content, as their owner counts it
  std::shared_ptr<const void> owner = {};  ///< keeps the numbers where they are
};

/// Where the numbers of a model come from, one tensor at a time: a folder, the
/// memory of a caller, or a random initialisation.
///
/// Folder and memory: the name is looked for with and without the prefix of the
/// family (`transformer.`, `bert.`, `model.`), and BERT's LayerNorm.weight and
/// .bias also under their old names gamma and beta. In a folder of
/// `lipscope train` what has one axis is a matrix of one row.
///
/// Random, as the models begin their training: matrices and embeddings normal
/// with deviation 0.02, GPT-2's projections back into the residual stream
/// (c_proj) divided by √(2·layers), gains 1, biases 0. A row of a tensor
/// depends on the seed, the name and its number alone, so that any part can be
/// drawn by itself.
class Parameters {
 public:
  Parameters(WeightFiles files, Architecture architecture);
  Parameters(std::shared_ptr<const TensorsInMemory> memory,
             Architecture architecture);
  Parameters(const ModelConfig& config, std::uint64_t seed);

  bool contains(std::string_view name) const;

  /// The whole tensor; of one axis: as a row. The pages of the file that it was
  /// read from are let go. InputError if it is not there or has another shape,
  /// with both.
  Matrix matrix(const TensorSpec& tensor) const;

  /// Rows [begin, begin + count) of a tensor of two axes.
  template <class Real>
  MatrixOf<Real> rows(const TensorSpec& tensor, Index begin, Index count) const;

  /// The folder, "in memory", or "random gpt2, seed 0", for messages.
  std::string source() const;

  /// Of the weights' file (see WeightFiles), or of those in memory; nothing if
  /// they are random.
  std::optional<std::string> sha256(
      const WeightFiles::BytesRead& read = {}) const;

 private:
  bool random() const { return !files_ && !memory_; }
  bool has(const std::string& full_name) const;  ///< of folder or memory
  /// As the folder or the caller spells it; nothing if it is not there.
  std::optional<std::string> stored_name(std::string_view name) const;
  TensorView checked_view(const TensorSpec& tensor) const;
  Matrix random_rows(const TensorSpec& tensor, Index begin, Index count) const;

  Architecture architecture_;
  std::optional<WeightFiles> files_;               // or
  std::shared_ptr<const TensorsInMemory> memory_;  // or random:
  std::uint64_t seed_ = 0;
  Index layers_ = 0;
};

}  // namespace lipscope
