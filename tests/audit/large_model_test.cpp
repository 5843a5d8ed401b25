// A model whose layers do not fit into memory together: the same numbers, and
// no more is read or kept than is needed.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>

#include "lipscope/audit/bound.h"
#include "lipscope/audit/measure.h"
#include "lipscope/audit/search.h"
#include "lipscope/io/npy.h"
#include "tests/model/folders.h"

namespace lipscope::audit {
namespace large_model_test {

using nlohmann::ordered_json;
using test::TemporaryFolder;

ModelConfig config_of(Index layers) {
  ModelConfig config = test::small_config(Architecture::llama);
  config.layers = layers;
  return config;
}

MeasureRequest request_of(const TemporaryFolder& folder, bool large) {
  MeasureRequest request;
  request.source.model = folder.path();
  request.source.token_ids = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8,
                              9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4};
  request.source.lengths = "3,5";
  request.source.samples = 2;
  request.source.layer_memory = large ? 0.0 : 1e9;
  request.solver.threads = 2;
  return request;
}

std::vector<ordered_json> rows_of(const MeasureRequest& request) {
  Records records;
  measure(request, records);
  std::vector<ordered_json> rows;
  for (ordered_json row : records.rows()) {
    EXPECT_GT(row["details"]["input_seconds"].get<double>(), 0.0);
    row.erase("seconds");
    for (const char* time : {"upper_seconds", "input_seconds"})
      row["details"].erase(time);
    rows.push_back(std::move(row));
  }
  return rows;
}

TEST(LargeModel, GivesTheRecordsOfAModelThatIsKeptByLayer) {
  const TemporaryFolder folder;
  const ModelConfig config = config_of(4);
  test::write_model(folder.path(), config, test::random_tensors(config, 1));
  for (const char* map : {"attn", "core", "residual", "block"})
    for (const NumberFormat dtype : {NumberFormat::f32, NumberFormat::f64}) {
      SCOPED_TRACE(map);
      MeasureRequest kept = request_of(folder, false),
                     large = request_of(folder, true);
      for (MeasureRequest* request : {&kept, &large}) {
        request->selection.map = map;
        request->selection.layers = "3,0,2";
        request->source.dtype = dtype;
        if (map == std::string("attn")) request->selection.heads = "each";
      }
      std::vector<ordered_json> expected = rows_of(kept);
      std::stable_sort(
          expected.begin(), expected.end(),
          [](const auto& a, const auto& b) { return a["layer"] < b["layer"]; });
      EXPECT_EQ(rows_of(large), expected);
      EXPECT_EQ(expected.size(), map == std::string("attn") ? 48u : 12u);
    }
}

TEST(LargeModel, GoesOnWhereItWasStopped) {
  const TemporaryFolder folder;
  const ModelConfig config = config_of(4);
  test::write_model(folder.path(), config, test::random_tensors(config, 1));
  const MeasureRequest large = request_of(folder, true);
  const std::vector<ordered_json> expected = rows_of(large);
  MeasureRequest part = large;
  part.selection.layers = "1";
  part.source.lengths = "3";
  const std::string file = folder / "r.jsonl";
  {
    Records records({.file = file});
    measure(part, records);
  }
  {
    Records again({.file = file, .resume = true});
    EXPECT_GT(measure(large, again).input_seconds, 0.0);
    ASSERT_EQ(again.rows().size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      for (const char* field : {"layer", "n", "sample", "lower", "upper"})
        EXPECT_EQ(again.rows()[i][field], expected[i][field]) << i << field;
  }
  Records third({.file = file, .resume = true});
  EXPECT_EQ(measure(large, third).input_seconds, 0.0);
}

// ---- what is read

// where any number of it is read, that is an InputError
void poison(test::Tensors& tensors,
            const std::function<bool(const std::string&)>& spared) {
  for (auto& [name, tensor] : tensors)
    if (!spared(name))
      tensor.values.setConstant(std::numeric_limits<double>::quiet_NaN());
}

bool begins(const std::string& name, const std::string& with) {
  return name.rfind(with, 0) == 0;
}

std::vector<ordered_json> lowers(const std::vector<ordered_json>& rows) {
  std::vector<ordered_json> found;
  for (const ordered_json& row : rows)
    found.push_back({row["layer"], row["n"], row["lower"], row["upper"]});
  return found;
}

TEST(LargeModel, ReadsNothingBeyondWhatThePassToALayerNeeds) {
  const ModelConfig config = config_of(4);
  const test::Tensors sound = test::random_tensors(config, 1);
  const TemporaryFolder whole, rest;
  test::write_model(whole.path(), config, sound);
  test::Tensors poisoned = sound;
  poison(poisoned, [](const std::string& name) {
    return begins(name, "embed_tokens") || begins(name, "layers.0.") ||
           begins(name, "layers.1.self_attn") ||
           begins(name, "layers.1.input_layernorm");
  });
  test::write_model(rest.path(), config, poisoned);
  for (const bool large : {false, true}) {
    MeasureRequest of_whole = request_of(whole, large),
                   of_rest = request_of(rest, large);
    of_whole.selection.layers = of_rest.selection.layers = "1";
    EXPECT_EQ(lowers(rows_of(of_rest)), lowers(rows_of(of_whole))) << large;
    // what is poisoned is refused as soon as it is asked for
    of_rest.selection.layers = "2";
    EXPECT_THROW(rows_of(of_rest), InputError) << large;
  }
}

TEST(LargeModel, ReadsOneLayerAloneWhereNoPassIsNeeded) {
  const ModelConfig config = config_of(4);
  const TemporaryFolder folder;
  test::Tensors tensors = test::random_tensors(config, 1);
  poison(tensors, [](const std::string& name) {
    return begins(name, "layers.1.self_attn") ||
           begins(name, "layers.1.input_layernorm");
  });
  test::write_model(folder.path(), config, tensors);
  write_npy(folder / "x.npy", gaussian(5, config.width, Rng(2)));
  for (const bool large : {false, true}) {
    SourceOptions source;
    source.model = folder.path();
    source.layer_memory = large ? 0.0 : 1e9;
    SelectionOptions selection;
    selection.layers = "1";

    MeasureRequest given;
    given.source = source;
    given.source.input = folder / "x.npy";
    given.selection = selection;
    Records measured;
    EXPECT_NO_THROW(measure(given, measured));
    EXPECT_EQ(measured.rows().size(), 1u);
    EXPECT_FALSE(measured.rows()[0].contains("details") &&
                 measured.rows()[0]["details"].contains("input_seconds"));

    source.lengths = "4";
    source.radius = Radius::norm_layer();
    Records bounded, found;
    EXPECT_NO_THROW(bound({.source = source, .selection = selection}, bounded));
    EXPECT_FALSE(bounded.rows().empty());
    SearchRequest search_request{.source = source, .selection = selection};
    search_request.search.restarts = 1;
    search_request.search.max_evaluations = 5;
    EXPECT_NO_THROW(search(search_request, found));
    EXPECT_FALSE(found.rows().empty());

    given.selection.layers = "2";
    Records none;
    EXPECT_THROW(measure(given, none), InputError);
  }
}

// ---- memory

constexpr const char* folder_of_child = "LIPSCOPE_TEST_FOLDER";

// Runs in a process of its own, whose memory is looked at; see below.
TEST(LargeModel, DISABLED_MeasuresInAChild) {
  const char* folder = std::getenv(folder_of_child);
  ASSERT_NE(folder, nullptr);
  MeasureRequest request;
  request.source.model = folder;
  request.source.token_ids = {3, 1, 4, 1, 5, 9, 2, 6};
  request.source.lengths = "8";
  request.source.samples = 1;
  request.source.layer_memory = std::getenv("LIPSCOPE_TEST_KEEPS") ? 1e9 : 0.0;
  request.selection.map = "block";
  request.solver.max_steps = 2;
  request.solver.threads = 1;
  request.certificate = "none";
  Records records;
  measure(request, records);
  EXPECT_FALSE(records.rows().empty());
  // what wait4 says would include this process before it became another program
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (begins(line, "VmHWM:"))
      test::write_file(std::filesystem::path(folder) / "peak", line.substr(6));
}

// a model of width 128, all of whose layers have the same weights
void write_deep_model(const std::filesystem::path& folder, Index layers) {
  ModelConfig config = config_of(1);
  config.width = 128;
  config.mlp_width = 512;
  config.heads = config.key_heads = 4;
  config.head_width = 32;
  const test::Tensors one = test::random_tensors(config, 1);
  test::Tensors all;
  for (const auto& [name, tensor] : one)
    for (Index l = 0; l < layers; ++l)
      all[begins(name, "layers.0.")
              ? "layers." + std::to_string(l) + name.substr(8)
              : name] = tensor;
  config.layers = layers;
  test::write_file(folder / "config.json", test::config_json(config));
  test::write_tensors(folder / "model.safetensors", all, "BF16");
}

// megabytes that were resident at most, of the file and of all else
double peak_of_child(const std::filesystem::path& folder, bool keeps) {
  const pid_t child = fork();
  if (child == 0) {
    setenv(folder_of_child, folder.c_str(), 1);
    if (keeps) setenv("LIPSCOPE_TEST_KEEPS", "1", 1);
    execl("/proc/self/exe", "audit_test", "--gtest_brief=1",
          "--gtest_also_run_disabled_tests",
          "--gtest_filter=LargeModel.DISABLED_MeasuresInAChild", nullptr);
    _exit(127);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the child failed";
  return std::stod(test::read_file(folder / "peak")) / 1024;
}

TEST(LargeModel, HasOneLayerInMemoryHoweverManyThereAre) {
  const TemporaryFolder few, many;
  write_deep_model(few.path(), 16);
  write_deep_model(many.path(), 64);
  const double least = peak_of_child(few.path(), false),
               most = peak_of_child(many.path(), false);
  // 48 layers more are 25 MB in the file, of which the kernel may leave pages
  // beside those that were released (mapped_file_test looks at these)
  EXPECT_LT(most, least + 30) << "megabytes";
  // where layers are kept, each of them takes 2 MB in f64 alone
  EXPECT_GT(peak_of_child(many.path(), true),
            peak_of_child(few.path(), true) + 48 * 2)
      << "megabytes";
}

}  // namespace large_model_test
}  // namespace lipscope::audit
