#include "lipscope/model/parameters.h"

#include <cmath>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"
#include "lipscope/io/json_text.h"
#include "lipscope/io/mapped_file.h"
#include "lipscope/model/family.h"

namespace lipscope {
namespace {

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

Parameters::Parameters(std::shared_ptr<const TensorsInMemory> memory,
                       Architecture architecture)
    : architecture_(architecture), memory_(std::move(memory)) {
  require(memory_ != nullptr, "parameters: there are no tensors in memory");
}

Parameters::Parameters(const ModelConfig& config, std::uint64_t seed)
    : architecture_(config.architecture), seed_(seed), layers_(config.layers) {}

bool Parameters::has(const std::string& full_name) const {
  return files_ ? files_->contains(full_name)
                : memory_->tensors.contains(full_name);
}

std::optional<std::string> Parameters::stored_name(
    std::string_view name) const {
  for (const auto& spelling :
       {std::optional(std::string(name)), old_name(name)}) {
    if (!spelling) continue;
    for (const std::string& prefix : family_of(architecture_).prefixes)
      if (has(prefix + *spelling)) return prefix + *spelling;
    if (has(*spelling)) return *spelling;
  }
  return std::nullopt;
}

bool Parameters::contains(std::string_view name) const {
  return random() || stored_name(name).has_value();
}

TensorView Parameters::checked_view(const TensorSpec& tensor) const {
  const std::optional<std::string> name = stored_name(tensor.name);
  if (!name)
    throw InputError(fmt::format("{}: no tensor is called {}", source(),
                                 printable(tensor.name)));
  TensorView view = files_ ? files_->file_of(*name).view(*name)
                           : memory_->tensors.find(*name)->second;
  // training writes a row as a matrix of one
  TensorShape stored = view.shape;
  if (architecture_ == Architecture::lipscope && tensor.shape.size() == 1 &&
      stored.size() == 2 && stored[0] == 1)
    stored.erase(stored.begin());
  if (stored != tensor.shape)
    throw InputError(fmt::format(
        "{}: has shape {}, the configuration makes it {}", view.place,
        to_string(view.shape), to_string(tensor.shape)));
  return view;
}

Matrix Parameters::matrix(const TensorSpec& tensor) const {
  if (random())
    return random_rows(tensor, 0,
                       tensor.shape.size() == 2 ? tensor.shape[0] : 1);
  const TensorView view = checked_view(tensor);
  Matrix m = matrix_of<double>(view);
  if (files_) release_pages(view.bytes);
  return m;
}

template <class Real>
MatrixOf<Real> Parameters::rows(const TensorSpec& tensor, Index begin,
                                Index count) const {
  if (random()) return random_rows(tensor, begin, count).cast<Real>();
  return rows_of<Real>(checked_view(tensor), begin, count);
}

Matrix Parameters::random_rows(const TensorSpec& tensor, Index begin,
                               Index count) const {
  const Index cols = tensor.shape.back();
  const Family& family = family_of(architecture_);
  if (tensor.shape.size() == 1) {
    // of a norm whose gain is 1 + what is stored, this is 0
    const bool one = tensor.name.ends_with(".weight") &&
                     family.usual.norm_form != NormForm::rms_one_plus;
    return Matrix::Constant(1, cols, one ? 1.0 : 0.0);
  }
  double deviation = 0.02;
  if (!family.shrunk.empty() && tensor.name.ends_with(family.shrunk))
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
  if (files_) return files_->folder().string();
  return memory_
             ? "in memory"
             : fmt::format("random {}, seed {}", name_of(architecture_), seed_);
}

std::optional<std::string> Parameters::sha256(
    const WeightFiles::BytesRead& read) const {
  if (files_) return files_->sha256(read);
  return memory_ ? std::optional(memory_->sha256) : std::nullopt;
}

template MatrixOf<float> Parameters::rows(const TensorSpec&, Index,
                                          Index) const;
template MatrixOf<double> Parameters::rows(const TensorSpec&, Index,
                                           Index) const;

}  // namespace lipscope
