#include "lipscope/model/model.h"

#include <gtest/gtest.h>

#include "lipscope/core/errors.h"
#include "lipscope/io/sha256.h"
#include "lipscope/model/pass.h"
#include "tests/model/folders.h"

namespace lipscope {
namespace model_test {

using test::message_of;
using test::says;
using test::TemporaryFolder;
using test::Tensors;
using test::write_file;

constexpr Architecture architectures[] = {
    Architecture::gpt2, Architecture::bert, Architecture::llama};

const std::vector<Index> ids{3, 1, 4, 1, 5, 9};

Matrix last_of(const std::filesystem::path& folder) {
  const Model model = load_model(folder);
  return ForwardPass<double>(model, {.threads = 1})(ids).last;
}

std::string refusal(const std::filesystem::path& folder) {
  return message_of<InputError>([&] { last_of(folder); });
}

TEST(Model, IsTheSameInEveryFormatAndUnderEveryName) {
  for (const Architecture a : architectures) {
    const ModelConfig c = test::small_config(a);
    const Tensors tensors = test::random_tensors(c, 1);
    const TemporaryFolder folder;
    test::write_model(folder.path(), c, tensors);
    const Matrix exact = last_of(folder.path());
    EXPECT_EQ(exact.rows(), 6);
    EXPECT_EQ(exact.cols(), 8);

    for (const char* dtype : {"F16", "BF16"}) {
      test::write_tensors(folder / "model.safetensors", tensors, dtype);
      EXPECT_EQ(last_of(folder.path()), exact) << dtype;
    }
    const std::string prefix = a == Architecture::gpt2   ? "transformer."
                               : a == Architecture::bert ? "bert."
                                                         : "model.";
    std::filesystem::remove(folder / "model.safetensors");
    test::write_tensors(folder / "weights.fp16.safetensors", tensors, "F16",
                        prefix);
    EXPECT_EQ(last_of(folder.path()), exact);
    EXPECT_EQ(load_model(folder.path()).parameters.sha256(),
              sha256_file(folder / "weights.fp16.safetensors"));
  }
}

TEST(Model, ReadsTheOldNamesOfBertsNorms) {
  const ModelConfig c = test::small_config(Architecture::bert);
  const Tensors tensors = test::random_tensors(c, 2);
  const TemporaryFolder folder;
  test::write_model(folder.path(), c, tensors);
  const Matrix exact = last_of(folder.path());
  Tensors old;
  for (const auto& [name, tensor] : tensors) {
    std::string renamed = name;
    if (const auto at = name.find("LayerNorm.weight"); at != name.npos)
      renamed = name.substr(0, at) + "LayerNorm.gamma";
    if (const auto at = name.find("LayerNorm.bias"); at != name.npos)
      renamed = name.substr(0, at) + "LayerNorm.beta";
    old[renamed] = tensor;
  }
  ASSERT_FALSE(old.contains("embeddings.LayerNorm.weight"));
  test::write_tensors(folder / "model.safetensors", old);
  EXPECT_EQ(last_of(folder.path()), exact);
}

// two shards and their index
void write_shards(const TemporaryFolder& folder, const Tensors& tensors,
                  nlohmann::json& index) {
  Tensors halves[2];
  for (const auto& [name, tensor] : tensors) {
    const std::size_t half = (halves[0].size() + halves[1].size()) % 2;
    halves[half][name] = tensor;
    index["weight_map"][name] = half == 0 ? "a.safetensors" : "b.safetensors";
  }
  test::write_tensors(folder / "a.safetensors", halves[0], "BF16");
  test::write_tensors(folder / "b.safetensors", halves[1], "F16");
  write_file(folder / "model.safetensors.index.json", index.dump());
}

TEST(Model, IsTheSameInShards) {
  for (const Architecture a : architectures) {
    const ModelConfig c = test::small_config(a);
    const Tensors tensors = test::random_tensors(c, 3);
    const TemporaryFolder whole, shards;
    test::write_model(whole.path(), c, tensors);
    write_file(shards / "config.json", test::config_json(c));
    nlohmann::json index;
    write_shards(shards, tensors, index);
    EXPECT_EQ(last_of(shards.path()), last_of(whole.path()));
    EXPECT_EQ(load_model(shards.path()).parameters.sha256(),
              sha256_text(
                  sha256_file(shards / "a.safetensors") + "  a.safetensors\n" +
                  sha256_file(shards / "b.safetensors") + "  b.safetensors\n"));
  }
}

TEST(Model, RefusesIndicesThatLeadAstray) {
  const ModelConfig c = test::small_config(Architecture::gpt2);
  const Tensors tensors = test::random_tensors(c, 4);
  const TemporaryFolder folder;
  write_file(folder / "config.json", test::config_json(c));
  nlohmann::json good;
  write_shards(folder, tensors, good);
  std::filesystem::create_directory(folder / "sub");
  std::filesystem::copy(folder / "a.safetensors",
                        folder / "sub" / "a.safetensors");
  const auto with = [&](const nlohmann::json& index) {
    write_file(folder / "model.safetensors.index.json", index.dump());
    return refusal(folder.path());
  };
  for (const std::string& path :
       {(folder / "a.safetensors").string(), std::string("../a.safetensors"),
        std::string("sub/a.safetensors"), std::string("sub\\a.safetensors"),
        std::string(".."), std::string("."), std::string(""),
        std::string("a.safetensors\0", 14), std::string("config.json")}) {
    nlohmann::json bad = good;
    bad["weight_map"]["wte.weight"] = path;
    EXPECT_TRUE(says(with(bad), {"index.json", "wte.weight", "same folder"}))
        << path;
  }
  nlohmann::json bad = good;
  bad["weight_map"]["wte.weight"] = "c.safetensors";
  EXPECT_TRUE(says(with(bad), {"c.safetensors", "not there"}));
  bad = good;
  bad["weight_map"]["wte.weight"] = 3;
  EXPECT_TRUE(says(with(bad), {"wte.weight", "string"}));
  bad = good;
  bad["weight_map"]["h.7.ln_1.bias"] = "a.safetensors";
  EXPECT_TRUE(says(with(bad), {"h.7.ln_1.bias", "no such tensor"}));
  EXPECT_TRUE(says(with({{"weight_map", 3}}), {"weight_map"}));
  EXPECT_TRUE(says(with({1, 2}), {"weight_map"}));
  EXPECT_NO_THROW(
      (write_file(folder / "model.safetensors.index.json", good.dump()),
       last_of(folder.path())));
}

TEST(Model, SaysWhichTensorsAreMissingAndServesTheRest) {
  const ModelConfig c = test::small_config(Architecture::gpt2);
  Tensors tensors = test::random_tensors(c, 5);
  for (const char* name : {"wte.weight", "h.0.mlp.c_fc.weight",
                           "h.1.mlp.c_fc.weight", "h.1.mlp.c_proj.weight"})
    tensors.erase(name);
  const TemporaryFolder folder;
  test::write_model(folder.path(), c, tensors);
  const Model model = load_model(folder.path());

  EXPECT_EQ(missing_tensors(model),
            (std::vector<std::string>{"wte.weight", "h.*.mlp.c_fc.weight",
                                      "h.1.mlp.c_proj.weight"}));
  EXPECT_TRUE(
      says(refusal(folder.path()),
           {folder.path().string(), "no wte.weight", "no h.*.mlp.c_fc.weight",
            "and no h.1.mlp.c_proj.weight", "a pass from tokens needs them"}));
  EXPECT_TRUE(says(message_of<InputError>([&] { embed<double>(model, ids); }),
                   {"no wte.weight", "needs it"}));
  EXPECT_TRUE(says(
      message_of<InputError>([&] { load_layer(model, 0, MapName::block); }),
      {"h.0.mlp.c_fc.weight", "block", "layer 0", "needs it"}));

  // attention and its residual do not need them
  const Matrix x = gaussian(5, 8, Rng(1));
  for (const MapName map : {MapName::core, MapName::attn, MapName::residual}) {
    const LayerWeights layer = load_layer(model, 1, map);
    EXPECT_EQ((*layer_map<double>(layer, map, {}))(x).cols(), 8);
  }
}

TEST(Model, RefusesAFolderThatIsNotAsItShouldBe) {
  const ModelConfig c = test::small_config(Architecture::bert);
  const Tensors good = test::random_tensors(c, 6);
  const TemporaryFolder folder;
  test::write_model(folder.path(), c, good);
  ASSERT_NO_THROW(last_of(folder.path()));
  const std::string name = "encoder.layer.1.intermediate.dense.weight";

  // swapped axes, of equal size or not
  Tensors bad = good;
  bad[name].shape = {8, 12};
  test::write_tensors(folder / "model.safetensors", bad);
  EXPECT_TRUE(says(refusal(folder.path()), {name, "[8, 12]", "[12, 8]"}));
  bad = good;
  bad["embeddings.word_embeddings.weight"].shape = {8, 20};
  test::write_tensors(folder / "model.safetensors", bad);
  EXPECT_TRUE(says(refusal(folder.path()), {"[8, 20]", "[20, 8]"}));
  bad = good;
  bad["encoder.layer.0.output.LayerNorm.bias"].shape = {1, 8};
  test::write_tensors(folder / "model.safetensors", bad);
  EXPECT_TRUE(says(refusal(folder.path()), {"[1, 8]", "[8]"}));

  // a number that is none
  bad = good;
  bad[name].values(3, 2) = NAN;
  test::write_tensors(folder / "model.safetensors", bad);
  EXPECT_TRUE(says(refusal(folder.path()), {name, "row 3, column 2"}));

  // cut short anywhere
  test::write_tensors(folder / "model.safetensors", good);
  const std::string bytes = test::read_file(folder / "model.safetensors");
  for (const std::size_t keep :
       {std::size_t{0}, std::size_t{5}, std::size_t{100}, bytes.size() - 1}) {
    write_file(folder / "model.safetensors", bytes.substr(0, keep));
    EXPECT_TRUE(says(refusal(folder.path()), {"model.safetensors"})) << keep;
  }

  // files that are not there, or too many
  std::filesystem::remove(folder / "model.safetensors");
  write_file(folder / "pytorch_model.bin", "pickle");
  EXPECT_TRUE(says(refusal(folder.path()), {"safetensors", "pickled"}));
  write_file(folder / "x.safetensors", bytes);
  EXPECT_NO_THROW(last_of(folder.path()));
  write_file(folder / "y.safetensors", bytes);
  EXPECT_TRUE(says(refusal(folder.path()), {"x.safetensors", "y.safetensors"}));
  std::filesystem::remove(folder / "config.json");
  EXPECT_TRUE(says(refusal(folder.path()), {"config.json"}));
  EXPECT_TRUE(says(refusal(folder / "nowhere"), {"nowhere", "folder"}));
}

TEST(Model, RefusesTokensItHasNot) {
  const Model model = random_model(test::small_config(Architecture::gpt2), 1);
  const auto refused = [&](std::vector<Index> bad) {
    return message_of<InputError>([&] { embed<float>(model, bad); });
  };
  EXPECT_TRUE(says(refused({1, 20}), {"token id 20", "20"}));
  EXPECT_TRUE(says(refused({-1}), {"token id -1"}));
  EXPECT_TRUE(says(refused(std::vector<Index>(11, 0)), {"11", "10 positions"}));
  EXPECT_NO_THROW(embed<float>(model, std::vector<Index>(20, 0), 2));
  EXPECT_THROW(embed<float>(model, {1, 2, 3}, 2), std::invalid_argument);
  EXPECT_THROW(embed<float>(model, {}, 1), std::invalid_argument);
  EXPECT_THROW(load_layer(model, 2), std::invalid_argument);
  // rotary positions have no table that could end
  const Model llama = random_model(test::small_config(Architecture::llama), 1);
  EXPECT_NO_THROW(embed<float>(llama, std::vector<Index>(11, 0)));
}

TEST(RandomModel, IsInitialisedAsItsArchitectureIs) {
  const Model gpt2 = random_model(usual_config(Architecture::gpt2), 7);
  EXPECT_TRUE(missing_tensors(gpt2).empty());
  EXPECT_EQ(gpt2.parameters.sha256(), std::nullopt);
  const LayerWeights layer = load_layer(gpt2, 11);
  const auto deviation = [](const Matrix& m) {
    return std::sqrt(m.squaredNorm() / m.size());
  };
  // 590,000 numbers: the deviation is known to 0.1 %
  EXPECT_NEAR(deviation(layer.attention.query), 0.02, 1e-4);
  EXPECT_NEAR(deviation(layer.mlp.up), 0.02, 1e-4);
  EXPECT_NEAR(deviation(layer.attention.output), 0.02 / std::sqrt(24.0), 2e-5);
  EXPECT_NEAR(deviation(layer.mlp.down), 0.02 / std::sqrt(24.0), 2e-5);
  EXPECT_EQ(layer.attention_norm.gain, Vector::Ones(768));
  EXPECT_EQ(layer.attention_norm.bias, Vector::Zero(768));
  EXPECT_EQ(layer.mlp.up_bias, Vector::Zero(3072));
  EXPECT_LT(std::abs(layer.attention.query.mean()), 1e-4);
  EXPECT_GT((layer.attention.query - layer.attention.key).norm(), 1.0);

  // the last word of the vocabulary alone, in both precisions
  const Matrix x = embed<double>(gpt2, {50256, 0});
  EXPECT_NEAR(deviation(x), 0.02 * std::sqrt(2.0), 2e-3);
  EXPECT_EQ(embed<float>(gpt2, {50256})
                .row(0)
                .cast<double>()
                .isApprox(x.row(0), 1e-6),
            true);

  const Model bert = random_model(usual_config(Architecture::bert), 7);
  EXPECT_NEAR(deviation(load_layer(bert, 3).mlp.down), 0.02, 1e-4);
  EXPECT_NEAR(deviation(embed<double>(bert, {1, 2})), 1.0, 1e-3);  // normed
}

TEST(RandomModel, DependsOnItsSeedAlone) {
  const ModelConfig c = test::small_config(Architecture::bert);
  const auto run = [&](std::uint64_t seed) {
    const Model model = random_model(c, seed);
    return ForwardPass<double>(model, {})(ids).last;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
  // a part by itself is the part of the whole
  const Model model = random_model(c, 1);
  const TensorSpec table{"embeddings.word_embeddings.weight", {20, 8}};
  EXPECT_EQ(model.parameters.rows<double>(table, 4, 3),
            model.parameters.matrix(table).middleRows(4, 3));
  ModelConfig bad = c;
  bad.head_width = 3;
  EXPECT_THROW(random_model(bad, 1), std::invalid_argument);
}

}  // namespace model_test
}  // namespace lipscope
