#include "lipscope/model/heads_apart.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/model/pass.h"
#include "lipscope/model/stack.h"
#include "lipscope/operators/check.h"
#include "tests/support/promised_folder.h"

namespace lipscope {
namespace heads_apart_test {

using test::message_of;
using test::NamedMatrices;
using test::says;
using test::TemporaryFolder;

LanguageModelConfig config_of(Mixer mixer, Index position_heads) {
  return {.mixer = mixer,
          .characters = 5,
          .layers = 2,
          .width = 8,
          .heads = 4,
          .context = 6,
          .position_heads = position_heads,
          .heads_apart = true,
          .positions = Positions::none,
          .hidden = 6,
          .activation = Activation::max_min,
          .norm = NormPlace::none,
          .join = Join::convex,
          .join_share = 0.375,
          .head_bias = true};
}

struct Case {
  const char* name;
  LanguageModelConfig config;
};

std::vector<Case> cases() {
  std::vector<Case> all{{"position", config_of(Mixer::position, 4)},
                        {"dot", config_of(Mixer::dot, 1)},
                        {"rotary", config_of(Mixer::dot, 2)},
                        {"l2", config_of(Mixer::l2, 3)},
                        {"no position heads", config_of(Mixer::dot, 0)},
                        {"alone, table, gelu", config_of(Mixer::dot, 2)},
                        {"added, one matrix W_O", config_of(Mixer::dot, 0)}};
  all[2].config.positions = Positions::rotary;
  all[5].config.join = Join::none;
  all[5].config.positions = Positions::table;
  all[5].config.activation = Activation::gelu;
  all[5].config.head_bias = false;
  all[6].config.join = Join::add;
  all[6].config.heads_apart = false;
  return all;
}

// ---- the model once more, number by number from the formulas

double sum_exp(const Vector& x) { return x.array().exp().sum(); }

// row i of the queries or keys turned by its position: planes (j, j + k/2)
void rotate(Matrix& z) {
  const Index k = z.cols(), m = k / 2;
  for (Index i = 0; i < z.rows(); ++i)
    for (Index j = 0; j < m; ++j) {
      const double angle =
          double(i) * std::pow(10000.0, -double(j) / double(m));
      const double a = z(i, j), b = z(i, j + m);
      z(i, j) = a * std::cos(angle) - b * std::sin(angle);
      z(i, j + m) = a * std::sin(angle) + b * std::cos(angle);
    }
}

// causal means of v with weights exp of the scores
Matrix means(const Matrix& scores, const Matrix& v) {
  Matrix y = Matrix::Zero(v.rows(), v.cols());
  for (Index i = 0; i < v.rows(); ++i) {
    double total = 0;
    for (Index j = 0; j <= i; ++j) {
      y.row(i) += std::exp(scores(i, j)) * v.row(j);
      total += std::exp(scores(i, j));
    }
    y.row(i) /= total;
  }
  return y;
}

Matrix attention(const LanguageModelConfig& c, const NamedMatrices& w,
                 const std::string& at, const Matrix& x) {
  const Index k = c.width / c.heads, n = x.rows();
  const Index comparing = (c.heads - c.position_heads) * k;
  Matrix y = Matrix::Zero(n, c.width);
  for (Index h = 0; h < c.position_heads; ++h) {
    const Matrix v = x * w.at(at + "attn.p.v.weight").middleCols(h * k, k);
    const Vector b = w.at(at + "attn.p.bias").row(h);
    for (Index i = 0; i < n; ++i)
      for (Index t = 0; t <= i && t < c.context; ++t)
        y.block(i, h * k, 1, k) += std::exp(b[t]) / sum_exp(b) * v.row(i - t);
  }
  for (Index h = c.position_heads; h < c.heads; ++h) {
    const Index from = (h - c.position_heads) * k;
    Matrix scores(n, n), v;
    if (c.mixer == Mixer::l2) {
      const Matrix wq = w.at(at + "attn.q.weight").middleCols(from, k);
      const Matrix q = x * wq;
      for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < n; ++j)
          scores(i, j) = -(q.row(i) - q.row(j)).squaredNorm() / std::sqrt(k);
      v = q * wq.transpose() / std::sqrt(k) *
          w.at(at + "attn.v.weight").middleCols(from, k);
    } else {
      const Matrix& qkv = w.at(at + "attn.qkv.weight");
      Matrix q = x * qkv.middleCols(from, k);
      Matrix key = x * qkv.middleCols(comparing + from, k);
      v = x * qkv.middleCols(2 * comparing + from, k);
      if (c.positions == Positions::rotary) {
        rotate(q);
        rotate(key);
      }
      scores = q * key.transpose() / std::sqrt(double(k));
    }
    y.middleCols(h * k, k) = means(scores, v);
  }
  if (!c.heads_apart) return y * w.at(at + "attn.o.weight");
  const Vector share = w.at(at + "attn.share").row(0);
  for (Index h = 0; h < c.heads; ++h)
    y.middleCols(h * k, k) *= std::sqrt(std::exp(share[h]) / sum_exp(share));
  return y;
}

Matrix mlp(const LanguageModelConfig& c, const NamedMatrices& w,
           const std::string& at, const Matrix& x) {
  const Matrix h = (x * w.at(at + "mlp.up.weight")).rowwise() +
                   w.at(at + "mlp.up.bias").row(0);
  Matrix a = h;
  const Index half = h.cols() / 2;
  for (Index i = 0; i < h.rows(); ++i)
    for (Index j = 0; j < h.cols(); ++j)
      a(i, j) = c.activation == Activation::gelu
                    ? h(i, j) * 0.5 * std::erfc(-h(i, j) / std::sqrt(2.0))
                : j < half ? std::max(h(i, j), h(i, j + half))
                           : std::min(h(i, j), h(i, j - half));
  return (a * w.at(at + "mlp.down.weight")).rowwise() +
         w.at(at + "mlp.down.bias").row(0);
}

Matrix joined(const LanguageModelConfig& c, const Matrix& x, const Matrix& y) {
  switch (c.join) {
    case Join::add:
      return x + y;
    case Join::convex:
      return (1 - c.join_share) * x + c.join_share * y;
    case Join::none:
      break;
  }
  return y;
}

Matrix embedded(const LanguageModelConfig& c, const NamedMatrices& w,
                const std::vector<Index>& ids) {
  Matrix x(static_cast<Index>(ids.size()), c.width);
  for (Index i = 0; i < x.rows(); ++i) {
    x.row(i) = w.at("wte.weight").row(ids[i]);
    if (c.positions == Positions::table) x.row(i) += w.at("wpe.weight").row(i);
  }
  return x;
}

Matrix hidden(const LanguageModelConfig& c, const NamedMatrices& w, Matrix x) {
  for (Index l = 0; l < c.layers; ++l) {
    const std::string at = "h." + std::to_string(l) + ".";
    x = joined(c, x, attention(c, w, at, x));
    x = joined(c, x, mlp(c, w, at, x));
  }
  return x;
}

const std::vector<Index> ids{3, 1, 4, 1, 0, 2};

void expect_near(const Matrix& found, const Matrix& exact, const char* name) {
  ASSERT_EQ(found.rows(), exact.rows()) << name;
  ASSERT_EQ(found.cols(), exact.cols()) << name;
  EXPECT_LT((found - exact).norm(), 1e-13 * exact.norm()) << name;
}

TEST(HeadsApart, OfAFolderAreTheModelNumberByNumber) {
  for (const Case& one : cases()) {
    const LanguageModelConfig& c = one.config;
    const NamedMatrices w = test::promised_tensors(c, 1);
    const TemporaryFolder folder;
    test::write_promised(folder.path(), c, w);
    const Model model = load_model(folder.path());
    const Matrix x = embedded(c, w, ids);
    const Matrix last = hidden(c, w, x);
    Matrix exact = last * w.at("lm_head.weight");
    if (c.head_bias) exact.rowwise() += w.at("lm_head.bias").row(0);

    const ForwardPass<double> pass(model, {.threads = 1});
    expect_near(pass(ids).last, last, one.name);
    expect_near(logits(model, pass(ids).last, 1), exact, one.name);
    expect_near((*model_map<double>(model, {.threads = 1}))(x), last, one.name);
    const Stack stack = load_stack(model);
    expect_near((*stack_map(stack, 1))(x), last, one.name);
    EXPECT_EQ(stack.head_bias.size(), c.head_bias ? 5 : 0);
    EXPECT_EQ(parameter_count(model.config), [&] {
      double numbers = 0;
      for (const auto& [name, m] : w) numbers += double(m.size());
      return numbers;
    }()) << one.name;
  }
}

TEST(HeadsApart, RunSeveralSequencesAsEachByItself) {
  for (const Case& one : cases()) {
    const NamedMatrices w = test::promised_tensors(one.config, 2);
    const TemporaryFolder folder;
    test::write_promised(folder.path(), one.config, w);
    const Model model = load_model(folder.path());
    const ForwardPass<double> two(model, {.sequences = 2, .threads = 1});
    const Matrix both = two(ids).last;
    const ForwardPass<double> single(model, {.threads = 1});
    expect_near(both.topRows(3), single({3, 1, 4}).last, one.name);
    expect_near(both.bottomRows(3), single({1, 0, 2}).last, one.name);
  }
}

TEST(HeadsApart, MapsHaveTheDerivativeOfTheirValuesAndItsAdjoint) {
  for (const Case& one : cases()) {
    const Model model = random_model(model_config(one.config), 3);
    const Matrix x = gaussian(5, 8, Rng(4));
    for (const MapName map :
         {MapName::core, MapName::attn, MapName::residual, MapName::block}) {
      const MapPtr<double> f =
          layer_map<double>(load_layer(model, 1, map), map, {.threads = 1});
      const DerivativeCheck check = check_derivative(*f, x, Rng(5));
      EXPECT_LT(check.error, 1e-8) << one.name << ", " << name_of(map);
      EXPECT_LT(adjoint_defect(*f->linearize(x), Rng(6)), 1e-13)
          << one.name << ", " << name_of(map);
    }
  }
}

TEST(HeadsApart, StandSideBySideInTheCoreWithoutTheirShares) {
  for (const Case& one : cases()) {
    const LanguageModelConfig& c = one.config;
    if (!c.heads_apart) continue;
    const TemporaryFolder folder;
    test::write_promised(folder.path(), c, test::promised_tensors(c, 7));
    const Model model = load_model(folder.path());
    const LayerWeights layer = load_layer(model, 0, MapName::core);
    const Matrix x = gaussian(4, 8, Rng(8));
    Matrix core = (*layer_map<double>(layer, MapName::core, {}))(x);
    const Vector share =
        head_shares(flatten(test::promised_tensors(c, 7).at("h.0.attn.share")));
    for (Index h = 0; h < 4; ++h) core.middleCols(2 * h, 2) *= share[h];
    expect_near(core, (*layer_map<double>(layer, MapName::attn, {}))(x),
                one.name);
  }
}

TEST(HeadsApart, HaveSharesWhoseSquaresSumToOne) {
  const Vector learnt =
      (Vector(3) << 0, std::log(3.0), std::log(12.0)).finished();
  // squares 1/16, 3/16, 12/16
  const Vector c = head_shares(learnt);
  EXPECT_NEAR(c[0], 0.25, 1e-15);
  EXPECT_NEAR(c[1], std::sqrt(3.0) / 4, 1e-15);
  EXPECT_NEAR(c[2], std::sqrt(12.0) / 4, 1e-15);
  const Matrix p =
      distance_weights((Matrix(2, 2) << 0, std::log(3.0), 800, 800).finished());
  EXPECT_NEAR(p(0, 0), 0.25, 1e-15);
  EXPECT_NEAR(p(1, 0), 0.75, 1e-15);
  EXPECT_EQ(p(0, 1), 0.5);
}

TEST(HeadsApart, RefuseWhatDoesNotFit) {
  EXPECT_THROW(head_shares(Vector()), std::invalid_argument);
  EXPECT_THROW(head_shares(Vector::Constant(2, NAN)), std::invalid_argument);
  EXPECT_THROW(distance_weights(Matrix::Constant(1, 2, INFINITY)),
               std::invalid_argument);
  EXPECT_THROW(
      apart_output(Vector::Ones(2), {.first = 1, .head_width = 2, .width = 4}),
      std::invalid_argument);
}

std::string refusal(const LanguageModelConfig& c, const NamedMatrices& w) {
  const TemporaryFolder folder;
  test::write_promised(folder.path(), c, w);
  return message_of<InputError>([&] {
    const Model model = load_model(folder.path());
    ForwardPass<double>(model, {.threads = 1})(ids);
  });
}

TEST(HeadsApart, OfAFolderWithoutATensorOrWithAnotherShapeAreRefusedByName) {
  const LanguageModelConfig c = config_of(Mixer::dot, 1);
  const NamedMatrices good = test::promised_tensors(c, 9);
  for (const char* name : {"h.1.attn.p.bias", "h.0.attn.p.v.weight",
                           "h.1.attn.share", "h.0.attn.qkv.weight"}) {
    NamedMatrices bad = good;
    bad.erase(name);
    EXPECT_TRUE(says(refusal(c, bad), {name}));
    bad[name] = Matrix::Ones(2, 2);
    EXPECT_TRUE(says(refusal(c, bad), {name, "2"}));
  }
}

TEST(HeadsApart, RefuseChoicesBesidePositionHeads) {
  const Model model = random_model(model_config(config_of(Mixer::dot, 2)), 1);
  const LayerWeights layer = load_layer(model, 0);
  const auto refused = [&](const ModelMapOptions& o) {
    return message_of<InputError>(
        [&] { layer_map<double>(layer, MapName::attn, o); });
  };
  EXPECT_TRUE(says(refused({.heads = {0}}), {"--heads", "position heads"}));
  EXPECT_TRUE(says(refused({.mask = Mask::none}), {"position heads"}));
  EXPECT_TRUE(
      says(message_of<InputError>([&] { chosen_attention(layer, true, {}); }),
           {"position heads"}));
  const Model alone =
      random_model(model_config(config_of(Mixer::position, 4)), 1);
  EXPECT_TRUE(says(message_of<InputError>([&] {
                     layer_map<double>(load_layer(alone, 0), MapName::attn,
                                       {.kind = Kind::l2});
                   }),
                   {"--kind l2"}));
}

}  // namespace heads_apart_test
}  // namespace lipscope
