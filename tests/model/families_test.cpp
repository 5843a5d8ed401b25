// Every family against Hugging Face's own modules in f64, on small models whose
// weights are a formula: golden/*.json, made by golden/families.py.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lipscope/core/errors.h"
#include "lipscope/model/family.h"
#include "lipscope/model/pass.h"
#include "lipscope/operators/check.h"
#include "lipscope/spectral/dense.h"
#include "lipscope/theory/layer_bounds.h"
#include "lipscope/theory/layer_certificates.h"
#include "lipscope/theory/norm_layer_bound.h"
#include "tests/model/folders.h"

namespace lipscope {
namespace families_test {

using nlohmann::json;

const std::filesystem::path golden_folder =
    LIPSCOPE_SOURCE "/tests/model/golden";

// SplitMix64 from the FNV-1a hash of a name on, as numbers in [−1, 1)
struct Uniform {
  std::uint64_t state = 0xcbf29ce484222325u;

  explicit Uniform(const std::string& name) {
    for (const char c : name)
      state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  double next() {
    std::uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return static_cast<double>(z >> 11) * 0x1p-52 - 1.0;
  }
};

// gains are near 1, the rest near 0
Matrix weight(const std::string& name, const TensorShape& shape) {
  const bool vector = shape.size() == 1;
  Index rows = 1;
  for (std::size_t a = 0; a + 1 < shape.size(); ++a) rows *= shape[a];
  Matrix m(rows, shape.back());
  Uniform uniform(name);
  for (Index i = 0; i < m.size(); ++i)
    m.data()[i] =
        vector ? 0.4 * uniform.next() + (name.ends_with("weight") ? 1.0 : 0.0)
               : 0.7 * uniform.next();
  return m;
}

class EveryFamily : public testing::TestWithParam<std::string> {
 protected:
  EveryFamily() {
    test::write_file(folder.path() / "config.json", golden["config"].dump());
    test::Tensors tensors;
    for (const auto& [name, shape] : golden["tensors"].items()) {
      const auto axes = shape.get<TensorShape>();
      tensors[name] = {axes, weight(name, axes)};
    }
    test::write_tensors(folder.path() / "model.safetensors", tensors, "F64");
    model.emplace(load_model(folder.path()));
    if (golden.contains("padding")) {
      padding.padding_before = golden["padding"][0];
      padding.padding_after = golden["padding"][1];
    }
    states = passed<double>();
  }

  // from the token ids or, of a model that reads none, from layer 0 on
  template <class Real>
  HiddenStates<Real> passed() const {
    const bool embedded = golden.contains("embedded");
    const ForwardPass<Real> pass(
        *model, {.mask = padding, .threads = 1, .from_layer_0 = embedded});
    if (!embedded) return pass(ids);
    const auto rows = golden["embedded"].get<std::vector<std::vector<Real>>>();
    MatrixOf<Real> x(static_cast<Index>(rows.size()), model->config.width);
    for (Index i = 0; i < x.rows(); ++i)
      for (Index j = 0; j < x.cols(); ++j) x(i, j) = rows[i][j];
    return pass.from(x);
  }

  static json read(const std::string& name) {
    std::ifstream file(golden_folder / (name + ".json"));
    return json::parse(file);
  }

  // the map of a line of golden["constants"], and its input
  template <class Real>
  MapPtr<Real> map(const json& line) const {
    ModelMapOptions options{.mask = padding, .threads = 1};
    if (line["map"] == "model") return model_map<Real>(*model, options);
    if (line.contains("head")) options.heads = {line["head"].get<Index>()};
    const MapName name = map_name(line);
    return layer_map<Real>(load_layer(*model, line["layer"], name), name,
                           options);
  }
  static MapName map_name(const json& line) {
    for (const MapName name : {MapName::core, MapName::attn, MapName::residual,
                               MapName::block, MapName::model})
      if (line["map"] == name_of(name)) return name;
    throw std::invalid_argument("no such map");
  }
  const Matrix& point(const json& line) const {
    if (line["map"] == "model") return states.layer[0];
    const Index l = line["layer"];
    const MapName name = map_name(line);
    return name == MapName::core || name == MapName::attn ? states.attention[l]
                                                          : states.layer[l];
  }

  const json golden = read(GetParam());
  const std::vector<Index> ids = golden.value("ids", std::vector<Index>());
  const test::TemporaryFolder folder;
  std::optional<Model> model;
  MaskChoice padding;
  HiddenStates<double> states;
};

TEST_P(EveryFamily, HasTheStatesOfHuggingFacesModules) {
  const auto& norms = golden["layer_input_frobenius"];
  ASSERT_EQ(states.layer.size(), norms.size());
  for (std::size_t l = 0; l < norms.size(); ++l)
    EXPECT_NEAR(states.layer[l].norm(), norms[l].get<double>(),
                1e-12 * norms[l].get<double>())
        << "layer " << l;
  const auto last = golden["last"].get<std::vector<std::vector<double>>>();
  ASSERT_EQ(states.last.rows(), static_cast<Index>(last.size()));
  for (Index i = 0; i < states.last.rows(); ++i)
    for (Index j = 0; j < states.last.cols(); ++j)
      EXPECT_NEAR(states.last(i, j), last[i][j], 1e-10) << i << ", " << j;
  const HiddenStates<float> single = passed<float>();
  EXPECT_LT((single.last.cast<double>() - states.last).norm(),
            1e-4 * states.last.norm());
}

TEST_P(EveryFamily, HasTheLogitsOfHuggingFacesHead) {
  if (!golden.contains("logits_of_last")) {
    if (!has_head(model->config)) {
      EXPECT_THROW(logits<double>(*model, states.last), InputError);
    }
    return;
  }
  const auto expected = golden["logits_of_last"].get<std::vector<double>>();
  const Matrix found = logits<double>(*model, states.last.bottomRows(1));
  ASSERT_EQ(found.cols(), static_cast<Index>(expected.size()));
  for (Index j = 0; j < found.cols(); ++j)
    EXPECT_NEAR(found(0, j), expected[j], 1e-10) << j;
}

TEST_P(EveryFamily, HasTheConstantsOfHuggingFacesModules) {
  ASSERT_GE(golden["constants"].size(), 2u);
  for (const json& line : golden["constants"]) {
    const Matrix J = materialize(*map<double>(line)->linearize(point(line)));
    const double two = line["norms"][0], frobenius = line["norms"][1];
    EXPECT_NEAR(dense_norm(J).value, two, 1e-9 * two) << line;
    EXPECT_NEAR(J.norm(), frobenius, 1e-9 * frobenius) << line;
  }
}

TEST_P(EveryFamily, HasTheDerivativeAndTheAdjointOfEveryMap) {
  for (const json& line : golden["constants"]) {
    const MapPtr<double> f = map<double>(line);
    const Matrix& x = point(line);
    EXPECT_LT(check_derivative(*f, x, Rng(1)).error, 1e-7) << line;
    EXPECT_LT(adjoint_defect(*f->linearize(x), Rng(2)), 1e-12) << line;
  }
}

// What is proved is never below what Hugging Face's modules do.
TEST_P(EveryFamily, HasNoBoundBelowItsConstants) {
  for (const json& line : golden["constants"]) {
    if (line["map"] == "model") continue;
    const Index l = line["layer"], n = point(line).rows();
    const MapName name = map_name(line);
    const LayerWeights layer = load_layer(*model, l, name);
    ModelMapOptions options{.mask = padding, .threads = 1};
    if (line.contains("head")) options.heads = {line["head"].get<Index>()};
    const double exact = line["norms"][0];
    const LayerCertificates made(layer, name, options);
    for (const Certificate which :
         {Certificate::split_paths, Certificate::token_pairs}) {
      const std::optional<Bound> at = made.at(point(line), which);
      ASSERT_TRUE(at) << name_of(which) << line;
      EXPECT_GE(at->value, exact * (1 - 1e-9)) << name_of(which) << line;
      if (name != MapName::core && name != MapName::attn) continue;
      EXPECT_LE(at->value,
                exact * (which == Certificate::split_paths ? 4.0 : 1.8))
          << name_of(which) << line;
    }
    const std::optional<NormWeights> norm = load_input_norm(*model, l);
    if (!norm) continue;
    const TokenSet tokens{norm_layer_radius(*norm), norm};
    std::optional<Bound> over;
    if (name == MapName::core || name == MapName::attn) {
      over = best_bound(
          attention_bounds(layer, name == MapName::attn, options, n, tokens),
          Norm::two);
    } else if (const auto found =
                   layer_bound_everywhere(layer, name, options, n, tokens)) {
      over = found->bound;
    }
    if (over) {
      EXPECT_GE(over->log10, std::log10(exact) - 1e-9) << line;
    }
  }
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(golden_folder))
    if (file.path().extension() == ".json")
      names.push_back(file.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Small, EveryFamily, testing::ValuesIn(cases()),
                         [](const auto& name) { return name.param; });

TEST(Families, AreAllComparedWithHuggingFace) {
  std::set<std::string> compared = {"lipscope"};
  for (const std::string& name : cases()) {
    std::ifstream file(golden_folder / (name + ".json"));
    compared.insert(json::parse(file)["config"]["model_type"]);
  }
  std::string known = known_model_types();
  for (std::size_t at; (at = known.find(" and ")) != known.npos;)
    known.replace(at, 5, ", ");
  std::stringstream names(known);
  for (std::string name; std::getline(names, name, ',');) {
    name.erase(0, name.find_first_not_of(' '));
    EXPECT_TRUE(compared.contains(name)) << name;
  }
}

}  // namespace families_test
}  // namespace lipscope
