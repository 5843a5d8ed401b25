// lipscope measure, run as a program.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "lipscope/attention/dense.h"
#include "lipscope/core/version.h"
#include "lipscope/io/npy.h"
#include "lipscope/io/safetensors.h"
#include "lipscope/spectral/dense.h"
#include "tests/cli/program.h"
#include "tests/support/layers.h"

namespace lipscope {
namespace measure_test {

using test::expect_refusal;
using test::Folder;
using test::json_lines;
using test::Outcome;

using Tensors = std::map<std::string, Matrix>;

Tensors tensors_of(const AttentionWeights& w) {
  return {{"q", w.query}, {"k", w.key}, {"v", w.value}, {"o", w.output}};
}

class Measure : public testing::Test {
 protected:
  std::string write(const Tensors& tensors, const std::string& name = "w") {
    const std::string path = folder / (name + ".safetensors");
    write_safetensors(path, tensors);
    return path;
  }

  Folder folder;
  const test::LayerCase c{.heads = 3};
  const AttentionWeights weights = test::random_layer(c);
  const Matrix x = test::random_tokens(c);
};

TEST_F(Measure, PrintsTheNormOfTheDenseJacobian) {
  Tensors tensors = tensors_of(weights);
  tensors["x"] = x;
  const std::string file = write(tensors);
  for (const Mask mask : {Mask::none, Mask::causal})
    for (const bool project : {true, false}) {
      const Outcome run = test::lipscope(
          "measure --weights " + file + " --num-heads 3 --json --mask " +
          name_of(mask) + " --map " + (project ? "attn" : "core"));
      ASSERT_EQ(run.code, 0) << run.err;
      const auto record = json_lines(run.out).at(0);
      const double exact =
          dense_norm(
              dense_jacobian(weights, {.mask = mask, .project = project}, x))
              .value;
      EXPECT_NEAR(record["lower"], exact, 1e-9 * exact);
      EXPECT_GE(record["upper"], record["lower"]);
      EXPECT_EQ(record["mask"], name_of(mask));
      EXPECT_EQ(record["map"], project ? "attn" : "core");
      EXPECT_EQ(record["n"], 5);
      EXPECT_EQ(record["model_sha256"].get<std::string>().size(), 64u);
    }
}

TEST_F(Measure, RecordsHaveEveryField) {
  const Outcome run =
      test::lipscope("measure --random d=8,heads=2 --length 4 --json");
  ASSERT_EQ(run.code, 0) << run.err;
  const auto record = json_lines(run.out).at(0);
  for (const char* field :
       {"schema",     "command",    "version",  "model",    "model_sha256",
        "layer",      "head",       "map",      "kind",     "mask",
        "norm",       "n",          "d",        "sample",   "radius_max",
        "radius_rms", "lower",      "lower_by", "upper",    "upper_log10",
        "upper_by",   "upper_whp",  "delta",    "scope",    "residual",
        "steps",      "status",     "dtype",    "seed",     "seconds",
        "input",      "parameters", "quantity", "lower_is", "upper_is"})
    EXPECT_TRUE(record.contains(field)) << field;
  EXPECT_EQ(record.size(), 36u);
  EXPECT_EQ(record["schema"], 2);
  EXPECT_EQ(record["quantity"], "constant");
  EXPECT_EQ(record["lower_is"], "found");
  EXPECT_EQ(record["upper_is"], "proved");
  EXPECT_EQ(record["input"]["from"], "gaussian");
  EXPECT_EQ(record["input"]["sha256"].get<std::string>().size(), 64u);
  EXPECT_TRUE(record["input"]["name"].is_null());
  EXPECT_TRUE(record["input"]["offset"].is_null());
  EXPECT_EQ(record["head"], "all");
}

TEST_F(Measure, TakesTokensFromAFile) {
  const std::string file = write(tensors_of(weights));
  write_npy(folder / "x.npy", x);
  const Outcome run =
      test::lipscope("measure --json --weights " + file +
                     " --num-heads 3 --input " + (folder / "x.npy"));
  ASSERT_EQ(run.code, 0) << run.err;
  const double exact = dense_norm(dense_jacobian(weights, {}, x)).value;
  EXPECT_NEAR(json_lines(run.out).at(0)["lower"], exact, 1e-9 * exact);
}

TEST_F(Measure, MeasuresEachHead) {
  Tensors tensors = tensors_of(weights);
  tensors["x"] = x;
  const Outcome run =
      test::lipscope("measure --json --weights " + write(tensors) +
                     " --num-heads 3 --heads each");
  const auto records = json_lines(run.out);
  ASSERT_EQ(records.size(), 3u);
  for (Index h = 0; h < 3; ++h) {
    const double exact =
        dense_norm(dense_jacobian(weights, {.heads = {h}}, x)).value;
    EXPECT_EQ(records[h]["head"], h);
    EXPECT_NEAR(records[h]["lower"], exact, 1e-9 * exact);
  }
}

TEST_F(Measure, InfNormRefusesWhatItCannotSweep) {
  expect_refusal(
      test::lipscope(
          "measure --random d=768,heads=12 --length 512 --norm inf --json"),
      2, {"inf_norm", "393216"});
}

TEST_F(Measure, SavesAWitnessThatAnyoneCanCheck) {
  Tensors tensors = tensors_of(weights);
  tensors["x"] = x;
  const std::string v = folder / "v.npy", same = folder / "x.npy";
  const Outcome run = test::lipscope("measure --json --num-heads 3 --weights " +
                                     write(tensors) + " --save-direction " + v +
                                     " --save-input " + same);
  ASSERT_EQ(run.code, 0) << run.err;
  const Matrix direction = read_npy(v);
  EXPECT_NEAR(direction.norm(), 1.0, 1e-12);
  EXPECT_EQ(read_npy(same), x);
  const double image =
      (dense_jacobian(weights, {}, x) * flatten(direction)).norm();
  const double lower = json_lines(run.out).at(0)["lower"];
  EXPECT_NEAR(image, lower, 1e-9 * lower);
}

TEST_F(Measure, EnclosesAsAsked) {
  const Outcome run = test::lipscope(
      "measure --json --random d=48,heads=4 --length 20 --enclose 1.05");
  ASSERT_EQ(run.code, 0) << run.err;
  const auto record = json_lines(run.out).at(0);
  ASSERT_FALSE(record["upper_whp"].is_null());
  EXPECT_LE(record["upper_whp"], 1.05 * record["lower"].get<double>());
  EXPECT_GE(record["upper_whp"], record["lower"]);
  EXPECT_EQ(record["status"], "converged");
  EXPECT_EQ(record["delta"], 1e-10);
  EXPECT_EQ(record["upper_by"], "split_paths");
  EXPECT_GE(record["upper"], record["lower"]);
}

TEST_F(Measure, WithoutAnEnclosureFindsTheSameAndSaysNothingLikely) {
  const std::string asked =
      "measure --json --certificate none --random d=48,heads=4 --length 20";
  const auto usual = json_lines(test::lipscope(asked).out).at(0);
  const Outcome run = test::lipscope(asked + " --enclose none");
  ASSERT_EQ(run.code, 0) << run.err;
  const auto record = json_lines(run.out).at(0);
  EXPECT_TRUE(usual["upper_whp"].is_number());
  EXPECT_TRUE(record["upper_whp"].is_null());
  EXPECT_EQ(record["lower"], usual["lower"]);
  EXPECT_EQ(record["steps"], usual["steps"]);
  EXPECT_EQ(record["parameters"]["enclose"], "none");
}

TEST_F(Measure, CertifiesFromAboveByTheNamedCertificate) {
  // 640 columns: nothing is decomposed
  const std::string layer = "measure --json --random d=32,heads=4 --length 20 ";
  const auto record = [&](const std::string& options) {
    const Outcome run = test::lipscope(layer + options);
    EXPECT_EQ(run.code, 0) << run.err;
    return json_lines(run.out).at(0);
  };
  EXPECT_EQ(record("")["upper_by"], "split_paths");
  EXPECT_EQ(record("--heads 2")["upper_by"], "token_pairs");
  EXPECT_EQ(record("--certificate covariances")["upper_by"], "covariances");
  EXPECT_EQ(record("--map core --certificate pairs")["upper_by"],
            "token_pairs");
  for (const std::string options : {"", "--heads 2", "--kind cosine --map core",
                                    "--mask causal --window 5"}) {
    const auto exact = record("--certificate exact " + options);
    EXPECT_EQ(exact["upper_by"], "exact_norm") << options;
    EXPECT_GE(exact["upper"], exact["lower"]) << options;
    EXPECT_LE(exact["upper"], 1.0001 * exact["lower"].get<double>()) << options;
  }
  const auto tight = record("--certificate tight");
  EXPECT_EQ(tight["upper_by"], "leading_apart");
  EXPECT_GE(tight["upper"], tight["lower"]);
  EXPECT_LE(tight["upper"], 2 * tight["lower"].get<double>());
  // earlier words, which ask the same
  for (const auto& [old, present] :
       {std::pair("local", "covariances"), std::pair("blocks", "pairs")}) {
    const auto asked = record("--certificate " + std::string(old));
    EXPECT_EQ(asked["upper_by"],
              present == std::string("pairs") ? "token_pairs" : present);
    EXPECT_EQ(asked["parameters"]["certificate"], present);
  }
  EXPECT_TRUE(record("--certificate none")["upper"].is_null());
  for (const std::string kind : {"l2", "cosine", "sigmoid", "l2-untied"}) {
    const auto found = record("--kind " + kind);
    EXPECT_EQ(found["upper_by"], "split_paths") << kind;
    EXPECT_GE(found["upper"], found["lower"]) << kind;
    EXPECT_LE(found["upper"], 4 * found["lower"].get<double>()) << kind;
  }

  const auto all = record("--certificate all");
  const auto each = all["details"]["certificates"];
  EXPECT_EQ(each.size(), 8u);  // no query bias: the published ones as well
  for (const auto& [name, value] : each.items()) {
    EXPECT_LE(all["lower"], value) << name;
    EXPECT_LE(all["upper"], value) << name;
  }
  EXPECT_EQ(all["upper"], each["exact_norm"]);
  EXPECT_EQ(all["parameters"]["certificate"], "all");

  test::expect_refusal(test::lipscope(layer + "--certificate svd"), 2,
                       {"--certificate svd", "split"});
  test::expect_refusal(
      test::lipscope("measure --random d=64,heads=1 --length 400 --certificate "
                     "exact"),
      2, {"--certificate exact", "25600 rows at n = 400", "at most 2 GB"});
  test::expect_refusal(
      test::lipscope(layer + "--kind l2 --certificate covariances"), 2,
      {"--certificate covariances", "kind l2"});
  test::expect_refusal(
      test::lipscope(layer + "--norm token --certificate split"), 2,
      {"--certificate split", "norm token"});
}

TEST_F(Measure, CertifiesEverySampleAtItsOwnInput) {
  // what stands together in one group is certified as if it stood alone
  const std::string sweep =
      "measure --json --random d=32,heads=4 --length 20 --threads 2 ";
  const auto three = json_lines(test::lipscope(sweep + "--samples 3").out);
  const auto one = json_lines(test::lipscope(sweep + "--samples 1").out);
  EXPECT_EQ(three.at(0)["upper"], one.at(0)["upper"]);
  EXPECT_NE(three.at(1)["upper"], three.at(0)["upper"]);
  EXPECT_NE(three.at(2)["upper"], three.at(1)["upper"]);
}

TEST_F(Measure, GivesTheSameBitsOnOneThreadAndOnTwo) {
  const auto run = [](const char* threads) {
    auto record =
        json_lines(
            test::lipscope(std::string("measure --json --random d=96,heads=4 "
                                       "--length 70 --enclose 1.2 --threads ") +
                           threads)
                .out)
            .at(0);
    return test::without_times(record);
  };
  EXPECT_EQ(run("1"), run("2"));
}

TEST_F(Measure, LittleMemoryChangesNothingButRounding) {
  const auto lower = [](const char* memory) {
    const Outcome run = test::lipscope(
        std::string("measure --json --random d=48,heads=4,scale=0.2 --mask "
                    "causal --length 150 --memory ") +
        memory);
    EXPECT_EQ(run.code, 0) << run.err;
    return json_lines(run.out).at(0)["lower"].get<double>();
  };
  EXPECT_NEAR(lower("1K"), lower("1G"), 1e-6 * lower("1G"));
}

TEST_F(Measure, NotConvergingIsSaidAndIsStrictOnRequest) {
  const std::string hurried =
      "measure --json --random d=64,heads=4 --length 40 --max-steps 2";
  const Outcome run = test::lipscope(hurried);
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(json_lines(run.out).at(0)["status"], "not-converged");
  EXPECT_EQ(test::lipscope(hurried + " --strict").code, 3);
}

TEST_F(Measure, TableNamesWhatIsMeasured) {
  const Outcome run = test::lipscope(
      "measure --random d=8,heads=2 --lengths 2:6:2 --samples 2");
  ASSERT_EQ(run.code, 0) << run.err;
  for (const char* word :
       {"map attn", "kind dot", "mask none", "norm 2", "lower", "upper (whp)"})
    EXPECT_NE(run.out.find(word), std::string::npos) << word;
  EXPECT_EQ(run.err, "");
}

TEST_F(Measure, RadiusScalesTheLongestToken) {
  const auto radius = [](const std::string& r) {
    return json_lines(
               test::lipscope("measure --json --random d=16,heads=2 --length 5 "
                              "--radius " +
                              r)
                   .out)
        .at(0)["radius_max"]
        .get<double>();
  };
  EXPECT_NEAR(radius("7.5"), 7.5, 1e-12);
  EXPECT_NEAR(radius("ln"), 4.0, 1e-12);  // √16 · 1
}

// ---- a journal that survives

std::vector<nlohmann::json> without_times(const std::string& path) {
  auto records = json_lines(test::contents(path));
  for (auto& record : records) record = test::without_times(record);
  return records;
}

TEST_F(Measure, KilledAndResumedGivesTheSameFile) {
  const std::string sweep =
      "measure --random d=64,heads=4 --lengths 4:44:4 --samples 3 --json "
      "--out ";
  const std::string whole = folder / "whole.jsonl", cut = folder / "cut.jsonl";
  ASSERT_EQ(test::lipscope(sweep + whole).code, 0);
  ASSERT_EQ(without_times(whole).size(), 31u);  // and the fit

  // ever later, so that some die in the middle of a measurement, some of a
  // write
  int killed = 0;
  for (int round = 0; round < 12; ++round)
    killed += test::kill_after(30 + 12 * round, sweep + cut + " --resume");
  ASSERT_EQ(test::lipscope(sweep + cut + " --resume").code, 0);
  EXPECT_GT(killed, 0);
  EXPECT_EQ(without_times(cut), without_times(whole));
}

TEST_F(Measure, ResumeCutsATornLineAndDoesItAgain) {
  const std::string sweep =
      "measure --random d=8,heads=2 --lengths 2,3,4 --json --out ";
  const std::string whole = folder / "whole.jsonl",
                    torn = folder / "torn.jsonl";
  ASSERT_EQ(test::lipscope(sweep + whole).code, 0);
  const std::string text = test::contents(whole);
  std::ofstream(torn) << text.substr(0, text.size() - 40);
  ASSERT_EQ(test::lipscope(sweep + torn + " --resume").code, 0);
  EXPECT_EQ(without_times(torn), without_times(whole));
}

TEST_F(Measure, AFullDiskIsExitCodeOne) {
  const Outcome run =
      test::lipscope("measure --random d=8,heads=2 --length 3 --out /dev/full");
  EXPECT_EQ(run.code, 1) << run.err;
  EXPECT_NE(run.err.find("/dev/full"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("No space left"), std::string::npos) << run.err;
}

// ---- refusals

TEST_F(Measure, RefusesAMissingTensor) {
  Tensors tensors = tensors_of(weights);
  tensors.erase("k");
  const std::string file = write(tensors);
  expect_refusal(
      test::lipscope("measure --num-heads 3 --length 4 --weights " + file), 2,
      {file, "\"k\""});
}

TEST_F(Measure, RefusesMisshapenTensors) {
  Tensors tensors = tensors_of(weights);
  tensors["k"] = Matrix::Zero(12, 9);
  expect_refusal(test::lipscope("measure --num-heads 3 --length 4 --weights " +
                                write(tensors)),
                 2, {"k: [12x9]", "q is [12x12]"});
  tensors = tensors_of(weights);
  tensors["o"] = Matrix::Zero(7, 12);
  expect_refusal(test::lipscope("measure --num-heads 3 --length 4 --weights " +
                                write(tensors)),
                 2, {"o: 7 rows", "12 columns"});
}

TEST_F(Measure, RefusesHeadsThatDoNotDivide) {
  expect_refusal(test::lipscope("measure --num-heads 5 --length 4 --weights " +
                                write(tensors_of(weights))),
                 2, {"12 columns", "5 heads"});
}

// a safetensors file byte by byte
void write_raw(const std::string& path, const std::string& header,
               std::uint64_t length, const std::string& data) {
  std::ofstream file(path, std::ios::binary);
  for (int i = 0; i < 8; ++i)
    file.put(static_cast<char>(length >> (8 * i) & 0xff));
  file << header << data;
}

TEST_F(Measure, RefusesNotANumberInWeightsAndTokens) {
  const std::string header =
      R"({"q":{"dtype":"F64","shape":[1,1],"data_offsets":[0,8]},)"
      R"("k":{"dtype":"F64","shape":[1,1],"data_offsets":[8,16]},)"
      R"("v":{"dtype":"F64","shape":[1,1],"data_offsets":[16,24]}})";
  const std::string nan("\0\0\0\0\0\0\xf8\x7f", 8);
  const std::string one("\0\0\0\0\0\0\xf0\x3f", 8);
  const std::string file = folder / "nan.safetensors";
  write_raw(file, header, header.size(), one + nan + one);
  expect_refusal(
      test::lipscope("measure --num-heads 1 --length 4 --weights " + file), 2,
      {file, "\"k\"", "nan"});

  const std::string npy = folder / "nan.npy";
  write_npy(npy, Matrix::Zero(2, 8));
  std::string bytes = test::contents(npy);
  bytes.replace(bytes.size() - 8, 8, nan);
  std::ofstream(npy, std::ios::binary) << bytes;
  expect_refusal(test::lipscope("measure --random d=8,heads=2 --input " + npy),
                 2, {npy, "nan"});
}

TEST_F(Measure, RefusesBrokenFiles) {
  const std::string file = folder / "broken.safetensors";
  const std::string command =
      "measure --num-heads 1 --length 4 --weights " + file;
  const std::string q =
      R"({"q":{"dtype":"F64","shape":[1,1],"data_offsets":[0,8]}})";

  expect_refusal(test::lipscope(command), 2, {file});  // not there
  std::ofstream(file).close();
  expect_refusal(test::lipscope(command), 2, {file});  // empty
  write_raw(file, q.substr(0, 20), q.size(), "");
  expect_refusal(test::lipscope(command), 2, {file});  // header cut off
  write_raw(file, q, std::uint64_t{1} << 60, "12345678");
  expect_refusal(test::lipscope(command), 2, {file});  // header over-long
  write_raw(file, q, q.size(), "1234");
  expect_refusal(test::lipscope(command), 2, {file});  // numbers cut off

  const std::string overflow =
      R"({"q":{"dtype":"F64","shape":[4611686018427387904,4],)"
      R"("data_offsets":[0,8]}})";
  write_raw(file, overflow, overflow.size(), "12345678");
  expect_refusal(test::lipscope(command), 2, {file, "\"q\""});
  const std::string overlap =
      R"({"q":{"dtype":"F64","shape":[1,1],"data_offsets":[0,8]},)"
      R"("v":{"dtype":"F64","shape":[1,1],"data_offsets":[4,12]}})";
  write_raw(file, overlap, overlap.size(), "123456789012");
  expect_refusal(test::lipscope(command), 2, {file});
  expect_refusal(test::lipscope("measure --num-heads 1 --length 4 --weights " +
                                (folder / "")),
                 2, {"lipscope-"});  // a folder
}

TEST_F(Measure, RefusesAnEmptySequence) {
  const std::string npy = folder / "empty.npy";
  write_npy(npy, Matrix(0, 8));
  expect_refusal(test::lipscope("measure --random d=8,heads=2 --input " + npy),
                 2, {npy, "empty"});
  expect_refusal(test::lipscope("measure --random d=8,heads=2 --length 0"), 2,
                 {"0 tokens"});
}

TEST_F(Measure, RefusesTokensOfAnotherWidth) {
  const std::string npy = folder / "x.npy";
  write_npy(npy, Matrix::Ones(3, 7));
  expect_refusal(test::lipscope("measure --random d=8,heads=2 --input " + npy),
                 2, {npy, "7 features", "8"});
}

TEST_F(Measure, RefusesACommandLineItDoesNotUnderstand) {
  const std::string base = "measure --random d=8,heads=2 --length 4 ";
  for (const char* wrong :
       {"--kind cosinus", "--mask sliding", "--norm 3", "--map block",
        "--heads 2", "--heads 0,0", "--tolerance 0", "--enclose 0.9",
        "--delta 0", "--delta 2", "--radius 0", "--radius -1", "--radius nan",
        "--length x", "--lengths 5:2", "--no-such-option", "--resume",
        "--samples 0", "--threads -1"})
    expect_refusal(test::lipscope(base + wrong), 2, {});
  expect_refusal(test::lipscope("measure"), 2, {"--weights", "--random"});
  expect_refusal(test::lipscope("measure --random d=8,heads=3"), 2, {"d=8"});
  expect_refusal(test::lipscope("measure --random depth=8"), 2, {"depth"});
  expect_refusal(test::lipscope("no-such-command"), 2, {});
  expect_refusal(test::lipscope("measure --random d=8,heads=2 --lengths 2,3 "
                                "--save-direction v.npy"),
                 2, {"one measurement"});
}

TEST_F(Measure, RefusesAnOutFileThatIsNotAJournal) {
  const std::string file = folder / "notes.txt";
  std::ofstream(file) << "dear diary\nnothing happened\n";
  expect_refusal(
      test::lipscope("measure --random d=8,heads=2 --length 4 --out " + file),
      2, {file});
  EXPECT_EQ(test::contents(file), "dear diary\nnothing happened\n");
}

TEST(Program, HelpTeaches) {
  const Outcome run = test::lipscope("measure --help");
  EXPECT_EQ(run.code, 0);
  for (const char* word : {"--weights", "--random", "--enclose", "--resume"})
    EXPECT_NE(run.out.find(word), std::string::npos) << word;
  EXPECT_EQ(test::lipscope("--version").out,
            fmt::format("0.2.0 (commit {})\n", commit()));
}

TEST(Doctor, FindsTheIdentitiesSound) {
  const Outcome run = test::lipscope("doctor --json");
  EXPECT_EQ(run.code, 0) << run.err;
  const auto facts = nlohmann::json::parse(run.out);
  EXPECT_EQ(facts["self-test"].size(), 5u);
  for (const auto& identity : facts["self-test"])
    EXPECT_TRUE(identity["holds"]) << identity.dump();
  EXPECT_GT(facts["f32 GEMM, all threads (GFLOP/s)"], 0.1);
  EXPECT_EQ(facts["commit"], commit());
}

TEST_F(Measure, EndsWithCode4WhereBelowExceedsAbove) {
  const std::string out = folder / "r.jsonl";
  const std::string command =
      "measure --random d=8,heads=2 --length 4 --out " + out + " --resume";
  ASSERT_EQ(test::lipscope(command).code, 0);
  ASSERT_EQ(test::lipscope(command).code, 0);

  auto record = json_lines(test::contents(out)).at(0);
  record["lower"] = 2 * record["upper"].get<double>();
  std::ofstream(out) << record.dump() << "\n";
  const Outcome run = test::lipscope(command);
  EXPECT_EQ(run.code, 4);
  EXPECT_NE(run.err.find("from below exceeds one from above"),
            std::string::npos)
      << run.err;
}

}  // namespace measure_test
}  // namespace lipscope
