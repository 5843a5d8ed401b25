#include "lipscope/model/stack.h"

#include <gtest/gtest.h>

#include "lipscope/core/errors.h"
#include "lipscope/model/pass.h"
#include "tests/model/folders.h"

namespace lipscope::test {
namespace stack_test {

const std::vector<Index> ids = {3, 0, 19, 7, 7};

TEST(Stack, IsTheModelToItsLogits) {
  for (const Architecture architecture :
       {Architecture::gpt2, Architecture::llama, Architecture::lipscope})
    for (const bool tied : {false, true}) {
      ModelConfig config = architecture == Architecture::lipscope
                               ? usual_config(architecture)
                               : small_config(architecture);
      config.tied_embeddings = tied && architecture != Architecture::lipscope;
      const Model model = random_model(config, 5);
      const Matrix last = ForwardPass<double>(model, {.threads = 1})(ids).last;
      const Stack stack = load_stack(model);
      EXPECT_EQ(stack.context, config.positions);
      const Matrix found =
          (*stack_map(stack, 1))(embed<double>(model, ids)) * stack.head;
      const Matrix exact = logits(model, last, 1);
      EXPECT_LT((found - exact).norm(), 1e-12 * exact.norm())
          << name_of(architecture) << (tied ? " tied" : "");
    }
}

TEST(Stack, OfBertIsRefused) {
  const Model bert = random_model(small_config(Architecture::bert), 5);
  EXPECT_THROW(load_stack(bert), InputError);
  EXPECT_THROW(require_next_token(bert), InputError);
  EXPECT_NO_THROW(
      require_next_token(random_model(small_config(Architecture::gpt2), 5)));
}

TEST(Model, CountsTheNumbersOfItsTensors) {
  for (const Architecture architecture :
       {Architecture::gpt2, Architecture::bert, Architecture::llama}) {
    const ModelConfig config = small_config(architecture);
    double numbers = 0;
    for (const auto& [name, tensor] : random_tensors(config, 1))
      numbers += static_cast<double>(tensor.values.size());
    EXPECT_EQ(parameter_count(config), numbers) << name_of(architecture);
  }
}

}  // namespace stack_test
}  // namespace lipscope::test
