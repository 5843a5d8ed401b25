#include "lipscope/control/recover.h"

#include <gtest/gtest.h>

#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"
#include "lipscope/model/pass.h"
#include "lipscope/spectral/inf_norm.h"

namespace lipscope {
namespace recover_test {

Model little(std::optional<double> contraction, Mixer mixer) {
  return random_model(model_config({.mixer = mixer,
                                    .characters = 7,
                                    .layers = 2,
                                    .width = 6,
                                    .heads = 2,
                                    .context = 9,
                                    .hidden = 8,
                                    .norm = NormPlace::none,
                                    .contraction = contraction}),
                      3);
}

const std::vector<Index> text = {3, 1, 4, 1, 5, 2, 6, 5, 3};

TEST(ResidualModel, IsTheModel) {
  for (const Mixer mixer : {Mixer::dot, Mixer::l2, Mixer::contractive_l2}) {
    const Model model = little({}, mixer);
    const Matrix x = gaussian(9, 6, Rng(1));
    const Matrix y = (*model_map<double>(model, {}))(x);
    EXPECT_LT((ResidualModel(model, 9)(x) - y).norm(), 1e-14 * y.norm());
  }
}

// q is proved of the weights as they are applied: that of an MLP is c, but for
// rounding; that of attention at most c at the context (it is divided by a
// bound that is not the smallest that is proved), and less on shorter
// sequences. No input was found that moves more
TEST(ResidualModel, ContractsByWhatItWasTrainedFor) {
  const Model model = little(0.8, Mixer::contractive_l2);
  const ResidualModel whole(model, 9), part(model, 4);
  ASSERT_EQ(whole.residuals().size(), 4u);
  EXPECT_EQ(whole.names()[3], "layer 1 MLP");
  for (std::size_t i = 0; i < 4; ++i) {
    const double q = *whole.residuals()[i].contraction();
    EXPECT_LE(q, 0.8 * (1 + 1e-9));
    EXPECT_GE(q, i % 2 == 0 ? 0.02 : 0.8 * (1 - 1e-9));
    EXPECT_LE(*part.residuals()[i].contraction(),
              i % 2 == 0 ? 0.99 * q : 0.8001);
    const Matrix x = gaussian(9, 6, Rng(4).split(i));
    EXPECT_LE(inf_norm(*whole.residuals()[i].f->linearize(x)).value,
              *whole.residuals()[i].contraction());
  }
}

TEST(ResidualModel, SaysNothingOfOtherModels) {
  EXPECT_FALSE(
      ResidualModel(little({}, Mixer::dot), 9).residuals()[0].lipschitz);
  Model model = little({}, Mixer::dot);
  model.config.norm = NormPlace::post;
  EXPECT_THROW(ResidualModel(model, 9), InputError);
}

TEST(RecoveredText, IsTheTextWithAProof) {
  const Model model = little(0.9, Mixer::contractive_l2);
  const Matrix x = embed<double>(model, text);
  const ResidualModel g(model, x.rows());
  const StackInversion found = invert_stack(g.residuals(), g(x));
  ASSERT_EQ(found.status, InvertStatus::converged);
  const double bound = *found.error_bound + *found.rounding;
  EXPECT_LE(sequence_norm(found.x - x, Norm::inf), bound);
  const ReadTokens read = read_tokens(model, found.x, bound);
  EXPECT_EQ(read.ids, text);
  EXPECT_EQ(read.proved, std::vector<bool>(text.size(), true));
  EXPECT_LT(bound, read.margin);
}

// what Y was moved by comes back stretched by at most the product of 1/(1 − q)
TEST(RecoveredText, CountsTheErrorOfWhatItIsGiven) {
  const Model model = little(0.5, Mixer::contractive_l2);
  const Matrix x = embed<double>(model, text);
  const ResidualModel g(model, x.rows());
  const double moved = 1e-5;
  Matrix y = g(x);
  for (Index i = 0; i < y.size(); ++i)
    y.data()[i] += i % 3 == 0 ? moved : -moved;
  const double exact = *invert_stack(g.residuals(), y).error_bound;
  const StackInversion found =
      invert_stack(g.residuals(), y, {.given_error = moved});
  // 1/(1 − 0.5) for two MLPs, and what is proved of attention
  double stretched = moved;
  for (const ResidualMap& f : g.residuals()) stretched /= 1 - *f.contraction();
  EXPECT_GT(stretched, 4 * moved);
  EXPECT_NEAR(*found.error_bound - exact, stretched, 1e-9);
  EXPECT_LE(sequence_norm(found.x - x, Norm::inf), *found.error_bound);
  EXPECT_GT(sequence_norm(found.x - x, Norm::inf), exact);
}

TEST(ReadTokens, ProvesNothingWhereTwoAreWithinTheBound) {
  const Model model = little({}, Mixer::dot);
  Matrix x = embed<double>(model, text);
  const double margin = read_tokens(model, x, 0.0).margin;
  EXPECT_GT(margin, 0.0);
  const ReadTokens sure = read_tokens(model, x, 0.99 * margin);
  EXPECT_EQ(sure.proved, std::vector<bool>(text.size(), true));
  EXPECT_EQ(sure.farthest, 0.0);
  // a bound that reaches the nearest two tokens
  Index unsure = 0;
  for (const bool one : read_tokens(model, x, 100 * margin).proved)
    unsure += !one;
  EXPECT_EQ(unsure, static_cast<Index>(text.size()));
  const ReadTokens none = read_tokens(model, x, {});
  EXPECT_EQ(none.ids, text);
  EXPECT_EQ(none.proved, std::vector<bool>(text.size(), false));
  // no token is within the bound: these are no embeddings
  x(2, 3) += 1.0;
  EXPECT_FALSE(read_tokens(model, x, 0.5 * margin).proved[2]);
}

TEST(StorageRounding, IsHalfTheDistanceOfNeighbours) {
  Matrix y(1, 2);
  y << 1.5, 0x1p-24;
  EXPECT_NEAR(storage_rounding(y), 0x1p-8, 1e-12);  // bf16: 8 bits
  y << 1.0009765625, 0.0;                           // 1 + 2⁻¹⁰
  EXPECT_NEAR(storage_rounding(y), 0x1p-11, 1e-7);  // f16: 11 bits
  y << 1.0 + 0x1p-23, 0.0;
  EXPECT_NEAR(storage_rounding(y), 0x1p-24, 1e-15);  // f32: 24 bits
  y << 1.0 + 0x1p-24, 0.0;
  EXPECT_EQ(storage_rounding(y), 0.0);
  // what rounding does is not more
  const Matrix x = gaussian(30, 30, Rng(2));
  const Matrix f = x.cast<float>().cast<double>();
  EXPECT_LE((f - x).cwiseAbs().maxCoeff(), storage_rounding(f));
}

}  // namespace recover_test
}  // namespace lipscope
