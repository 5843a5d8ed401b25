#include "lipscope/train/model_stack.h"

#include <gtest/gtest.h>

#include "tests/support/stack_map.h"
#include "tests/train/small_models.h"

namespace lipscope {
namespace model_stack_test {

// logits of the model are those of its stack at what the embedding hands on
TEST(ModelStack, IsTheModelFromItsEmbeddingOn) {
  for (const Mixer mixer :
       {Mixer::dot, Mixer::l2, Mixer::l2_untied, Mixer::contractive_l2})
    for (const NormPlace place :
         {NormPlace::post, NormPlace::pre, NormPlace::none}) {
      LanguageModel<double> model({.mixer = mixer,
                                   .characters = 5,
                                   .layers = 2,
                                   .width = 4,
                                   .heads = 2,
                                   .context = 6,
                                   .hidden = 7,
                                   .norm = place});
      VectorOf<double> weights = model.layout().initial<double>(3);
      weights += 0.1 * random_direction(weights.size(), Rng(4));
      const std::vector<int> characters = {3, 0, 1, 4, 4, 2};
      const Matrix logits =
          model.forward(weights, characters, {.length = 6, .threads = 1});
      Matrix x(6, 4);
      for (Index i = 0; i < 6; ++i)
        x.row(i) = tensor(weights, model.layout().tensors()[0].slot)
                       .row(characters[i]) +
                   tensor(weights, model.layout().tensors()[1].slot).row(i);
      const Matrix found = (*test::stack_map(stack_of(model, weights)))(x);
      EXPECT_LT((found - logits).norm(), 1e-12 * logits.norm())
          << name_of(mixer) << " " << name_of(place);
    }
}

TEST(ModelStack, HasTheDivisorsOfAnInvertibleModel) {
  LanguageModel<double> model({.mixer = Mixer::contractive_l2,
                               .characters = 3,
                               .layers = 1,
                               .width = 4,
                               .heads = 2,
                               .context = 2,
                               .hidden = 5,
                               .norm = NormPlace::none,
                               .contraction = 0.7});
  VectorOf<double> weights = model.layout().initial<double>(3);
  const std::vector<int> characters = {2, 1};
  const Matrix logits =
      model.forward(weights, characters, {.length = 2, .threads = 1});
  Matrix x(2, 4);
  for (Index i = 0; i < 2; ++i)
    x.row(i) =
        tensor(weights, model.layout().tensors()[0].slot).row(characters[i]) +
        tensor(weights, model.layout().tensors()[1].slot).row(i);
  const Matrix found = (*test::stack_map(stack_of(model, weights)))(x);
  EXPECT_LT((found - logits).norm(), 1e-12 * logits.norm());
}

TEST(ModelStack, RefusesAnLstm) {
  const LanguageModel<float> model(
      {.mixer = Mixer::lstm, .characters = 5, .layers = 1, .width = 4});
  EXPECT_THROW(stack_of(model, model.layout().initial<float>(0)),
               std::invalid_argument);
}

}  // namespace model_stack_test
}  // namespace lipscope
