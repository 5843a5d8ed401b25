// What the commands do, asked of the library: a request in, records out.

#include "lipscope/audit/measure.h"

#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

#include "lipscope/attention/dense.h"
#include "lipscope/audit/bound.h"
#include "lipscope/audit/page.h"
#include "lipscope/audit/subject.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"
#include "lipscope/io/npy.h"
#include "lipscope/record/key.h"
#include "lipscope/spectral/dense.h"
#include "tests/io/test_files.h"

namespace lipscope::audit {
namespace measure_test {

MeasureRequest request_of(const std::string& lengths) {
  MeasureRequest request;
  request.source.random = "d=12,heads=3,scale=0.4";
  request.source.lengths = lengths;
  return request;
}

TEST(AuditMeasure, IsTheNormOfTheDenseJacobianInMemoryAlone) {
  const test::TemporaryFolder folder;
  MeasureRequest request = request_of("5");
  request.save_input = folder / "x.npy";
  Records records;
  EXPECT_TRUE(measure(request, records).converged);
  ASSERT_EQ(records.rows().size(), 1u);
  const auto& row = records.rows()[0];
  const Subject subject = load_subject(request.source);
  const double exact = dense_norm(dense_jacobian(subject.layer->weights, {},
                                                 read_npy(request.save_input)))
                           .value;
  EXPECT_NEAR(row["lower"].get<double>(), exact, 1e-9 * exact);
  EXPECT_LE(row["lower"].get<double>(), row["upper"].get<double>());
  EXPECT_EQ(row["quantity"], "constant");
  EXPECT_FALSE(row.contains("command_line"));  // that is for files
}

TEST(AuditMeasure, GoesOnWithWhatTheFileHas) {
  const test::TemporaryFolder folder;
  const std::string file = folder / "r.jsonl";
  std::vector<nlohmann::ordered_json> whole;
  {
    Records records({.file = file});  // holds the file
    measure(request_of("4,8"), records);
    whole = records.rows();
  }

  Index found = -1, left = -1;
  Records again(
      {.file = file, .resume = true, .counted = [&](Index known, Index to_do) {
         found = known, left = to_do;
       }});
  measure(request_of("4,8,16"), again);
  EXPECT_EQ(found, 2);
  EXPECT_EQ(left, 1);
  ASSERT_EQ(again.rows().size(), 3u);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(again.rows()[i]["lower"], whole[i]["lower"]);
}

TEST(AuditMeasure, IsEndedByAnExceptionOfWhoWatchesAndKeepsWhatWasWritten) {
  const test::TemporaryFolder folder;
  const std::string file = folder / "r.jsonl";
  // one after another: jobs that run side by side are written together
  MeasureRequest request = request_of("4:120:4");
  request.solver.threads = 1;
  struct Enough : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  const Watch watch{.working = [](const Work& work) {
    EXPECT_EQ(work.total, 29);
    if (work.done >= 3) throw Enough("enough");
  }};
  {
    Records cut({.file = file});
    EXPECT_THROW(measure(request, cut, watch), Enough);
  }
  Index found = 0;
  Records again({.file = file,
                 .resume = true,
                 .counted = [&](Index known, Index) { found = known; }});
  measure(request, again);
  EXPECT_GE(found, 3);
  EXPECT_LT(found, 29);
  EXPECT_EQ(again.rows().size(), 29u);
}

TEST(AuditMeasure, TouchesNoFileWhereTheRequestIsWrong) {
  const test::TemporaryFolder folder;
  Records records({.file = folder / "r.jsonl"});
  MeasureRequest request = request_of("4");
  request.selection.map = "block";  // a layer by itself has none
  EXPECT_THROW(measure(request, records), InputError);
  EXPECT_EQ(folder.entries(), 0);
}

TEST(AuditBound, IsAboveWhatIsMeasuredWithinItsRadius) {
  const test::TemporaryFolder folder;
  Records measured, bounds;
  measure(request_of("6"), measured);
  BoundRequest request;
  request.source = request_of("6").source;
  request.source.radius =
      Radius::number(measured.rows()[0]["radius_max"].get<double>() * 1.001);
  bound(request, bounds);
  ASSERT_GE(bounds.rows().size(), 2u);
  for (const auto& row : bounds.rows())
    EXPECT_LE(measured.rows()[0]["lower"].get<double>(),
              row["upper"].get<double>())
        << row["upper_by"];
}

TEST(AuditPage, ShowsTheRecordsAndCountsContradictions) {
  const test::TemporaryFolder folder;
  const std::string file = folder / "r.jsonl", page = folder / "p.html";
  {
    Records records({.file = file});
    measure(request_of("4,8"), records);
  }
  WrittenPage written = write_page({.files = {file}, .out = page});
  EXPECT_EQ(written.records, 2u);
  EXPECT_EQ(written.contradictions, 0u);
  EXPECT_EQ(std::filesystem::file_size(page), written.bytes);
  std::ofstream(file, std::ios::app)
      << R"({"schema":2,"command":"measure","lower":2.0,"upper":1.0})" << '\n';
  written = write_page({.files = {file}, .out = page});
  EXPECT_EQ(written.records, 3u);
  EXPECT_EQ(written.contradictions, 1u);
}

}  // namespace measure_test
}  // namespace lipscope::audit
