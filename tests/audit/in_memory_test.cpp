// Layers, models and tokens that are in memory, in place of files.

#include <gtest/gtest.h>

#include "lipscope/audit/invert.h"
#include "lipscope/audit/meanfield.h"
#include "lipscope/audit/measure.h"
#include "lipscope/audit/search.h"
#include "lipscope/audit/subject.h"
#include "lipscope/core/errors.h"
#include "lipscope/record/key.h"
#include "tests/model/folders.h"

namespace lipscope::audit {
namespace in_memory_test {

const std::string recipe = "d=12,heads=3,scale=0.4";

SourceOptions made_up(const std::string& kind = "auto") {
  SourceOptions source;
  source.random = recipe;
  source.kind = kind;
  return source;
}

// the same weights, from memory
SourceOptions in_memory(const std::string& kind = "auto") {
  SourceOptions source;
  source.layer = load_subject(made_up(kind)).layer;
  source.kind = kind;
  return source;
}

TEST(LayerInMemory, IsMeasuredAsThatOfARecipe) {
  MeasureRequest by_recipe, by_memory;
  by_recipe.source = made_up();
  by_memory.source = in_memory();
  std::vector<Witness> seen;
  by_recipe.witness = [&](Witness w) { seen.push_back(std::move(w)); };
  by_recipe.source.lengths = "5,7";
  Records first, second;
  measure(by_recipe, first);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[1].row, 1u);
  EXPECT_EQ(seen[1].direction.rows(), 7);

  by_memory.source.tokens = std::make_shared<const Matrix>(seen[1].input);
  measure(by_memory, second);
  const auto &a = first.rows()[1], &b = second.rows()[0];
  EXPECT_EQ(a["lower"], b["lower"]);
  EXPECT_EQ(a["upper"], b["upper"]);
  EXPECT_EQ(b["model"], "in memory");
  EXPECT_EQ(b["input"]["from"], "memory");
  EXPECT_NE(key_of(b).find(b["model_sha256"].get<std::string>()),
            std::string::npos);
}

TEST(LayerInMemory, HasTheHashOfItsContent) {
  const Subject same = load_subject(in_memory()),
                again = load_subject(in_memory());
  EXPECT_EQ(same.sha256, again.sha256);
  LoneLayer changed = *same.layer;
  changed.weights.value(0, 0) += 1e-12;
  SourceOptions source;
  source.layer = std::make_shared<const LoneLayer>(changed);
  EXPECT_NE(load_subject(source).sha256, same.sha256);
}

TEST(LayerInMemory, IsNotOneOfTwoSources) {
  SourceOptions two = in_memory();
  two.random = recipe;
  EXPECT_THROW(load_subject(two), InputError);
  MeasureRequest nowhere;
  nowhere.source = in_memory();
  Records records;
  EXPECT_THROW(measure(nowhere, records), InputError);  // at which tokens?
}

TEST(SearchRequest, ShowsTheTokensOfTheBest) {
  SearchRequest request;
  request.source = in_memory();
  request.source.lengths = "3";
  request.source.radius = Radius::number(1.0);
  request.search.restarts = 0;
  std::vector<Witness> seen;
  request.witness = [&](Witness w) { seen.push_back(std::move(w)); };
  Records records;
  search(request, records);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(records.rows()[seen[0].row]["parameters"]["of"], "best");
  EXPECT_LE(seen[0].input.rowwise().norm().maxCoeff(), 1 + 1e-9);
}

TEST(InvertRequest, TakesYFromMemoryAndShowsX) {
  InvertRequest request;
  request.source = in_memory("l2");
  request.source.kind = "contractive-l2";
  const Matrix y = Matrix::Ones(4, 12);
  request.source.tokens = std::make_shared<const Matrix>(y);
  Matrix x;
  request.witness = [&](Witness w) { x = std::move(w.input); };
  Records records;
  EXPECT_TRUE(invert(request, records).converged);
  EXPECT_EQ(records.rows()[0]["parameters"]["given"], "Y");
  EXPECT_EQ(x.rows(), 4);
}

// a small model, in a folder and in memory
struct Both {
  ModelConfig config = test::small_config(Architecture::bert);
  test::Tensors all = test::random_tensors(config, 1);
  std::map<std::string, std::string> bytes;
  test::TemporaryFolder folder;
  SourceOptions stored, held;

  Both() {
    test::write_model(folder.path(), config, all);
    test::write_file(folder / "ids.txt", "3 1 4 1 5 9");
    auto tensors = std::make_shared<TensorsInMemory>();
    for (const auto& [name, t] : all) {
      bytes[name] = test::encoded(t.values, "F32");
      tensors->tensors[name] = {.format = NumberFormat::f32,
                                .shape = t.shape,
                                .bytes = std::as_bytes(std::span(bytes[name])),
                                .place = "in memory: tensor " + name};
    }
    tensors->sha256 = "abc";
    stored.model = folder.path().string();
    stored.ids = (folder / "ids.txt").string();
    held.model_in_memory =
        std::make_shared<const ModelInMemory>(ModelInMemory{config, tensors});
    held.token_ids = {3, 1, 4, 1, 5, 9};
    stored.lengths = held.lengths = "2,4";
    stored.samples = held.samples = 1;
  }
};

TEST(ModelInMemory, IsMeasuredAsThatOfAFolder) {
  const Both both;
  MeasureRequest from_folder, from_memory;
  from_folder.source = both.stored;
  from_memory.source = both.held;
  Records first, second;
  measure(from_folder, first);
  measure(from_memory, second);
  ASSERT_EQ(first.rows().size(), 4u);
  ASSERT_EQ(second.rows().size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto &a = first.rows()[i], &b = second.rows()[i];
    for (const char* field : {"lower", "upper", "layer", "n", "residual"})
      EXPECT_EQ(a[field], b[field]) << field;
    EXPECT_EQ(a["input"]["sha256"], b["input"]["sha256"]);
    EXPECT_EQ(b["input"]["from"], "ids");
    EXPECT_TRUE(b["input"]["name"].is_null());
    EXPECT_EQ(b["model"], "in memory");
    EXPECT_EQ(b["model_sha256"], "abc");
  }
}

TEST(ModelInMemory, RefusesIdsOutsideTheVocabularyAndTexts) {
  const Both both;
  const auto said = [&](const auto& change) {
    MeasureRequest request;
    request.source = both.held;
    change(request.source);
    Records records;
    return test::message_of<InputError>([&] { measure(request, records); });
  };
  EXPECT_EQ(said([](SourceOptions& o) { o.token_ids[2] = 20; }),
            "ids in memory: id 20 (number 2) is not in the model's vocabulary "
            "of 20");
  EXPECT_EQ(said([](SourceOptions& o) { o.token_ids[2] = -1; }),
            "ids in memory: id -1 (number 2) is not in the model's vocabulary "
            "of 20");
  EXPECT_EQ(said([](SourceOptions& o) { o.text = "t"; }),
            "--text and --ids are two sources of tokens; give one");
  EXPECT_EQ(said([](SourceOptions& o) {
              o.token_ids = {};
              o.text = "t";
            }),
            "--text t: a model in memory has no tokenizer; give --ids FILE");
  EXPECT_NE(
      said([](SourceOptions& o) { o.token_ids = {}; }).find("at which tokens?"),
      std::string::npos);
}

TEST(MeanfieldRequest, TakesMassesAndPositionsInPlaceOfTheLayers) {
  LoneLayer with = *load_subject(made_up()).layer;
  with.x = Matrix::Random(3, 12);
  SourceOptions without = in_memory();
  without.tokens = std::make_shared<const Matrix>(with.x);
  with.mass = Vector{{0.5, 0.3, 0.2}};
  with.position = Vector{{0.0, 0.0, 1.0}};
  MeanfieldRequest of_layer, given;
  of_layer.source.layer = std::make_shared<const LoneLayer>(with);
  given.source = without;
  given.mass = with.mass;
  given.position = with.position;
  Records first, second, plain;
  meanfield(of_layer, first);
  meanfield(given, second);
  ASSERT_EQ(first.rows().size(), second.rows().size());
  for (std::size_t i = 0; i < first.rows().size(); ++i) {
    const auto &a = first.rows()[i], &b = second.rows()[i];
    for (const char* field : {"lower", "upper", "mask", "norm"})
      EXPECT_EQ(a[field], b[field]) << field;
    for (const char* field : {"mass_sha256", "position_sha256"})
      EXPECT_EQ(a["parameters"][field], b["parameters"][field]) << field;
  }
  EXPECT_EQ(second.rows()[0]["norm"], "d2");
  MeanfieldRequest uniform;
  uniform.source = without;
  meanfield(uniform, plain);
  EXPECT_NE(plain.rows()[0]["lower"], second.rows()[0]["lower"]);

  given.mass = Vector{{0.5, 0.5}};
  Records none;
  EXPECT_EQ(test::message_of<InputError>([&] { meanfield(given, none); }),
            "in memory: mass: 2 masses for 3 tokens");
}

}  // namespace in_memory_test
}  // namespace lipscope::audit
