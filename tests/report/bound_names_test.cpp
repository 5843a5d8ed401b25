#include "lipscope/report/bound_names.h"

#include <gtest/gtest.h>

namespace lipscope {
namespace bound_names_test {

using nlohmann::ordered_json;

TEST(BoundNames, OldNamesOfBoundsBecomeThePresentOnes) {
  EXPECT_EQ(present_bound_name("own_ball"), "column_sums");
  EXPECT_EQ(present_bound_name("own_meanfield"), "column_sums_meanfield");
  EXPECT_EQ(present_bound_name("own_causal"), "column_sums_causal");
  EXPECT_EQ(present_bound_name("own_causal_meanfield"), "hardy_meanfield");
  EXPECT_EQ(present_bound_name("own_token"), "row_sums");
  EXPECT_EQ(present_bound_name("own_l2"), "l2_diagonal_apart");
  EXPECT_EQ(present_bound_name("own_l2_token"), "l2_row_sums");
  EXPECT_EQ(present_bound_name("own_l2_kernel"), "l2_kernel");
  EXPECT_EQ(present_bound_name("own_cosine"), "cosine_column_sums");
  EXPECT_EQ(present_bound_name("own_local"), "covariances");
  EXPECT_EQ(present_bound_name("own_split"), "split_paths");
  EXPECT_EQ(present_bound_name("own_blocks"), "token_pairs");
}

TEST(BoundNames, ANameInsideAnotherIsReplacedWhole) {
  EXPECT_EQ(present_bound_name("model(block(own_l2_kernel))"),
            "model(block(l2_kernel))");
  EXPECT_EQ(present_bound_name("deviation(own_token)"), "deviation(row_sums)");
  EXPECT_EQ(present_bound_name("best masses, own_meanfield"),
            "best masses, column_sums_meanfield");
  // words that only begin or end like an old name are other words
  for (const char* other :
       {"", "dense-svd", "castin24_ball", "column_sums", "own_ballast",
        "known_ball", "own", "block(castin24_ball)", "(", "own_l2x"})
    EXPECT_EQ(present_bound_name(other), other);
}

TEST(BoundNames, OldWordsOfCertificatesBecomeThePresentOnes) {
  EXPECT_EQ(present_certificate_word("blocks"), "pairs");
  EXPECT_EQ(present_certificate_word("local"), "covariances");
  for (const char* same : {"auto", "none", "all", "split", "pairs", "nonsense"})
    EXPECT_EQ(present_certificate_word(same), same);
}

TEST(BoundNames, ARecordOfSchema1IsReadWithThePresentNames) {
  ordered_json record = {
      {"schema", 1},
      {"command", "measure"},
      {"model", "own_ball/"},  // a name of the user's
      {"lower", 1.5},
      {"lower_by", "deviation(own_l2_token)"},
      {"upper", 2.5},
      {"upper_by", "block(own_split)"},
      {"parameters",
       {{"bound", "own_causal"},
        {"certificate", "blocks"},
        {"series", "best masses, own_meanfield"},
        {"text", "own_l2"}}},
      {"details",
       {{"upper_whp_by", "own_blocks"},
        {"best", true},
        {"certificates", {{"castin24_ball", 9.5}, {"own_local", 3.5}}},
        {"bounds_log10", {{"own_causal_meanfield", 0.25}}},
        {"tokens", {"own_token"}}}}};
  ordered_json expected = record;
  expected["lower_by"] = "deviation(l2_row_sums)";
  expected["upper_by"] = "block(split_paths)";
  expected["parameters"]["bound"] = "column_sums_causal";
  expected["parameters"]["certificate"] = "pairs";
  expected["parameters"]["series"] = "best masses, column_sums_meanfield";
  expected["details"]["upper_whp_by"] = "token_pairs";
  expected["details"]["certificates"] = {{"castin24_ball", 9.5},
                                         {"covariances", 3.5}};
  expected["details"]["bounds_log10"] = {{"hardy_meanfield", 0.25}};
  use_present_bound_names(record);
  EXPECT_EQ(record, expected);
}

TEST(BoundNames, FieldsOfAnotherTypeAreLeftAlone) {
  for (const char* text :
       {R"({"upper_by": null, "parameters": null, "details": 7})",
        R"({"upper_by": 3, "parameters": {"bound": [], "certificate": 1}})",
        R"({"details": {"certificates": "own_split", "bounds_log10": null}})",
        R"(["own_ball"])", "{}"}) {
    ordered_json record = ordered_json::parse(text);
    use_present_bound_names(record);
    EXPECT_EQ(record, ordered_json::parse(text));
  }
}

}  // namespace bound_names_test
}  // namespace lipscope
