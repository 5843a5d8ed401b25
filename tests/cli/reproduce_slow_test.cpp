#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/cli/reproduced.h"
#include "tests/support/shared_files.h"

namespace lipscope {
namespace reproduce_slow_test {

using nlohmann::json;
using test::reproduced;

TEST(Reproduce, KimTightnessIsTheTable) {
  struct Line {
    double above, closed_form;
    double found;  // 0: not known
  };
  const std::map<double, Line> table = {
      {3, {2.8522, 2.2192, 2.29224}},  {5, {3.8713, 3.0356, 3.10779}},
      {9, {5.1605, 4.1408, 4.20459}},  {21, {7.2182, 6.0011, 6.05030}},
      {51, {9.5906, 8.2260, 8.26241}}, {101, {11.5437, 10.0938, 0.0}},
      {501, {16.4525, 14.8638, 0.0}},  {1001, {18.6853, 17.0542, 0.0}}};
  int closed = 0, found = 0;
  for (const json& r : reproduced("kim-tightness")) {
    const json& p = r["parameters"];
    if (!p.contains("series")) continue;
    const auto line = table.find(p["x"].get<double>());
    if (line == table.end()) continue;
    const double lower = r["lower"];
    EXPECT_EQ(r["upper_by"], "kim21_inf");
    EXPECT_NEAR(r["upper"].get<double>(), line->second.above, 1e-4);
    if (p["series"] == "closed form") {
      EXPECT_NEAR(lower, line->second.closed_form, 1e-4);
      EXPECT_NEAR(r["details"]["formula"].get<double>(), lower, 1e-9);
      ++closed;
    } else {
      EXPECT_GE(lower, line->second.closed_form);
      if (line->second.found > 0.0) {
        EXPECT_NEAR(lower, line->second.found, 1e-5 * line->second.found);
      }
      ++found;
    }
  }
  EXPECT_EQ(closed, 8);
  EXPECT_EQ(found, 7);  // N = 201 is not in the table, 1001 not searched
}

// L2 attention comes back to 1e-10 for each c, divided by its bound at least by
// c in each iteration; dot-product attention on wide inputs does not.
TEST(Reproduce, KimInversionInvertsL2AndNotDotProduct) {
  int l2 = 0, contractive = 0, dot = 0;
  std::map<std::string, double> before;
  for (const json& r : reproduced("kim-inversion")) {
    const json& p = r["parameters"];
    if (!p.contains("series")) continue;
    const std::string series = p["series"];
    const double c = p["scale"], width = p["width"], k = p["x"];
    if (series.rfind("Contractive-L2", 0) == 0) {
      EXPECT_LE(r["lower"].get<double>(), r["upper"].get<double>());
      EXPECT_LE(r["details"]["worst_ratio"].get<double>(), c * 1.002);
      // NumPy's mean over 1000 draws of Glorot's weights, and four deviations
      EXPECT_NEAR(r["details"]["divisor"].get<double>(), 6763.0, 4 * 404.0);
      // from row to row, while rounding does not show
      const std::string curve = series + p["experiment"].get<std::string>();
      const double error = r["lower"];
      if (before.contains(curve) && error > 1e-13) {
        EXPECT_LE(error, c * before[curve]) << r;
      }
      before[curve] = error;
    }
    if (k < 100.0) continue;
    if (r["kind"] == "l2") {
      EXPECT_LE(r["lower"].get<double>(), 1e-10) << r;
      EXPECT_EQ(r["status"], "converged");
      ++(series[0] == 'L' ? l2 : contractive);
    } else if (width == 10.0) {
      EXPECT_EQ(r["status"], "not-converged");
      EXPECT_TRUE(r["lower"].is_null() || r["lower"].get<double>() > 0.1) << r;
      ++dot;
    }
  }
  EXPECT_EQ(l2, 6);
  EXPECT_EQ(contractive, 6);
  EXPECT_EQ(dot, 3);
}

TEST(Reproduce, CastinAdversarialGrowsLikeTheRootThenNoMore) {
  const auto records = reproduced("castin-adversarial");
  std::map<std::string, std::map<double, double>> curves;
  for (const json& r : records) {
    const json& p = r["parameters"];
    if (!p.contains("series")) continue;
    const double lower = r["lower"];
    const std::string where = p["experiment"].get<std::string>() + "|" +
                              p["series"].get<std::string>();
    curves[where][p["x"].get<double>()] = lower;
    ASSERT_TRUE(r["upper"].is_number());
    if (p["series"] == "formula") {
      EXPECT_EQ(r["upper_by"], "castin24_ball");
    } else if (p["series"] == "construction") {
      EXPECT_GE(lower * (1 + 1e-9), r["details"]["formula"].get<double>());
    }
  }
  const auto curve = [&](const std::string& size, const std::string& mask,
                         const std::string& series) {
    return curves.at("castin-adversarial, gamma R^2 = " + size + ", mask " +
                     mask + "|" + series);
  };
  EXPECT_NEAR(curve("2", "none", "construction").at(20), 6.8825, 1e-4);
  EXPECT_NEAR(curve("2", "causal", "construction").at(20), 6.0977, 1e-4);
  for (const std::string mask : {"none", "causal"}) {
    for (const auto& [n, found] : curve("2", mask, "best found"))
      EXPECT_GE(found * (1 + 1e-9), curve("2", mask, "construction").at(n));
    // fourfold n: at least twofold while n is far below e^{2γR²} = 518, and
    // next to nothing where it is far above e^{2γR²} = 9.5
    const auto large = curve("3.125", mask, "construction");
    EXPECT_GT(large.at(16) / large.at(4), 2.0) << mask;
    const auto small = curve("1.125", mask, "formula");
    EXPECT_LT(small.at(512) / small.at(128), 1.1) << mask;
  }
}

TEST(Reproduce, ReadsHeadsOfGpt2) {
  const auto shared = test::shared_folder();
  if (!shared) GTEST_SKIP() << "no folder of models";
  const auto folder = *shared / "models/gpt2-124M-attention-only";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no GPT-2";
  int figures = 0;
  std::map<std::string, std::map<double, double>> curves;
  for (const json& r :
       reproduced("castin-adversarial --model " + folder.string())) {
    const json& p = r["parameters"];
    if (!p.contains("series")) {
      ++figures;
      continue;
    }
    EXPECT_TRUE(r["model_sha256"].is_string());
    EXPECT_EQ(r["d"], 768);
    if (p["series"] != "construction") continue;
    curves[p["experiment"]][p["x"].get<double>()] = r["lower"];
    EXPECT_TRUE(r["upper"].is_number());
    EXPECT_GE(r["lower"].get<double>() * (1 + 1e-4),
              r["details"]["formula"].get<double>());
  }
  EXPECT_EQ(figures, 3 * 3 * 2);  // layers, radii, masks
  ASSERT_EQ(curves.size(), 18u);
  // fourfold n: twofold where the norm layer lets scores be large, and less
  // than nothing where they are small
  for (const auto& [figure, curve] : curves) {
    ASSERT_EQ(curve.size(), 4u);
    const double growth = curve.at(512) / curve.at(128);
    if (figure.find("R of the norm layer") != std::string::npos) {
      EXPECT_NEAR(growth, 2.0, 0.05) << figure;
    } else if (figure.find("layer 0") != std::string::npos &&
               figure.find("R^2 = 2, mask none") != std::string::npos) {
      EXPECT_LT(growth, 1.0);
    }
  }
}

TEST(Reproduce, ANormLayerBoundsHeadsOfMiniLm) {
  const auto shared = test::shared_folder();
  if (!shared) GTEST_SKIP() << "no folder of models";
  const auto folder = *shared / "models/minilm-l6-v2-fp16";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no MiniLM";
  int layers = 0;
  std::map<std::string, double> at_ten;
  for (const json& r : reproduced("layer-norm --model " + folder.string())) {
    const json& p = r["parameters"];
    if (!p.contains("series")) continue;
    ASSERT_TRUE(r["upper"].is_number() || r["upper_log10"].is_number()) << r;
    const std::string of = p["experiment"];
    if (p["series"] != "without norm, family") continue;
    if (std::abs(p["x"].get<double>() - 10.0) < 1e-6) at_ten[of] = r["lower"];
    if (p["x"].get<double>() < 999.0) continue;
    EXPECT_NEAR(r["lower"].get<double>() / at_ten.at(of), 1e4, 3e3) << of;
    ++layers;
  }
  EXPECT_EQ(layers, 3);
}

}  // namespace reproduce_slow_test
}  // namespace lipscope
