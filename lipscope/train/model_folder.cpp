#include "lipscope/train/model_folder.h"

#include <fmt/format.h>

#include <map>
#include <span>

#include "lipscope/core/errors.h"
#include "lipscope/core/version.h"
#include "lipscope/io/atomic_file.h"
#include "lipscope/io/json_text.h"
#include "lipscope/io/safetensors.h"
#include "lipscope/io/sha256.h"
#include "lipscope/io/text_file.h"
#include "lipscope/train/state_file.h"

namespace lipscope {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

void write_text(const fs::path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

void collect(std::map<std::string, Matrix>& tensors, const Layout& layout,
             const std::string& prefix, const VectorOf<float>& buffer) {
  for (const Layout::Tensor& t : layout.tensors())
    tensors[prefix + t.name] = tensor(buffer, t.slot).cast<double>();
}

VectorOf<float> read_buffer(const SafetensorsFile& file, const Layout& layout,
                            const std::string& prefix) {
  VectorOf<float> buffer(layout.size());
  for (const Layout::Tensor& t : layout.tensors()) {
    const MatrixOf<float> m = file.matrix_as<float>(prefix + t.name);
    if (m.rows() != t.slot.rows || m.cols() != t.slot.cols)
      throw InputError(
          fmt::format("{}: {} is [{}, {}]; the model has [{}, {}] there",
                      file.path().string(), prefix + t.name, m.rows(), m.cols(),
                      t.slot.rows, t.slot.cols));
    tensor(buffer, t.slot) = m;
  }
  return buffer;
}

}  // namespace

void write_description(const fs::path& folder,
                       const ModelDescription& description) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw InputError(fmt::format("{}: the folder cannot be made: {}",
                                 folder.string(), error.message()));
  const LanguageModelConfig& c = description.config;
  ordered_json characters = ordered_json::array();
  for (const char32_t code : description.vocabulary.characters())
    characters.push_back(static_cast<std::uint32_t>(code));
  ordered_json json = {{"model_type", "lipscope"},
                       {"lipscope_version", version()},
                       {"mixer", name_of(c.mixer)},
                       {"num_layers", c.layers},
                       {"width", c.width}};
  if (c.mixer != Mixer::lstm) {
    json["num_heads"] = c.heads;
    json["mlp_width"] = c.hidden;
    json["activation"] = name_of(c.activation);
    json["norm"] = name_of(c.norm);
    json["position_heads"] = c.position_heads;
    json["heads_apart"] = c.heads_apart;
    json["positions"] = name_of(c.positions);
    json["residual"] = name_of(c.join);
    if (c.join == Join::convex) json["residual_share"] = c.join_share;
    json["head_bias"] = c.head_bias;
    if (c.division != Division::layer) json["division"] = name_of(c.division);
    if (c.contraction) json["contraction"] = *c.contraction;
  }
  json["context"] = c.context;
  json["characters"] = std::move(characters);
  json["training"] = description.training;
  write_text(folder / "config.json", json.dump(2) + "\n");
}

ModelDescription read_description(const fs::path& folder) {
  const fs::path path = folder / "config.json";
  const std::string text = read_text_file(path, largest_config);
  ModelDescription d;
  d.config = parse_language_model_config(text, path.string());
  d.vocabulary = parse_vocabulary(path.string(), text);
  const nlohmann::json json = parse_json(path.string(), text);
  if (!json.contains("training") || !json["training"].is_object())
    throw InputError(fmt::format("{}: no training, an object", path.string()));
  d.training = parse_ordered_json(path.string(), json["training"].dump());
  return d;
}

void write_weights(const fs::path& file, const Layout& layout,
                   const VectorOf<float>& weights) {
  std::map<std::string, Matrix> tensors;
  collect(tensors, layout, "", weights);
  write_safetensors(file, tensors, "F32");
}

VectorOf<float> read_weights(const fs::path& file, const Layout& layout) {
  return read_buffer(SafetensorsFile(file), layout, "");
}

bool is_checkpoint(const fs::path& file) {
  const std::string name = file.filename().string();
  constexpr std::string_view before = "checkpoint-", after = ".safetensors";
  if (name.size() <= before.size() + after.size() ||
      !name.starts_with(before) || !name.ends_with(after))
    return false;
  const std::string_view step = std::string_view(name).substr(
      before.size(), name.size() - before.size() - after.size());
  return step.find_first_not_of("0123456789") == step.npos;
}

void write_checkpoint(const fs::path& folder, const Layout& layout,
                      const Checkpoint& checkpoint) {
  const TrainingState& state = checkpoint.state;
  StateFile saved{.step = state.step,
                  .sha256 = {},
                  .best_nll = checkpoint.best_nll,
                  .best_step = checkpoint.best_step};
  const std::string name = saved.checkpoint();
  std::map<std::string, Matrix> tensors;
  collect(tensors, layout, "weights.", state.weights);
  collect(tensors, layout, "first_moment.", state.moments.first);
  collect(tensors, layout, "second_moment.", state.moments.second);
  write_safetensors(folder / name, tensors, "F32");
  saved.sha256 = sha256_file(folder / name);
  write_text(folder / "state.json", to_text(saved));
  // what state.json does not name is not needed any more
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (is_checkpoint(entry.path()) && entry.path().filename() != name) {
      std::error_code ignored;  // a file too many does no harm
      fs::remove(entry.path(), ignored);
    }
  }
}

std::optional<Checkpoint> read_checkpoint(const fs::path& folder,
                                          const Layout& layout) {
  if (!fs::exists(folder / "state.json")) return {};
  const StateFile saved = read_state(folder);
  const fs::path file = folder / saved.checkpoint();
  if (sha256_file(file) != saved.sha256)
    throw InputError(fmt::format(
        "{}: damaged: its SHA-256 is not what state.json says", file.string()));
  const SafetensorsFile tensors(file);
  Checkpoint c;
  c.state.step = saved.step;
  c.state.weights = read_buffer(tensors, layout, "weights.");
  c.state.moments.first = read_buffer(tensors, layout, "first_moment.");
  c.state.moments.second = read_buffer(tensors, layout, "second_moment.");
  c.best_step = saved.best_step;
  c.best_nll = saved.best_nll;
  return c;
}

}  // namespace lipscope
