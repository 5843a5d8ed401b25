#include "lipscope/model/parameters.h"

#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"
#include "lipscope/io/json_text.h"

namespace lipscope {
namespace {

std::string prefix_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::gpt2:
      return "transformer.";
    case Architecture::bert:
      return "bert.";
    case Architecture::llama:
      return "model.";
    case Architecture::lipscope:
      return "";
  }
  throw std::invalid_argument("model: no such architecture");
}

// "….LayerNorm.weight" → "….LayerNorm.gamma"
std::optional<std::string> old_name(std::string_view name) {
  const auto renamed = [&](std::string_view from, std::string_view to) {
    return name.ends_with(from)
               ? std::optional(
                     std::string(name.substr(0, name.size() - from.size())) +
                     std::string(to))
               : std::nullopt;
  };
  if (const auto gain = renamed("LayerNorm.weight", "LayerNorm.gamma"))
    return gain;
  return renamed("LayerNorm.bias", "LayerNorm.beta");
}

// FNV-1a: a number for a name, the same everywhere
std::uint64_t number_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace

Parameters::Parameters(WeightFiles files, Architecture architecture)
    : architecture_(architecture), files_(std::move(files)) {}

Parameters::Parameters(const ModelConfig& config, std::uint64_t seed)
    : architecture_(config.architecture), seed_(seed), layers_(config.layers) {}

std::optional<std::string> Parameters::stored_name(
    std::string_view name) const {
  const std::string prefix = prefix_of(architecture_);
  for (const auto& spelling :
       {std::optional(std::string(name)), old_name(name)})
    if (spelling)
      for (const std::string& full : {prefix + *spelling, *spelling})
        if (files_->contains(full)) return full;
  return std::nullopt;
}

bool Parameters::contains(std::string_view name) const {
  return !files_ || stored_name(name).has_value();
}

std::string Parameters::checked_name(const TensorSpec& tensor) const {
  const std::optional<std::string> name = stored_name(tensor.name);
  if (!name)
    throw InputError(fmt::format("{}: no tensor is called {}", source(),
                                 printable(tensor.name)));
  const SafetensorsFile& file = files_->file_of(*name);
  // training writes a row as a matrix of one
  TensorShape stored = file.shape(*name);
  if (architecture_ == Architecture::lipscope && tensor.shape.size() == 1 &&
      stored.size() == 2 && stored[0] == 1)
    stored.erase(stored.begin());
  if (stored != tensor.shape)
    throw InputError(fmt::format(
        "{}: tensor {}: has shape {}, the configuration makes it {}",
        file.path().string(), printable(*name), to_string(file.shape(*name)),
        to_string(tensor.shape)));
  return *name;
}

Matrix Parameters::matrix(const TensorSpec& tensor) const {
  if (!files_)
    return random_rows(tensor, 0,
                       tensor.shape.size() == 2 ? tensor.shape[0] : 1);
  const std::string name = checked_name(tensor);
  return files_->file_of(name).matrix(name);
}

template <class Real>
MatrixOf<Real> Parameters::rows(const TensorSpec& tensor, Index begin,
                                Index count) const {
  if (!files_) return random_rows(tensor, begin, count).cast<Real>();
  const std::string name = checked_name(tensor);
  return files_->file_of(name).rows_as<Real>(name, begin, count);
}

Matrix Parameters::random_rows(const TensorSpec& tensor, Index begin,
                               Index count) const {
  const Index cols = tensor.shape.back();
  if (tensor.shape.size() == 1)
    return Matrix::Constant(1, cols,
                            tensor.name.ends_with(".weight") ? 1.0 : 0.0);
  double deviation = 0.02;
  if (architecture_ == Architecture::gpt2 &&
      tensor.name.ends_with("c_proj.weight"))
    deviation /= std::sqrt(2.0 * static_cast<double>(layers_));
  const Rng rng = Rng(seed_).split(number_of(tensor.name));
  Matrix rows(count, cols);
  for (Index i = 0; i < count; ++i)
    rows.row(i) =
        deviation *
        gaussian(1, cols, rng.split(static_cast<std::uint64_t>(begin + i)));
  return rows;
}

std::string Parameters::source() const {
  return files_
             ? files_->folder().string()
             : fmt::format("random {}, seed {}", name_of(architecture_), seed_);
}

std::optional<std::string> Parameters::sha256() const {
  if (!files_) return std::nullopt;
  return files_->sha256();
}

template MatrixOf<float> Parameters::rows(const TensorSpec&, Index,
                                          Index) const;
template MatrixOf<double> Parameters::rows(const TensorSpec&, Index,
                                           Index) const;

}  // namespace lipscope
