#include "lipscope/transport/measure.h"

#include <gtest/gtest.h>

#include "tests/transport/measures.h"

namespace lipscope {
namespace measure_test {

using test::LayerCase;

std::string refusal(const Matrix& x, const Vector& mass,
                    const Vector& position = {}) {
  try {
    make_measure(x, mass, position);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

TEST(Measure, HasNoWindowAndNoPadding) {
  const Matrix x = Matrix::Identity(3, 2);
  for (const Mask& mask :
       {Mask{.window = 2}, Mask{.hides_later = true, .window = 2},
        Mask{.padding_after = 1}}) {
    const std::string expected = "measure: the mask \"" + name_of(mask) +
                                 "\" makes no map of measures; expected none "
                                 "or causal";
    const auto refused = [&](const auto& made) {
      try {
        made();
      } catch (const std::invalid_argument& e) {
        return std::string(e.what());
      }
      return std::string();
    };
    EXPECT_EQ(refused([&] { uniform_measure(x, mask); }), expected);
    const Measure mu = uniform_measure(x, Mask::none);
    EXPECT_EQ(refused([&] { options_on(mu, {.mask = mask}); }), expected);
  }
}

TEST(Measure, RefusesWhatIsNone) {
  const Matrix x = Matrix::Identity(3, 2);
  const auto says = [](const std::string& text, const std::string& word) {
    EXPECT_NE(text.find(word), std::string::npos) << text;
  };
  says(refusal(x, Vector{{0.5, -0.25, 0.75}}), "entry 1 is -0.25");
  says(refusal(x, Vector{{0.5, 0.0, 0.5}}), "entry 1 is 0");
  says(refusal(x, Vector{{0.5, 0.25, 0.5}}), "sum to 1.25");
  says(refusal(x, Vector{{0.5, NAN, 0.5}}), "entry 1 is nan");
  says(refusal(x, Vector{{0.5, 1e-17, 0.5}}), "below 2^-52");
  says(refusal(x, Vector{{0.5, 0.5}}), "2 masses for 3 tokens");
  says(refusal(Matrix(0, 2), Vector()), "no tokens");
  says(refusal(Matrix::Constant(1, 2, INFINITY), Vector::Ones(1)),
       "not all finite");
  const Vector good{{0.5, 0.25, 0.25}};
  says(refusal(x, good, Vector{{0.0, 1.0}}), "2 positions for 3");
  says(refusal(x, good, Vector{{0.0, 1.0, 0.5}}), "entry 2 is 0.5 after 1");
  says(refusal(x, good, Vector{{0.0, NAN, 1.0}}), "entry 1 is nan");
  EXPECT_EQ(refusal(x, good, Vector{{0.0, 1.0, 1.0}}), "");
}

TEST(Measure, SumsToOneAfterSinglePrecision) {
  const Vector third = Vector::Constant(3, static_cast<float>(1.0 / 3.0));
  const Vector mass = make_measure(Matrix::Zero(3, 1), third).mass;
  EXPECT_EQ(mass.sum(), 1.0);
  EXPECT_NEAR(mass.maxCoeff(), 1.0 / 3.0, 1e-15);
  EXPECT_NEAR(mass.minCoeff(), 1.0 / 3.0, 1e-15);
}

TEST(Measure, TokensSeeTheirOwnPositionAndThoseBefore) {
  const Measure m = make_measure(Matrix::Zero(5, 1), Vector::Constant(5, 0.2),
                                 Vector{{-1.0, 0.5, 0.5, 0.5, 2.0}});
  EXPECT_EQ(tokens_seen(m), (std::vector<Index>{1, 4, 4, 4, 5}));
  EXPECT_EQ(tokens_seen(uniform_measure(Matrix::Zero(3, 1), Mask::none)),
            (std::vector<Index>{3, 3, 3}));
  EXPECT_EQ(tokens_seen(uniform_measure(Matrix::Zero(3, 1), Mask::causal)),
            (std::vector<Index>{1, 2, 3}));
}

TEST(Measure, OfASequenceIsPushedAsTheSequence) {
  for (const LayerCase& c : test::measure_cases()) {
    const AttentionWeights w = test::random_layer(c);
    const Matrix x = test::random_tokens(c);
    const Matrix y = MultiHeadAttention<double>(w, test::options_of(c))(x);
    const Measure out = pushed(w, {.kind = c.kind}, uniform_measure(x, c.mask));
    EXPECT_LT((out.x - y).norm(), 1e-13 * y.norm()) << c.name();
    EXPECT_LT((out.mass.array() - 0.2).abs().maxCoeff(), 1e-15);
  }
}

TEST(Measure, DoesNotNoticeHowItsTokensAreCut) {
  // a measure is the same whether a token is listed once or in pieces
  for (const LayerCase& c : test::measure_cases()) {
    const AttentionWeights w = test::random_layer(c);
    const Measure m = test::random_measure(c);
    const Measure once = pushed(w, {.kind = c.kind}, m);
    const Measure cut = pushed(w, {.kind = c.kind}, split_evenly(m, 3));
    ASSERT_EQ(cut.n(), 3 * c.n);
    EXPECT_NEAR(cut.mass.sum(), 1.0, 1e-15);
    for (Index i = 0; i < cut.n(); ++i)
      EXPECT_LT((cut.x.row(i) - once.x.row(i / 3)).norm(), 1e-13) << c.name();
  }
}

TEST(Measure, HasNoMapOfSigmoidOrRotatedAttention) {
  const Measure m = uniform_measure(Matrix::Identity(2, 2), Mask::none);
  EXPECT_THROW(options_on(m, {.kind = Kind::sigmoid}), std::invalid_argument);
  EXPECT_THROW(options_on(m, {.rope = Rotary{.theta = 1e4}}),
               std::invalid_argument);
}

}  // namespace measure_test
}  // namespace lipscope
