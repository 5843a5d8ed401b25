#include "lipscope/model/model.h"

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

std::vector<std::string> missing_of(const Model& model,
                                    const std::vector<Module>& modules) {
  std::vector<std::string> missing;
  for (const Module& module : modules)
    for (const TensorSpec& tensor : tensors_of(module))
      if (!model.parameters.contains(tensor.name))
        missing.push_back(tensor.name);
  return missing;
}

void refuse_missing(const Model& model, const std::vector<std::string>& missing,
                    const std::string& purpose) {
  if (missing.empty()) return;
  constexpr std::size_t most = 6;
  std::string list;
  for (std::size_t i = 0; i < missing.size() && i < most; ++i)
    list += (i == 0                    ? "no "
             : i + 1 == missing.size() ? " and no "
                                       : ", no ") +
            missing[i];
  if (missing.size() > most)
    list += fmt::format(" and {} more are missing", missing.size() - most);
  throw InputError(fmt::format("{}: {}; {} needs {}", model.parameters.source(),
                               list, purpose,
                               missing.size() == 1 ? "it" : "them"));
}

}  // namespace

Model load_model(const std::filesystem::path& folder) {
  std::error_code unreadable;
  if (!std::filesystem::is_directory(folder, unreadable))
    throw InputError(fmt::format("{}: no such folder", folder.string()));
  const ModelConfig config = read_model_config(folder / "config.json");
  return {config, Parameters(WeightFiles(folder), config.architecture)};
}

Model load_model(const ModelInMemory& memory) {
  require_sound(memory.config);
  return {memory.config,
          Parameters(memory.tensors, memory.config.architecture)};
}

Model random_model(const ModelConfig& config, std::uint64_t seed) {
  require_sound(config);
  return {config, Parameters(config, seed)};
}

std::vector<std::string> missing_tensors(const Model& model) {
  OuterModules outer = outer_modules(model.config);
  outer.head.reset();  // no part of the map
  std::vector<std::string> missing = missing_of(model, modules_of(outer));

  // layer by layer in each row of the table: all at once where all are missing
  std::vector<std::vector<TensorSpec>> layers;
  const auto tensors = [](const LayerModules& layer) {
    std::vector<TensorSpec> all;
    for (const Module& module : modules_of(layer))
      for (TensorSpec& tensor : tensors_of(module))
        all.push_back(std::move(tensor));
    return all;
  };
  for (Index l = 0; l < model.config.layers; ++l)
    layers.push_back(tensors(layer_modules(model.config, l)));
  const std::vector<TensorSpec> any = tensors(layer_modules(model.config, "*"));
  for (std::size_t t = 0; t < any.size(); ++t) {
    std::vector<std::string> of_layers;
    std::size_t have = 0;  // layers that should have it
    for (const auto& layer : layers) {
      // a layer without the first norm has none of its tensors, which are first
      const std::size_t left_out = any.size() - layer.size();
      if (t < left_out) continue;
      ++have;
      if (!model.parameters.contains(layer[t - left_out].name))
        of_layers.push_back(layer[t - left_out].name);
    }
    if (of_layers.size() == have) of_layers = {any[t].name};
    missing.insert(missing.end(), of_layers.begin(), of_layers.end());
  }
  return missing;
}

void require_complete(const Model& model) {
  refuse_missing(model, missing_tensors(model), "a pass from tokens");
}

void require_next_token(const Model& model) {
  if (has_head(model.config)) return;
  throw InputError(fmt::format(
      "{}: a {} model has no head that predicts the next token; {}, {} and "
      "what lipscope train makes do",
      model.parameters.source(), name_of(model.config.architecture),
      name_of(Architecture::gpt2), name_of(Architecture::llama)));
}

void require_tensors(const Model& model, const std::vector<Module>& modules,
                     const std::string& purpose) {
  refuse_missing(model, missing_of(model, modules), purpose);
}

}  // namespace lipscope
