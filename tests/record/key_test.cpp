#include "lipscope/record/key.h"

#include <gtest/gtest.h>

#include "lipscope/record/config_fingerprint.h"
#include "lipscope/record/fingerprint.h"
#include "lipscope/record/record.h"

namespace lipscope {
namespace key_test {

std::string key(const Record& r) { return key_of(to_json(r)); }

// a record in which everything is said
Record whole() {
  Record r;
  r.command = "measure";
  r.model = "folder";
  r.model_sha256 = "0a";
  r.layer = 1, r.head = 2;
  r.map = "attn", r.kind = "dot", r.mask = "none", r.norm = Norm::two;
  r.n = 5, r.d = 8, r.sample = 3;
  r.input = RecordInput{
      .from = "text", .name = "a.txt", .sha256 = "0b", .offset = 40};
  r.radius_max = 1.5, r.radius_rms = 1.25;
  r.parameters = {{"tolerance", 1e-5}, {"max_steps", 300}};
  r.delta = 1e-10;
  r.scope = Scope::input, r.dtype = NumberFormat::f32, r.seed = 7;
  return r;
}

TEST(Key, ForgetsWhatWasFound) {
  Record r = whole();
  const std::string asked = key(r);
  r.radius_max = 2.0, r.radius_rms = 1.0;
  r.lower = 1.0, r.lower_by = NormMethod::golub_kahan_f32;
  r.upper = 3.0, r.upper_log10 = 0.5,
  r.upper_by = KnownBy::bound("split_paths");
  r.upper_whp = 2.0, r.residual = 1e-6, r.steps = 7, r.converged = false;
  r.seconds = 3.0, r.details["best"] = true, r.cut = "budget";
  EXPECT_EQ(key(r), asked);
}

TEST(Key, ForgetsWhereThingsAreOnceTheirContentIsKnown) {
  Record r = whole();
  const std::string asked = key(r);
  const std::string place = place_of(to_json(r));
  r.model = "elsewhere/folder";
  r.sample = 0;
  r.input->name = "b.txt", r.input->offset = 0;
  EXPECT_EQ(key(r), asked);
  EXPECT_NE(place_of(to_json(r)), place);

  // weights without a file have no hash: the recipe is all that is known
  Record made = whole(), other = whole();
  made.model_sha256 = other.model_sha256 = std::nullopt;
  other.model = "random d=8,heads=2";
  EXPECT_NE(key(made), key(other));
}

TEST(Key, HasEverythingThatIsAsked) {
  const std::string asked = key(whole());
  const auto differs = [&](auto change) {
    Record r = whole();
    change(r);
    return key(r) != asked;
  };
  EXPECT_TRUE(differs([](Record& r) { r.command = "search"; }));
  EXPECT_TRUE(differs([](Record& r) { r.model_sha256 = "0c"; }));
  EXPECT_TRUE(differs([](Record& r) { r.layer = 2; }));
  EXPECT_TRUE(differs([](Record& r) { r.layer = {}; }));
  EXPECT_TRUE(differs([](Record& r) { r.head = {}; }));
  EXPECT_TRUE(differs([](Record& r) { r.map = "core"; }));
  EXPECT_TRUE(differs([](Record& r) { r.kind = "l2"; }));
  EXPECT_TRUE(differs([](Record& r) { r.mask = "causal"; }));
  EXPECT_TRUE(differs([](Record& r) { r.norm = Norm::inf; }));
  EXPECT_TRUE(differs([](Record& r) { r.n = 6; }));
  EXPECT_TRUE(differs([](Record& r) { r.d = 9; }));
  EXPECT_TRUE(differs([](Record& r) { r.input = {}; }));
  EXPECT_TRUE(differs([](Record& r) { r.input->from = "ids"; }));
  EXPECT_TRUE(differs([](Record& r) { r.input->sha256 = "0c"; }));
  EXPECT_TRUE(differs([](Record& r) { r.parameters["tolerance"] = 1e-6; }));
  EXPECT_TRUE(differs([](Record& r) { r.parameters["enclose"] = 1.05; }));
  EXPECT_TRUE(differs([](Record& r) { r.delta = 1e-9; }));
  EXPECT_TRUE(differs([](Record& r) { r.scope = Scope::ball; }));
  EXPECT_TRUE(differs([](Record& r) { r.dtype = NumberFormat::f64; }));
  EXPECT_TRUE(differs([](Record& r) { r.seed = 8; }));
  EXPECT_TRUE(differs([](Record& r) { r.value_of = "loss"; }));
}

TEST(Key, DoesNotDependOnTheOrderOfParametersNorOnTheirWayThroughAFile) {
  Record r = whole();
  r.parameters = {{"max_steps", 300}, {"tolerance", 1e-5}};
  EXPECT_EQ(key(r), key(whole()));
  r.parameters["radius"] = 0.1 + 0.2;
  EXPECT_EQ(key_of(nlohmann::ordered_json::parse(to_json(r).dump())), key(r));
}

TEST(Key, OfAFitKnowsItsPoints) {
  const auto fit = [](const std::vector<std::string>& keys) {
    return key_of(to_json(GrowthRecord{whole(), keys, {}}));
  };
  EXPECT_EQ(fit({"a", "b"}), fit({"b", "a"}));
  EXPECT_NE(fit({"a", "b"}), fit({"a", "c"}));
  EXPECT_NE(fit({"a", "b"}), fit({"a", "b", "c"}));
}

TEST(Key, OfARecordFromAnotherTimeIsNoError) {
  for (const char* line :
       {"{}", R"({"command": 3, "input": [], "parameters": "x"})",
        R"({"input": null, "cut": 5})"})
    EXPECT_FALSE(key_of(nlohmann::ordered_json::parse(line)).empty()) << line;
}

TEST(Answers, AreThoseThatWereNotCut) {
  Record r = whole();
  EXPECT_TRUE(is_complete(to_json(r)));
  r.converged = false;  // the steps that were allowed are done
  EXPECT_TRUE(is_complete(to_json(r)));
  r.cut = "budget";
  EXPECT_FALSE(is_complete(to_json(r)));
}

TEST(Answers, TakeTheNamesOfWhoAsks) {
  Record found = whole(), asked = whole();
  found.lower = 2.5;
  asked.model = "elsewhere", asked.sample = 0, asked.input->offset = 0;
  const auto row = at_the_place_of(to_json(asked), to_json(found));
  EXPECT_EQ(row["lower"], 2.5);
  EXPECT_EQ(row["model"], "elsewhere");
  EXPECT_EQ(row["sample"], 0);
  EXPECT_EQ(row["input"]["offset"], 0);
}

// by sha256sum: printf '1 2 30' | sha256sum
TEST(Fingerprint, OfIdsIsThatOfTheirDigits) {
  const std::vector<Index> ids = {1, 2, 30}, none;
  EXPECT_EQ(fingerprint(ids),
            "61b69d5938e15a468710f7804fffd97c0ae5ff75bcd4230e3b3270c646af92ff");
  EXPECT_NE(fingerprint(std::vector<Index>{12, 30}),
            fingerprint(std::vector<Index>{1, 230}));
}

// python3: hashlib.sha256(b"2 2\n" + struct.pack("<4d", 1, 2, 3, 4.5))
TEST(Fingerprint, OfAMatrixIsThatOfItsShapeAndRows) {
  const Matrix x{{1, 2}, {3, 4.5}};
  EXPECT_EQ(fingerprint(x),
            "b7c7a982ca35c8685896543d563f7ac18bf9b855184c44aa7445ce70437900e5");
  EXPECT_NE(fingerprint(Matrix(x.colwise().reverse())), fingerprint(x));
  EXPECT_NE(fingerprint(Matrix(x.reshaped(1, 4))), fingerprint(x));
}

TEST(Fingerprint, OfTextsTellsWhereOneEnds) {
  EXPECT_NE(fingerprint(std::vector<std::string>{"ab", "c"}),
            fingerprint(std::vector<std::string>{"a", "bc"}));
}

TEST(Fingerprint, OfAModelHasWhatChangesItsNumbers) {
  const ModelConfig config;
  const auto differs = [&](auto change) {
    ModelConfig other = config;
    change(other);
    return fingerprint(other) != fingerprint(config);
  };
  EXPECT_EQ(fingerprint(ModelConfig()), fingerprint(config));
  EXPECT_TRUE(differs([](ModelConfig& c) { c.epsilon = 1e-5; }));
  EXPECT_TRUE(differs([](ModelConfig& c) { c.heads = 6; }));
  EXPECT_TRUE(differs([](ModelConfig& c) { c.key_heads = 6; }));
  EXPECT_TRUE(differs([](ModelConfig& c) { c.activation = Activation::relu; }));
  EXPECT_TRUE(differs([](ModelConfig& c) { c.rope = Rotary{.theta = 1e4}; }));
  EXPECT_TRUE(differs([](ModelConfig& c) { c.norm = NormPlace::pre; }));
  EXPECT_TRUE(differs([](ModelConfig& c) { c.kind = Kind::l2; }));
  EXPECT_TRUE(differs([](ModelConfig& c) { c.contractive = true; }));
  EXPECT_TRUE(differs([](ModelConfig& c) { c.contraction = 0.9; }));
  EXPECT_TRUE(differs([](ModelConfig& c) { c.positions = 256; }));
}

}  // namespace key_test
}  // namespace lipscope
