// certify on a small folder of every family that is read.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lipscope/audit/certify.h"
#include "lipscope/core/errors.h"
#include "lipscope/model/pass.h"
#include "tests/model/folders.h"
#include "tests/text/vocabularies.h"

namespace lipscope::audit {
namespace certify_families_test {

using nlohmann::json;

// [UNK], [MASK] and the letters from a to r
std::vector<std::string> pieces() {
  std::vector<std::string> all = {"[UNK]", "[MASK]"};
  for (char letter = 'a'; letter <= 'r'; ++letter) all.emplace_back(1, letter);
  return all;
}

const std::string text = "b a d c e f h g i";

// The folder of a family as tests/model/golden has its configuration and the
// names of its tensors, with random numbers, and more tensors if they are
// given.
struct Folder {
  explicit Folder(const std::string& family, const json& more = {}) {
    std::ifstream file(LIPSCOPE_SOURCE "/tests/model/golden/" + family +
                       ".json");
    json golden = json::parse(file);
    golden["tensors"].update(more.is_null() ? json::object() : more);
    test::write_file(folder / "config.json", golden["config"].dump());
    test::Tensors tensors;
    for (const auto& [name, shape] : golden["tensors"].items()) {
      const auto axes = shape.get<TensorShape>();
      Index rows = 1;
      for (std::size_t a = 0; a + 1 < axes.size(); ++a) rows *= axes[a];
      Matrix values =
          0.3 * gaussian(rows, axes.back(), Rng(7).split(tensors.size()));
      if (axes.size() == 1 && name.ends_with("weight")) values.array() += 1.0;
      tensors[name] = {axes, values};
    }
    test::write_tensors(folder / "model.safetensors", tensors, "F64");
    test::write_file(folder / "tokenizer.json",
                     test::word_piece_json(pieces()).dump());
    test::write_file(folder / "text.txt", text);
  }

  CertifyRequest request() const {
    return {.folder = folder.path(),
            .text = {.text = folder / "text.txt"},
            .positions = 4,
            .context = 5,
            .attack = {.targets = 2, .restarts = 1, .iterations = 10},
            .threads = 1};
  }

  test::TemporaryFolder folder;
};

// what the records of an answered question have in common
void expect_answers(const std::vector<nlohmann::ordered_json>& rows,
                    const std::string& family) {
  ASSERT_EQ(rows.size(), 4u) << family;
  for (const nlohmann::ordered_json& r : rows) {
    const nlohmann::ordered_json& details = r["details"];
    ASSERT_TRUE(r["lower"].is_number()) << family << r;
    EXPECT_TRUE(std::isfinite(details["lower_log10"].get<double>())) << family;
    EXPECT_LT(details["lower_log10"].get<double>(), 0.0) << family;
    ASSERT_TRUE(r["upper"].is_number()) << family;
    EXPECT_LE(r["lower"].get<double>(), r["upper"].get<double>()) << family;
    EXPECT_LE(details["lower_log10"].get<double>(),
              r["upper_log10"].get<double>())
        << family;
    EXPECT_NE(details["predicted"], details["becomes"]) << family;
    // the constants by part, of all layers
    bool attention = false, mlp = false;
    for (const auto& layer : details["parts_log10"]) {
      attention = attention || layer.contains("attention");
      mlp = mlp || layer.contains("mlp");
    }
    EXPECT_TRUE(attention && mlp) << family << details;
    EXPECT_FALSE(details.contains("nothing_proved")) << family;
  }
}

TEST(AuditCertify, AnswersForEveryFamilyThatPredictsTheNextToken) {
  for (const char* family : {"gpt2",          "opt",
                             "opt_post_norm", "llama",
                             "llama3",        "mistral_window",
                             "qwen2",         "qwen3",
                             "gemma",         "gemma3_window",
                             "phi",           "phi3",
                             "gptj",          "gpt_neox",
                             "stablelm",      "stablelm_parallel",
                             "olmo",          "olmo2",
                             "granite",       "smollm3"}) {
    const Folder folder(family);
    Records records;
    const Certified found = certify(folder.request(), records);
    EXPECT_EQ(found.unbounded, "") << family;
    expect_answers(records.rows(), family);
    // what is predicted, by a pass of its own
    const Model model = load_model(folder.folder.path());
    const std::vector<Index> ids = {3, 2, 5, 4};
    const Matrix exact =
        logits(model, ForwardPass<double>(model, {.threads = 1})(ids).last, 1);
    for (Index i = 0; i < 4; ++i) {
      Index predicted = 0;
      exact.row(i).maxCoeff(&predicted);
      EXPECT_EQ(
          records.rows()[static_cast<std::size_t>(i)]["details"]["predicted"],
          pieces()[static_cast<std::size_t>(predicted)])
          << family;
    }
  }
}

json shape(std::vector<Index> axes) { return axes; }

TEST(AuditCertify, AsksBertAboutMaskedTokens) {
  std::ifstream file(LIPSCOPE_SOURCE "/tests/model/golden/bert.json");
  const Index d = json::parse(file)["config"]["hidden_size"];
  const std::string at = "cls.predictions.transform.";
  const Folder folder("bert", {{at + "dense.weight", shape({d, d})},
                               {at + "dense.bias", shape({d})},
                               {at + "LayerNorm.weight", shape({d})},
                               {at + "LayerNorm.bias", shape({d})},
                               {"cls.predictions.bias", shape({20})}});
  Records records;
  certify(folder.request(), records);
  expect_answers(records.rows(), "bert");

  // the same by hand: the token is masked, and the head reads its state
  const Model model = load_model(folder.folder.path());
  const auto tensor = [&](const std::string& name, TensorShape axes) {
    return model.parameters.matrix({name, std::move(axes)});
  };
  const double epsilon = model.config.epsilon;
  for (Index i = 0; i < 4; ++i) {
    std::vector<Index> ids = {3, 2, 5, 4, 6};
    const Index own = ids[static_cast<std::size_t>(i)];
    ids[static_cast<std::size_t>(i)] = 1;
    const Matrix last = ForwardPass<double>(model, {.threads = 1})(ids).last;
    Vector h = tensor(at + "dense.weight", {d, d}) * last.row(i).transpose() +
               tensor(at + "dense.bias", {d}).transpose();
    for (double& t : h) t *= 0.5 * std::erfc(-t * std::sqrt(0.5));
    h.array() -= h.mean();
    h *= 1 / std::sqrt(h.squaredNorm() / static_cast<double>(d) + epsilon);
    h = h.cwiseProduct(tensor(at + "LayerNorm.weight", {d}).row(0).transpose());
    h += tensor(at + "LayerNorm.bias", {d}).row(0).transpose();
    const Vector z = tensor("embeddings.word_embeddings.weight", {20, d}) * h +
                     tensor("cls.predictions.bias", {20}).row(0).transpose();
    Index predicted = 0;
    z.maxCoeff(&predicted);
    const auto& r = records.rows()[static_cast<std::size_t>(i)];
    EXPECT_EQ(r["details"]["predicted"],
              pieces()[static_cast<std::size_t>(predicted)]);
    EXPECT_EQ(r["details"]["next"], pieces()[static_cast<std::size_t>(own)]);
    EXPECT_EQ(r["parameters"]["to"], "masked token");
    EXPECT_EQ(r["n"], 5);
    EXPECT_EQ(r["mask"], "none");
    Index other = 0;
    for (;
         pieces()[static_cast<std::size_t>(other)] != r["details"]["runner_up"];
         ++other) {
    }
    EXPECT_NEAR(r["details"]["margin"].get<double>(), z[predicted] - z[other],
                1e-9);
  }
}

TEST(AuditCertify, AsksRobertaAndDistilbertAboutMaskedTokens) {
  for (const char* family : {"roberta", "distilbert"}) {
    const Folder folder(family);  // with the head
    Records records;
    certify(folder.request(), records);
    expect_answers(records.rows(), family);
  }
}

TEST(AuditCertify, RefusesByNameWhatPredictsNothing) {
  for (const auto& [family, words] :
       std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"bert", {"bert", "next token", "cls.predictions.bias"}},
           {"mpnet", {"mpnet", "next token"}},
           {"vit", {"vit", "next token"}}}) {
    const Folder folder(family);
    Records records;
    try {
      certify(folder.request(), records);
      FAIL() << family << " was taken";
    } catch (const InputError& wrong) {
      for (const std::string& word : words)
        EXPECT_NE(std::string(wrong.what()).find(word), std::string::npos)
            << family << ": " << wrong.what();
    }
  }
}

TEST(AuditCertify, NeedsAMaskForMaskedTokens) {
  const Folder folder("roberta");
  std::vector<std::string> others = pieces();
  others[1] = "z";
  test::write_file(folder.folder / "tokenizer.json",
                   test::word_piece_json(others).dump());
  Records records;
  EXPECT_THROW(certify(folder.request(), records), InputError);
}

}  // namespace certify_families_test
}  // namespace lipscope::audit
