#include "lipscope/audit/predictor.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/train/model_folder.h"
#include "tests/audit/byte_models.h"
#include "tests/train/small_models.h"

namespace lipscope::audit {
namespace predictor_test {

using test::TemporaryFolder;

const std::string text = "a river runs by the hill";

// −log softmax(row)[next], in f64
double nll(const Vector& row, Index next) {
  const double most = row.maxCoeff();
  return most + std::log((row.array() - most).exp().sum()) - row[next];
}

TEST(Predictor, OfAPretrainedFolderRunsTheModel) {
  for (const Architecture architecture :
       {Architecture::gpt2, Architecture::llama}) {
    const TemporaryFolder folder;
    test::write_byte_model(folder.path(), architecture);
    const Predictor predictor(folder.path(), 1);
    EXPECT_FALSE(predictor.reads_characters());
    EXPECT_EQ(predictor.context(), 10);
    const std::vector<int> ids = ids_of(predictor.tokenizer().encode(text));
    ASSERT_EQ(ids.size(), text.size());

    // windows of 10 tokens, each from its own beginning
    const Model model = load_model(folder.path());
    const ForwardPass<double> pass(model, {.threads = 1});
    double sum = 0.0;
    for (std::size_t begin = 0; begin + 1 < ids.size(); begin += 10) {
      const std::size_t n = std::min<std::size_t>(10, ids.size() - 1 - begin);
      const auto first = ids.begin() + static_cast<std::ptrdiff_t>(begin);
      const std::vector<int> window(first,
                                    first + static_cast<std::ptrdiff_t>(n));
      const Matrix exact =
          logits(model, pass({window.begin(), window.end()}).last, 1);
      const Matrix found =
          predictor.next()(window, {.length = static_cast<Index>(n)})
              .cast<double>();
      EXPECT_LT((found - exact).norm(), 1e-5 * exact.norm());
      for (std::size_t i = 0; i < n; ++i)
        sum += nll(exact.row(static_cast<Index>(i)).transpose(),
                   ids[begin + i + 1]);
    }
    EXPECT_NEAR(predictor.score(ids).nll,
                sum / static_cast<double>(ids.size() - 1), 1e-4);
  }
}

TEST(Predictor, OfATrainedFolderIsTheModelThatLearntToTheLastBit) {
  for (const Mixer mixer : all_mixers) {
    const TemporaryFolder folder;
    const LanguageModelConfig config = test::little(mixer, NormPlace::post);
    LanguageModel<float> model(config);
    const VectorOf<float> weights = model.layout().initial<float>(3);
    write_description(folder.path(), {.config = config,
                                      .vocabulary = Vocabulary::of("abcde")});
    write_weights(folder / "model.safetensors", model.layout(), weights);

    const Predictor predictor(folder.path(), 1);
    EXPECT_TRUE(predictor.reads_characters());
    const std::vector<int> ids = {0, 3, 1, 4, 2, 2, 0};
    EXPECT_EQ(ids_of(predictor.tokenizer().encode("adbecca")), ids);
    EXPECT_EQ(predictor.score(ids).nll, score_of(model, weights, ids, 1).nll)
        << name_of(mixer);
  }
}

TEST(Predictor, RefusesWhatDoesNotPredictTheNextToken) {
  const TemporaryFolder folder;
  test::write_byte_model(folder.path(), Architecture::bert);
  try {
    const Predictor predictor(folder.path(), 1);
    FAIL() << "BERT was taken";
  } catch (const InputError& wrong) {
    EXPECT_TRUE(test::says(wrong.what(), {"bert", "next token"}));
  }
}

}  // namespace predictor_test
}  // namespace lipscope::audit
