#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "lipscope/core/rng.h"
#include "lipscope/model/model.h"
#include "tests/io/test_files.h"
#include "tests/support/shared_files.h"

/// Small pretrained models, written as Hugging Face would, for machines that
/// have no real ones.
namespace lipscope::test {

struct Tensor {
  TensorShape shape;
  Matrix values;
};
using Tensors = std::map<std::string, Tensor>;

inline ModelConfig small_config(Architecture architecture) {
  ModelConfig c = usual_config(architecture);
  c.layers = 2;
  c.width = 8;
  c.heads = c.key_heads = 2;
  c.head_width = 4;
  c.mlp_width = 12;
  c.vocabulary = 20;
  c.positions = 10;
  c.epsilon = 1e-3;
  if (architecture == Architecture::llama) {
    c.heads = 4;  // wider together than the model, and grouped
    c.key_heads = 2;
    c.rope = Rotary{.theta = 50.0};
    c.attention_bias = c.output_bias = true;
    c.mlp_bias = true;
  }
  return c;
}

inline std::string config_json(const ModelConfig& c) {
  nlohmann::json j;
  j["model_type"] = name_of(c.architecture);
  j["vocab_size"] = c.vocabulary;
  j["tie_word_embeddings"] = c.tied_embeddings;
  if (c.architecture == Architecture::gpt2) {
    j["n_layer"] = c.layers;
    j["n_embd"] = c.width;
    j["n_head"] = c.heads;
    j["n_inner"] = c.mlp_width;
    j["n_positions"] = c.positions;
    j["layer_norm_epsilon"] = c.epsilon;
    j["activation_function"] = name_of(c.activation);
    return j.dump();
  }
  j["num_hidden_layers"] = c.layers;
  j["hidden_size"] = c.width;
  j["num_attention_heads"] = c.heads;
  j["intermediate_size"] = c.mlp_width;
  j["max_position_embeddings"] = c.positions;
  j["hidden_act"] = name_of(c.activation);
  if (c.architecture == Architecture::bert) {
    j["layer_norm_eps"] = c.epsilon;
    j["type_vocab_size"] = c.token_types;
  } else {
    j["rms_norm_eps"] = c.epsilon;
    j["num_key_value_heads"] = c.key_heads;
    j["head_dim"] = c.head_width;
    j["rope_theta"] = c.rope->theta;
    j["attention_bias"] = c.attention_bias;
    j["mlp_bias"] = c.mlp_bias;
  }
  return j.dump();
}

/// Every tensor of the model, of multiples of 1/16 below 8: F16 and BF16 hold
/// them exactly.
inline Tensors random_tensors(const ModelConfig& c, std::uint64_t seed) {
  std::vector<Module> modules = modules_of(outer_modules(c));
  for (Index l = 0; l < c.layers; ++l)
    for (const Module& m : modules_of(layer_modules(c, l)))
      modules.push_back(m);
  Tensors all;
  const Rng rng(seed);
  for (const Module& m : modules)
    for (const TensorSpec& t : tensors_of(m)) {
      const Index rows = t.shape.size() == 2 ? t.shape[0] : 1;
      const bool norm = t.shape.size() == 1 && t.name.ends_with("weight");
      Matrix values =
          0.4 * gaussian(rows, t.shape.back(), rng.split(all.size()));
      if (norm) values.array() += 1.0;
      all[t.name] = {t.shape, (16 * values).array().round() / 16};
    }
  return all;
}

inline std::string encoded(const Matrix& m, const std::string& dtype) {
  std::string bytes;
  const auto add = [&](auto number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  for (Index i = 0; i < m.size(); ++i) {
    const float f = static_cast<float>(m.data()[i]);
    if (dtype == "F64")
      add(m.data()[i]);
    else if (dtype == "F16")
      add(Eigen::half(f).x);
    else if (dtype == "BF16")
      add(Eigen::bfloat16(f).value);
    else
      add(f);
  }
  return bytes;
}

inline void write_tensors(const std::filesystem::path& path, const Tensors& all,
                          const std::string& dtype = "F32",
                          const std::string& prefix = "") {
  nlohmann::json header = nlohmann::json::object();
  std::string data;
  for (const auto& [name, t] : all) {
    const std::size_t begin = data.size();
    data += encoded(t.values, dtype);
    header[prefix + name] = {{"dtype", dtype},
                             {"shape", t.shape},
                             {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  write_file(path, std::string(reinterpret_cast<const char*>(&length), 8) +
                       text + data);
}

/// A folder with config.json and model.safetensors.
inline void write_model(const std::filesystem::path& folder,
                        const ModelConfig& config, const Tensors& tensors) {
  write_file(folder / "config.json", config_json(config));
  write_tensors(folder / "model.safetensors", tensors);
}

}  // namespace lipscope::test
