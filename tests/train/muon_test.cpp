#include "lipscope/train/muon.h"

#include <gtest/gtest.h>

#include <Eigen/SVD>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lipscope/core/rng.h"

namespace lipscope::test {
namespace muon_test {

// numbers that both programs can make
VectorOf<float> sines(Index size, Index number, double phase, double factor) {
  VectorOf<float> out(size);
  for (Index i = 0; i < size; ++i) {
    const double j = static_cast<double>(i) + 1;
    out[i] = static_cast<float>(
        factor *
        std::sin(0.37 * j * j + 78.233 * (static_cast<double>(number) + 1) +
                 phase * j));
  }
  return out;
}

VectorOf<float> normal(Index size, std::uint64_t seed) {
  return gaussian(size, 1, Rng(seed)).cast<float>();
}

TEST(Muon, TakesTheTenStepsOfNumpyInEveryShape) {
  std::ifstream file(LIPSCOPE_SOURCE "/tests/train/golden/muon.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  EXPECT_EQ(golden["cases"].size(), 8u);
  for (const nlohmann::json& c : golden["cases"]) {
    Layout layout;
    const Index number = c["number"];
    layout.add_matrix("w", c["rows"], c["cols"], zeros(), c["blocks"]);
    VectorOf<float> w = sines(layout.size(), number, 0.0, 0.4);
    VectorOf<float> m = VectorOf<float>::Zero(layout.size());
    const MuonOptions options{.momentum = golden["momentum"],
                              .nesterov = c["nesterov"],
                              .scale = c["scale"] == "one"
                                           ? MuonOptions::Scale::one
                                           : MuonOptions::Scale::shape,
                              .weight_decay = c["decay"],
                              .threads = 1};
    // gradients twice as long, of which half is taken
    for (int step = 1; step <= golden["steps"]; ++step)
      muon_step(layout, w, sines(layout.size(), number, 1.7 * step, 0.2), m,
                {.rate = golden["rate"], .scale = 0.5}, options);
    const std::vector<double> expected = c["weights"];
    for (Index i = 0; i < layout.size(); ++i)
      EXPECT_NEAR(w[i], expected[static_cast<std::size_t>(i)], 1e-5)
          << c["rows"] << "x" << c["cols"] << " in " << c["blocks"] << ", "
          << i;
  }
}

// five steps of the polynomial: between 0.68 and 1.21 for what is not tiny
TEST(Muon, MovesByAMatrixWithAllSingularValuesNearOne) {
  for (const auto& [rows, cols] : {std::pair<Index, Index>{12, 20}, {20, 12}}) {
    Layout layout;
    layout.add_matrix("w", rows, cols, zeros());
    VectorOf<float> w = VectorOf<float>::Zero(layout.size()), m = w;
    muon_step(layout, w, normal(layout.size(), 1), m, {.rate = 1.0},
              {.threads = 1});
    const Matrix moved = block(w, layout.tensors()[0], 0).cast<double>();
    const Vector s = Eigen::JacobiSVD<Matrix>(moved).singularValues();
    EXPECT_GT(s.minCoeff(), 0.65);
    EXPECT_LT(s.maxCoeff(), 1.25);
  }
}

TEST(Muon, LeavesTablesRowsAndWhatIsNamedToAdamW) {
  Layout layout;
  layout.add_table("table", 4, 3, {.deviation = 1.0});
  layout.add_matrix("moved", 3, 4);
  layout.add_matrix("named", 3, 4);
  layout.add_row("bias", 4, 0.5);
  const VectorOf<float> before = layout.initial<float>(1);
  VectorOf<float> w = before, m = VectorOf<float>::Zero(layout.size());
  const MuonOptions options{.by_adamw = {"named"}, .threads = 1};
  muon_step(layout, w, normal(layout.size(), 2), m, {.rate = 0.1}, options);
  for (const Layout::Tensor& t : layout.tensors()) {
    const bool moves = t.name == "moved";
    EXPECT_EQ(moved_by_muon(t, options), moves) << t.name;
    EXPECT_EQ(tensor(w, t.slot) == tensor(before, t.slot), !moves) << t.name;
    EXPECT_EQ(tensor(m, t.slot).norm() == 0, !moves) << t.name;
  }
}

TEST(Muon, MakesNoStepOfAGradientOfZeros) {
  Layout layout;
  layout.add_matrix("w", 4, 6, {.deviation = 1.0}, 2);
  const VectorOf<float> before = layout.initial<float>(1);
  VectorOf<float> w = before, m = VectorOf<float>::Zero(layout.size());
  VectorOf<float> g = m;
  muon_step(layout, w, g, m, {.rate = 0.1}, {.threads = 1});
  EXPECT_EQ(w, before);
  // in one block, which the other does not feel
  block(g, layout.tensors()[0], 1)(2, 1) = 1e-30f;
  muon_step(layout, w, g, m, {.rate = 0.1}, {.threads = 1});
  EXPECT_EQ(block(w, layout.tensors()[0], 0),
            block(before, layout.tensors()[0], 0));
  EXPECT_NE(block(w, layout.tensors()[0], 1),
            block(before, layout.tensors()[0], 1));
  EXPECT_TRUE(w.allFinite());
}

TEST(Muon, GivesTheSameBitsOnAnyNumberOfThreads) {
  Layout layout;
  layout.add_matrix("blocks", 40, 120, zeros(), 4);
  layout.add_matrix("tall", 90, 30, zeros());
  layout.add_matrix("large", 512, 1024, zeros());  // threads share its products
  const VectorOf<float> g = normal(layout.size(), 3);
  VectorOf<float> first;
  for (const int threads : {1, 2, 3}) {
    VectorOf<float> w = VectorOf<float>::Zero(layout.size()), m = w;
    muon_step(layout, w, g, m, {.rate = 0.1}, {.steps = 1, .threads = threads});
    if (threads == 1) first = w;
    EXPECT_TRUE(w == first) << threads << " threads";
  }
}

TEST(Muon, RefusesOptionsWithoutSense) {
  Layout layout;
  layout.add_table("table", 4, 3, {});
  layout.add_matrix("w", 3, 4);
  EXPECT_NO_THROW(require_valid({.by_adamw = {"w"}}, layout));
  EXPECT_THROW(require_valid({.by_adamw = {"table"}}, layout),
               std::invalid_argument);
  EXPECT_THROW(require_valid({.by_adamw = {"v"}}, layout),
               std::invalid_argument);
  EXPECT_THROW(require_valid({.rate = 0.0}, layout), std::invalid_argument);
  EXPECT_THROW(require_valid({.momentum = 1.0}, layout), std::invalid_argument);
  EXPECT_THROW(require_valid({.steps = 0}, layout), std::invalid_argument);
  VectorOf<float> w(24), m(24), g(23);
  EXPECT_THROW(muon_step(layout, w, g, m, {}, {}), std::invalid_argument);
}

}  // namespace muon_test
}  // namespace lipscope::test
