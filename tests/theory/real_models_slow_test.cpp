// Certificates and bounds on pretrained weights, where those are at hand.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lipscope/core/rng.h"
#include "lipscope/io/safetensors.h"
#include "lipscope/model/pass.h"
#include "lipscope/spectral/estimate.h"
#include "lipscope/text/tokenizer.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/certificates.h"
#include "lipscope/theory/layer_certificates.h"
#include "tests/io/test_files.h"

namespace lipscope {
namespace real_models_slow_test {

namespace fs = std::filesystem;

fs::path shared() {
  if (const char* folder = std::getenv("LIPSCOPE_MODELS")) return folder;
  return fs::path(LIPSCOPE_SOURCE).parent_path() / "shared";
}

// a BERT encoder in f64, far enough to give each layer its input
class Bert {
 public:
  explicit Bert(const fs::path& file) : file_(file) {}

  AttentionWeights attention(int layer) const {
    const std::string at = prefix(layer) + "attention.";
    AttentionWeights w;
    w.heads = 12;
    w.query = weight(at + "self.query");
    w.key = weight(at + "self.key");
    w.value = weight(at + "self.value");
    w.output = weight(at + "output.dense");
    w.query_bias = bias(at + "self.query");
    w.key_bias = bias(at + "self.key");
    w.value_bias = bias(at + "self.value");
    w.output_bias = bias(at + "output.dense");
    return w;
  }

  std::vector<Matrix> inputs(const std::vector<Index>& ids) const {
    const Matrix words = file_.matrix("embeddings.word_embeddings.weight");
    const Index n = static_cast<Index>(ids.size());
    Matrix x = file_.matrix("embeddings.position_embeddings.weight").topRows(n);
    for (Index i = 0; i < n; ++i) x.row(i) += words.row(ids[i]);
    x.rowwise() +=
        file_.matrix("embeddings.token_type_embeddings.weight").row(0);
    x = normalized(x, "embeddings.LayerNorm");
    std::vector<Matrix> all;
    for (int layer = 0; layer < 6; ++layer) {
      all.push_back(x);
      const std::string at = prefix(layer);
      const Matrix y = x + MultiHeadAttention<double>(attention(layer), {})(x);
      x = normalized(y, at + "attention.output.LayerNorm");
      Matrix u = x * weight(at + "intermediate.dense");
      u.rowwise() += bias(at + "intermediate.dense").transpose();
      u = u.unaryExpr([](double t) {
        return 0.5 * t * (1 + std::erf(t / std::sqrt(2.0)));
      });
      Matrix z = x + u * weight(at + "output.dense");
      z.rowwise() += bias(at + "output.dense").transpose();
      x = normalized(z, at + "output.LayerNorm");
    }
    return all;
  }

 private:
  static std::string prefix(int layer) {
    return fmt::format("encoder.layer.{}.", layer);
  }
  Matrix weight(const std::string& name) const {
    return file_.matrix(name + ".weight").transpose();
  }
  Vector bias(const std::string& name) const {
    return flatten(file_.matrix(name + ".bias"));
  }
  Matrix normalized(Matrix x, const std::string& name) const {
    const Vector gain = flatten(file_.matrix(name + ".weight"));
    for (Index i = 0; i < x.rows(); ++i) {
      x.row(i).array() -= x.row(i).mean();
      x.row(i) /= std::sqrt(x.row(i).squaredNorm() / double(x.cols()) + 1e-12);
    }
    x = x * gain.asDiagonal();
    x.rowwise() += bias(name).transpose();
    return x;
  }

  SafetensorsFile file_;
};

double seconds_of(const std::function<void()>& task) {
  const auto start = std::chrono::steady_clock::now();
  task();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

TEST(SplitCertificate, IsCloseOnMiniLM) {
  const fs::path model =
      shared() / "models/minilm-l6-v2-fp16/model.fp16.safetensors";
  const fs::path golden = shared() / "golden/minilm.json";
  if (!fs::exists(model) || !fs::exists(golden)) GTEST_SKIP() << "no " << model;
  const Bert bert(model);
  const auto cases = nlohmann::json::parse(std::ifstream(golden)).at("cases");

  std::vector<double> split_ratios, pair_ratios;
  double certifying = 0.0, measuring = 0.0;
  for (const auto& one : cases) {
    const auto ids = one.at("ids").get<std::vector<Index>>();
    const std::vector<Matrix> inputs = bert.inputs(ids);
    for (const int layer : {0, 2, 5})
      for (const Mask mask : {Mask::none, Mask::causal}) {
        const double sigma = one.at("sigma_attn_mask_" + name_of(mask))
                                 .at(std::to_string(layer));
        const Matrix& x = inputs[layer];
        const AttentionWeights weights = bert.attention(layer);
        const AttentionOptions options{.mask = mask};
        const LocalCertificates certificates(weights, options);
        certificates.at(x, Certificate::split_paths);  // weights are seen once
        double split = 0.0;
        certifying += seconds_of([&] {
          split = certificates.at(x, Certificate::split_paths).value;
        });
        const MultiHeadAttention<float> f32(weights, options);
        const MultiHeadAttention<double> f64(weights, options);
        measuring += seconds_of([&] { measure_norm(f32, f64, x); });
        EXPECT_GE(split, sigma * (1 - 1e-8));
        split_ratios.push_back(split / sigma);
        if (x.rows() > 16 || mask == Mask::causal) continue;  // seconds
        const double pairs = certificates.at(x, Certificate::token_pairs).value;
        EXPECT_GE(pairs, sigma * (1 - 1e-8));
        EXPECT_LE(pairs, split);
        pair_ratios.push_back(pairs / sigma);
      }
  }
  std::printf("split: median %.2f, at most %.2f; pairs: median %.2f\n",
              median(split_ratios),
              *std::max_element(split_ratios.begin(), split_ratios.end()),
              median(pair_ratios));
  std::printf("certifying %.3f s, measuring %.3f s\n", certifying, measuring);
  EXPECT_LE(median(split_ratios), 4.0);
  EXPECT_LE(median(pair_ratios), 3.0);
}

TEST(SplitCertificate, IsCloseWithRotaryPositions) {
  const fs::path folder = shared() / "models/stories15M";
  const fs::path text = shared() / "data/alice29.txt";
  if (!fs::exists(folder) || !fs::exists(text)) GTEST_SKIP() << "no " << folder;
  const Model model = load_model(folder);
  ASSERT_TRUE(model.config.rope);
  const auto tokens =
      load_tokenizer(folder, model.config.vocabulary)
          .encode(test::read_file(text).substr(0, std::size_t{1} << 14));
  const ForwardPass<double> pass(model, {});
  std::vector<double> ratios;
  for (const Index n : {16, 64}) {
    std::vector<std::vector<Matrix>>
        windows;  // what the layers' attention reads
    for (Index w = 0; w < 3; ++w) {
      std::vector<Index> ids;
      for (Index i = 0; i < n; ++i)
        ids.push_back(tokens.at(static_cast<std::size_t>(w * n + i)).id);
      windows.push_back(pass(ids).attention);
    }
    for (Index l = 0; l < model.config.layers; ++l) {
      const LayerWeights layer = load_layer(model, l);
      const LayerCertificates certificates(layer, MapName::attn, {});
      const auto f32 = layer_map<float>(layer, MapName::attn, {});
      const auto f64 = layer_map<double>(layer, MapName::attn, {});
      for (const std::vector<Matrix>& inputs : windows) {
        const Matrix& x = inputs[static_cast<std::size_t>(l)];
        const auto above = certificates.at(x, Certificate::split_paths);
        ASSERT_TRUE(above);
        const double reached = measure_norm(*f32, *f64, x).lower;
        EXPECT_GE(above->value, reached * (1 - 1e-8)) << "layer " << l;
        ratios.push_back(above->value / reached);
      }
    }
  }
  const double most = *std::max_element(ratios.begin(), ratios.end());
  std::printf("split: median %.2f, at most %.2f\n", median(ratios), most);
  EXPECT_LE(median(ratios), 3.5);
  EXPECT_LE(most, 5.5);
}

TEST(Bounds, OfAllHeadsOfGpt2TakeLessThanAMinute) {
  const fs::path model = shared() /
                         "models/gpt2-124M-attention-only/"
                         "gpt2-124M-attention.fp16.safetensors";
  if (!fs::exists(model)) GTEST_SKIP() << "no " << model;
  const SafetensorsFile file(model);
  int heads = 0;
  double tighter = 1e300, looser = 0.0;
  const double seconds = seconds_of([&] {
    for (int layer = 0; layer < 12; ++layer) {
      const std::string at = fmt::format("transformer.h.{}.", layer);
      const Matrix qkv = file.matrix(at + "attn.c_attn.weight");
      const Vector bias = flatten(file.matrix(at + "attn.c_attn.bias"));
      AttentionWeights w;
      w.heads = 12;
      w.query = qkv.leftCols(768);
      w.key = qkv.middleCols(768, 768);
      w.value = qkv.rightCols(768);
      w.query_bias = bias.head(768);
      w.output = file.matrix(at + "attn.c_proj.weight");
      const NormWeights norm{.gain = flatten(file.matrix(at + "ln_1.weight")),
                             .bias = flatten(file.matrix(at + "ln_1.bias"))};
      for (Index h = 0; h < 12; ++h) {
        BoundSetting q{.mask = Mask::causal,
                       .heads = {h},
                       .n = 1024,
                       .radius = norm_layer_radius(norm),
                       .norm = norm};
        const auto after_norm = best_bound(bounds(w, q), Norm::two);
        q.norm.reset();
        const auto ball = best_bound(bounds(w, q), Norm::two);
        ASSERT_TRUE(after_norm && ball);
        EXPECT_LE(after_norm->log10, ball->log10);
        tighter = std::min(tighter, ball->value / after_norm->value);
        looser = std::max(looser, ball->value / after_norm->value);
        ++heads;
      }
    }
  });
  std::printf("%d heads, twice, in %.2f s; the norm layer gains %.2f to %.2f\n",
              heads, seconds, tighter, looser);
  EXPECT_EQ(heads, 144);
#ifndef __SANITIZE_ADDRESS__  // under which everything takes several times as
                              // long
  EXPECT_LT(seconds, 60.0);
#endif
}

}  // namespace real_models_slow_test
}  // namespace lipscope
