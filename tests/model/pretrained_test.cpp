// Real pretrained models against values computed by others. They lie outside
// the project: without them these tests are skipped.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "lipscope/attention/head.h"
#include "lipscope/core/errors.h"
#include "lipscope/model/pass.h"
#include "lipscope/operators/check.h"
#include "lipscope/spectral/estimate.h"
#include "tests/model/folders.h"

namespace lipscope {
namespace pretrained_test {

using nlohmann::json;

double relative(const Matrix& a, const Matrix& b) {
  return (a - b).norm() / b.norm();
}

json read_json(const std::filesystem::path& path) {
  return json::parse(test::read_file(path));
}

// the body of the test is not run if this skips it in SetUp
void skip_without(const std::string& path) {
  const std::filesystem::path full =
      test::shared_folder().value_or("absent") / path;
  if (!std::filesystem::exists(full))
    GTEST_SKIP() << "no " << full.string()
                 << "; LIPSCOPE_MODELS can name the folder of the models";
}

class MiniLM : public testing::Test {
  void SetUp() override {
    skip_without("models/minilm-l6-v2-fp16");
    skip_without("golden/minilm.json");
  }
};
class Stories15M : public testing::Test {
  void SetUp() override {
    skip_without("models/stories15M");
    skip_without("golden/stories15M.json");
  }
};
class NanoSort : public testing::Test {
  void SetUp() override { skip_without("models/gpt2-nano-sort-3L"); }
};
class Gpt2AttentionOnly : public testing::Test {
  void SetUp() override { skip_without("models/gpt2-124M-attention-only"); }
};

Model shared_model(const char* name) {
  return load_model(test::shared_folder().value_or("absent") / "models" / name);
}

template <class Real>
double frobenius(const MatrixOf<Real>& m) {
  return m.template cast<double>().norm();
}

// ---- all-MiniLM-L6-v2 (BERT)

template <class Real>
void expect_golden_inputs(const Model& model, const json& golden,
                          double tolerance) {
  const auto ids = golden["ids"].get<std::vector<Index>>();
  const HiddenStates<Real> states = ForwardPass<Real>(model, {})(ids);
  ASSERT_EQ(states.layer.size(), 6u);
  for (std::size_t l = 0; l <= 6; ++l) {
    const MatrixOf<Real>& x = l < 6 ? states.layer[l] : states.last;
    const double norm = golden["layer_input_frobenius"][l];
    EXPECT_NEAR(frobenius(x), norm, tolerance * norm) << "layer " << l;
    for (Index j = 0; j < 4; ++j) {
      const double entry = golden["layer_input_row0_first4"][l][j];
      // of the size of a row's entries, not of this one
      EXPECT_NEAR(x(0, j), entry, tolerance) << "layer " << l;
    }
    if (l < 6) {
      EXPECT_EQ(states.attention[l], states.layer[l]);
    }
  }
}

TEST_F(MiniLM, HasTheGoldenLayerInputs) {
  const Model model = shared_model("minilm-l6-v2-fp16");
  const json golden = read_json(test::shared_folder().value_or("absent") /
                                "golden/minilm.json");
  for (const json& each : golden["cases"]) {
    expect_golden_inputs<double>(model, each, 1e-9);
    expect_golden_inputs<float>(model, each, 1e-4);
  }
}

TEST_F(MiniLM, HasTheGoldenConstants) {
  const Model model = shared_model("minilm-l6-v2-fp16");
  const json golden = read_json(test::shared_folder().value_or("absent") /
                                "golden/minilm.json");
  for (const json& each : golden["cases"]) {
    const auto ids = each["ids"].get<std::vector<Index>>();
    const HiddenStates<double> states = ForwardPass<double>(model, {})(ids);
    for (const Index l : {0, 2, 5}) {
      const LayerWeights layer = load_layer(model, l, MapName::attn);
      for (const Mask mask : {Mask::none, Mask::causal}) {
        const double exact =
            each["sigma_attn_mask_" + name_of(mask)][std::to_string(l)];
        const ModelMapOptions options{.mask = mask};
        const Measurement m =
            measure_norm(*layer_map<float>(layer, MapName::attn, options),
                         *layer_map<double>(layer, MapName::attn, options),
                         states.attention[l], {.tolerance = 1e-5});
        EXPECT_NEAR(m.lower, exact, 1e-5 * exact)
            << "n " << ids.size() << " layer " << l << " " << name_of(mask);
        EXPECT_TRUE(m.converged);
      }
    }
  }
}

TEST_F(MiniLM, HasTheDerivativeOfItsOwnForwardPass) {
  const Model model = shared_model("minilm-l6-v2-fp16");
  const json golden = read_json(test::shared_folder().value_or("absent") /
                                "golden/minilm.json");
  const auto ids = golden["cases"][0]["ids"].get<std::vector<Index>>();
  const HiddenStates<double> states = ForwardPass<double>(model, {})(ids);
  for (const MapName name :
       {MapName::residual, MapName::block, MapName::model}) {
    const MapPtr<double> f =
        name == MapName::model
            ? model_map<double>(model, {})
            : layer_map<double>(load_layer(model, 2, name), name, {});
    const Matrix& x = states.layer[name == MapName::model ? 0 : 2];
    const auto J = f->linearize(x);
    for (std::uint64_t seed = 0; seed < 2; ++seed) {
      Matrix dx = gaussian(x.rows(), x.cols(), Rng(seed));
      dx /= dx.norm();
      const double h = 1e-3;
      const Matrix near = (*f)(x + h * dx) - (*f)(x - h * dx);
      const Matrix far = (*f)(x + 2 * h * dx) - (*f)(x - 2 * h * dx);
      const Matrix numeric = (8 * near - far) / (12 * h);
      const Vector exact = J->apply(flatten(dx));
      EXPECT_LT((exact - flatten(numeric)).norm(), 1e-6 * exact.norm())
          << name_of(name);
      EXPECT_GT(exact.norm(), 1e-3);
    }
    EXPECT_LT(adjoint_defect(*J, Rng(3)), 1e-13) << name_of(name);
  }
}

// ---- stories15M (Llama)

template <class Real>
void expect_stories(const Model& model, const json& golden, double tolerance) {
  const auto ids = golden["greedy_ids"].get<std::vector<Index>>();
  const HiddenStates<Real> states = ForwardPass<Real>(model, {})(ids);
  ASSERT_EQ(states.layer.size(), 6u);
  for (std::size_t l = 0; l < 6; ++l) {
    const double norm = golden["hidden_frobenius"][l];
    EXPECT_NEAR(frobenius(states.layer[l]), norm, tolerance * norm) << l;
  }
  // the last one stands ahead of the final norm
  const MatrixOf<Real> out = (*layer_map<Real>(
      load_layer(model, 5), MapName::block, {}))(states.layer[5]);
  const double norm = golden["hidden_frobenius"][6];
  EXPECT_NEAR(frobenius(out), norm, tolerance * norm);

  const MatrixOf<Real> words = logits(model, states.last);
  const Index last = words.rows() - 1;
  for (Index j = 0; j < 8; ++j) {
    const double logit = golden["last_logits_first8"][j];
    EXPECT_NEAR(words(last, j), logit, tolerance * std::abs(logit)) << j;
  }
  // greedy: each id is the likeliest after those before it
  for (Index i = 0; i < last; ++i) {
    Index best;
    words.row(i).maxCoeff(&best);
    EXPECT_EQ(best, ids[i + 1]) << "after " << i + 1 << " tokens";
  }
}

TEST_F(Stories15M, HasTheGoldenHiddenStatesAndWritesTheGoldenText) {
  const Model model = shared_model("stories15M");
  const json golden = read_json(test::shared_folder().value_or("absent") /
                                "golden/stories15M.json");
  expect_stories<double>(model, golden, 1e-9);
  expect_stories<float>(model, golden, 1e-4);
}

// ---- a minGPT that sorts (GPT-2)

std::vector<float> from_base64(const std::string& text) {
  static const std::string digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t word = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    word = word << 6 | static_cast<std::uint32_t>(digits.find(c));
    bits += 6;
    if (bits >= 8) bytes += static_cast<char>(word >> (bits -= 8) & 255);
  }
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(float));
  return numbers;
}

// a partial of the run as rows of its last axis
Matrix partial(const json& run, const char* name) {
  const std::vector<float> numbers =
      from_base64(run[name]["data"].get<std::string>());
  const Index cols = run[name]["shape"].back();
  Matrix m(static_cast<Index>(numbers.size()) / cols, cols);
  for (Index i = 0; i < m.size(); ++i) m.data()[i] = numbers[i];
  return m;
}

TEST_F(NanoSort, HasEveryIntermediateOfTheRecordedRun) {
  const Model model = shared_model("gpt2-nano-sort-3L");
  const json run =
      read_json(test::shared_folder().value_or("absent") /
                "models/gpt2-nano-sort-3L/gpt-nano-sort-t0-partials.json");
  const Matrix idx = partial(run, "idx");
  std::vector<Index> ids;
  for (Index i = 0; i < idx.size(); ++i)
    ids.push_back(static_cast<Index>(idx.data()[i]));
  const Index batch = idx.rows(), n = idx.cols();
  ASSERT_EQ(batch * n, 33);
  // it was recorded in f32
  const auto same = [&](const char* name, const Matrix& m) {
    const Matrix recorded = partial(run, name);
    ASSERT_EQ(m.rows(), recorded.rows()) << name;
    ASSERT_EQ(m.cols(), recorded.cols()) << name;
    EXPECT_LT(relative(m, recorded), 2e-6) << name;
  };

  const HiddenStates<double> states =
      ForwardPass<double>(model, {.sequences = batch})(ids);
  same("x", states.layer[0]);
  same("ln1", states.attention[0]);
  same("block0", states.layer[1]);
  same("block1", states.layer[2]);
  same("ln_f", states.last);
  same("lm_head", logits(model, states.last));
  Matrix tokens(33, 48);
  const Matrix table = model.parameters.matrix({"wte.weight", {3, 48}});
  for (Index i = 0; i < 33; ++i) tokens.row(i) = table.row(ids[i]);
  same("tok_emb", tokens);
  same("pos_emb", model.parameters.matrix({"wpe.weight", {11, 48}}));

  // within layer 0
  const ModelMapOptions stacked{.sequences = batch};
  const LayerWeights layer = load_layer(model, 0);
  const AttentionWeights& w = layer.attention;
  const Matrix& in = states.attention[0];
  const auto projected = [&](const Matrix& weight, const Vector& bias) {
    return Matrix((in * weight).rowwise() + bias.transpose());
  };
  Matrix qkv(33, 144);
  qkv << projected(w.query, w.query_bias), projected(w.key, w.key_bias),
      projected(w.value, w.value_bias);
  same("qkv", qkv);
  // recorded as [batch, head, token, feature]
  Matrix q(99, 16), k(99, 16), v(99, 16), scores(99, 11), p(99, 11);
  for (Index b = 0; b < batch; ++b)
    for (Index h = 0; h < 3; ++h) {
      const Index at = (b * 3 + h) * n;
      const auto cut = [&](Index which) {
        return qkv.block(b * n, which * 48 + h * 16, n, 16);
      };
      q.middleRows(at, n) = cut(0);
      k.middleRows(at, n) = cut(1);
      v.middleRows(at, n) = cut(2);
      const HeadState<double> head = head_state<double>(
          {cut(0) / 4.0, cut(1), cut(2)}, {.mask = Mask::causal});
      scores.middleRows(at, n) = head.at.q * head.at.k.transpose();
      p.middleRows(at, n) = head.p;
    }
  same("q", q);
  same("k", k);
  same("v", v);
  same("attSm", p);
  const Matrix recorded = partial(run, "att");  // hidden ones are −∞
  for (Index i = 0; i < 99; ++i)
    for (Index j = 0; j < n; ++j)
      EXPECT_NEAR(j <= i % n ? scores(i, j) : 0.0,
                  std::isinf(recorded(i, j)) ? 0.0 : recorded(i, j), 1e-5);
  same("y", (*layer_map<double>(layer, MapName::core, stacked))(in));
  const Matrix attn = (*layer_map<double>(layer, MapName::attn, stacked))(in);
  same("yProj", attn);
  const Matrix middle =
      (*layer_map<double>(layer, MapName::residual, stacked))(states.layer[0]);
  same("attnResid", middle);
  const Matrix ln2 = LayerNorm<double>(layer.mlp_norm)(middle);
  same("ln2", ln2);
  const Matrix fc =
      (ln2 * layer.mlp.up).rowwise() + layer.mlp.up_bias.transpose();
  same("fc", fc);
  same("gelu", activation_values(Activation::gelu_tanh, fc, 1));
  const Matrix mlp = Mlp<double>(layer.mlp)(ln2);
  same("mlp", mlp);
  same("mlpResid", middle + mlp);
  same("block2", (*layer_map<double>(load_layer(model, 2), MapName::block,
                                     stacked))(states.layer[2]));

  Matrix probs = logits(model, states.last);
  for (Index i = 0; i < probs.rows(); ++i) {
    probs.row(i) = (probs.row(i).array() - probs.row(i).maxCoeff()).exp();
    probs.row(i) /= probs.row(i).sum();
  }
  same("probs", probs);
}

TEST_F(NanoSort, SortsAllInputs) {
  const Model model = shared_model("gpt2-nano-sort-3L");
  // six digits, and five of them in order: the last six outputs are the order
  std::vector<Index> ids, sorted;
  for (Index number = 0; number < 729; ++number) {
    std::vector<Index> digits;
    for (Index rest = number, i = 0; i < 6; ++i, rest /= 3)
      digits.push_back(rest % 3);
    ids.insert(ids.end(), digits.begin(), digits.end());
    std::sort(digits.begin(), digits.end());
    ids.insert(ids.end(), digits.begin(), digits.end() - 1);
    sorted.insert(sorted.end(), digits.begin(), digits.end());
  }
  const MatrixOf<float> words =
      logits(model, ForwardPass<float>(model, {.sequences = 729})(ids).last);
  Index wrong = 0;
  for (Index number = 0; number < 729; ++number)
    for (Index i = 0; i < 6; ++i) {
      Index best;
      words.row(number * 11 + 5 + i).maxCoeff(&best);
      wrong += best != sorted[number * 6 + i];
    }
  EXPECT_EQ(wrong, 0);
}

// ---- GPT-2 124M, its attention alone

TEST_F(Gpt2AttentionOnly, ServesEveryHeadAndSaysWhatAPassWouldNeed) {
  const Model model = shared_model("gpt2-124M-attention-only");
  EXPECT_EQ(missing_tensors(model),
            (std::vector<std::string>{"wte.weight", "h.*.mlp.c_fc.weight",
                                      "h.*.mlp.c_proj.weight"}));
  EXPECT_TRUE(test::says(
      test::message_of<InputError>([&] { ForwardPass<float>(model, {}); }),
      {"no wte.weight", "no h.*.mlp.c_fc.weight", "pass from tokens"}));

  const Matrix x = gaussian(8, 768, Rng(1));
  for (Index l = 0; l < 12; ++l) {
    const LayerWeights layer = load_layer(model, l, MapName::residual);
    EXPECT_EQ(layer.attention.query.cols(), 768);
    EXPECT_GT(layer.attention.query.norm(), 10.0);
    EXPECT_NE(layer.attention.query, layer.attention.key);
    EXPECT_EQ(layer.mask, Mask::causal);
    const auto head = layer_map<double>(layer, MapName::attn, {.heads = {l}});
    EXPECT_LT(adjoint_defect(*head->linearize(x), Rng(2)), 1e-13) << l;
  }
}

}  // namespace pretrained_test
}  // namespace lipscope
