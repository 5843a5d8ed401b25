// The constants of a real model against its dense Jacobian, which is made from
// nothing but forward passes.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lipscope/model/pass.h"
#include "lipscope/spectral/estimate.h"
#include "lipscope/spectral/golub_kahan.h"
#include "tests/model/folders.h"
#include "tests/spectral/known_operators.h"

namespace lipscope {
namespace minilm_slow_test {

// central differences along every coordinate, many moved sequences at a time
Matrix by_differences(const Map<double>& stacked, Index sequences,
                      const Matrix& x) {
  const double h = 1e-4;
  const Index n = x.rows(), unknowns = x.size(), together = sequences / 2;
  Matrix J(unknowns, unknowns);  // transposed: row j is along coordinate j
  for (Index first = 0; first < unknowns; first += together) {
    Matrix moved = x.replicate(sequences, 1);
    const Index count = std::min(together, unknowns - first);
    for (Index i = 0; i < count; ++i) {
      moved.data()[2 * i * unknowns + first + i] += h;
      moved.data()[(2 * i + 1) * unknowns + first + i] -= h;
    }
    const Matrix y = stacked(moved);
    for (Index i = 0; i < count; ++i) {
      const Matrix quotient =
          (y.middleRows(2 * i * n, n) - y.middleRows((2 * i + 1) * n, n)) /
          (2 * h);
      J.row(first + i) = flatten(quotient).transpose();
    }
  }
  return J.transpose();
}

class MiniLMByDifferences : public testing::TestWithParam<MapName> {};

TEST_P(MiniLMByDifferences, HasTheConstantOfTheDenseJacobian) {
  const std::filesystem::path shared = test::shared_folder().value_or("absent");
  if (!std::filesystem::exists(shared / "models/minilm-l6-v2-fp16") ||
      !std::filesystem::exists(shared / "golden/minilm.json"))
    GTEST_SKIP() << "no MiniLM in " << shared.string()
                 << "; LIPSCOPE_MODELS can name the folder of the models";
  const Model model = load_model(shared / "models/minilm-l6-v2-fp16");
  const auto golden =
      nlohmann::json::parse(test::read_file(shared / "golden/minilm.json"));
  const auto ids = golden["cases"][0]["ids"].get<std::vector<Index>>();
  ASSERT_EQ(ids.size(), 16u);

  const MapName name = GetParam();
  const auto map = [&]<class Real>(Real, Index sequences) {
    const ModelMapOptions options{.sequences = sequences, .memory = 1};
    return name == MapName::model
               ? model_map<Real>(model, options)
               : layer_map<Real>(load_layer(model, 2, name), name, options);
  };
  const HiddenStates<double> states = ForwardPass<double>(model, {})(ids);
  const Matrix& x = states.layer[name == MapName::model ? 0 : 2];
  const Measurement measured = measure_norm(*map(0.0f, 1), *map(0.0, 1), x);
  EXPECT_TRUE(measured.converged);

  const test::DenseOperator<double> J(by_differences(*map(0.0, 64), 64, x));
  const NormEstimate exact = golub_kahan(J, {.tolerance = 1e-8});
  EXPECT_TRUE(exact.converged);
  EXPECT_NEAR(measured.lower, exact.value, 1e-6 * exact.value);
  RecordProperty("constant", std::to_string(measured.lower));
  RecordProperty("by_differences", std::to_string(exact.value));
}

std::string name_in_tests(const testing::TestParamInfo<MapName>& map) {
  return name_of(map.param);
}

INSTANTIATE_TEST_SUITE_P(Maps, MiniLMByDifferences,
                         testing::Values(MapName::residual, MapName::block),
                         name_in_tests);
// six layers take minutes: --gtest_also_run_disabled_tests
INSTANTIATE_TEST_SUITE_P(DISABLED_Minutes, MiniLMByDifferences,
                         testing::Values(MapName::model), name_in_tests);

}  // namespace minilm_slow_test
}  // namespace lipscope
