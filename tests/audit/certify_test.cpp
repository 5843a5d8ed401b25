#include "lipscope/audit/certify.h"

#include <gtest/gtest.h>

#include "lipscope/core/errors.h"
#include "lipscope/model/pass.h"
#include "tests/audit/byte_models.h"

namespace lipscope::audit {
namespace certify_test {

const std::string text = "a river runs by the hill";

CertifyRequest request_in(const test::TemporaryFolder& folder) {
  test::write_file(folder / "text.txt", text);
  return {.folder = folder.path(),
          .text = {.text = folder / "text.txt"},
          .positions = 6,
          .attack = {.targets = 2, .restarts = 0, .iterations = 10},
          .threads = 1};
}

// a pretrained model is asked as one that was trained here
TEST(AuditCertify, AsksAboutTheNextTokenOfAPretrainedModel) {
  const test::TemporaryFolder folder;
  test::write_byte_model(folder.path(), Architecture::gpt2);
  Records records;
  const Certified found = certify(request_in(folder), records);
  EXPECT_TRUE(found.constant.logits);  // norms stand ahead of its attention

  const Model model = load_model(folder.path());
  const std::vector<Index> ids(text.begin(), text.begin() + 6);
  const Matrix exact =
      logits(model, ForwardPass<double>(model, {.threads = 1})(ids).last, 1);
  ASSERT_EQ(records.rows().size(), 6u);
  for (Index i = 0; i < 6; ++i) {
    const nlohmann::ordered_json& r =
        records.rows()[static_cast<std::size_t>(i)];
    Index predicted = 0;
    exact.row(i).maxCoeff(&predicted);
    EXPECT_EQ(r["details"]["predicted"],
              std::string(1, static_cast<char>(predicted)));
    const auto other = static_cast<unsigned char>(
        r["details"]["runner_up"].get<std::string>().at(0));
    EXPECT_NEAR(r["details"]["margin"].get<double>(),
                exact(i, predicted) - exact(i, other), 1e-9);
    EXPECT_EQ(r["details"]["next"], text.substr(i + 1, 1));
    EXPECT_EQ(r["lower_by"], "deviation(row_sums)");
    EXPECT_EQ(r["kind"], "dot");
    EXPECT_GT(r["details"]["gain_log10"].get<double>(), 0.0);
    EXPECT_GT(r["upper"].get<double>(), 0.0);
    EXPECT_LE(r["lower"].get<double>(), r["upper"].get<double>());
  }
}

}  // namespace certify_test
}  // namespace lipscope::audit
