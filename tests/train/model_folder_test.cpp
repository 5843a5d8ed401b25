#include "lipscope/train/model_folder.h"

#include <gtest/gtest.h>

#include "lipscope/core/errors.h"
#include "lipscope/train/next_token.h"
#include "lipscope/train/state_file.h"
#include "lipscope/train/training_run.h"
#include "tests/io/test_files.h"
#include "tests/train/small_models.h"

namespace lipscope::test {
namespace model_folder_test {

const Corpus& corpus() {
  static const Corpus c = corpus_of(sentences(1000), 16, "text");
  return c;
}

ModelDescription description(Mixer mixer = Mixer::l2) {
  return {.config = tiny(mixer, corpus()),
          .vocabulary = corpus().vocabulary,
          .training = {{"lr", 0.01}}};
}

const TrainingOptions training{.batch = 4, .dropout = 0.1, .threads = 1};

RunSummary run(const std::filesystem::path& folder, RunOptions options) {
  options.eval_every = 4;
  return train_in_folder(folder, description(), corpus(), training, options);
}

// the lines of metrics.jsonl, without the name of the folder and the speed
std::vector<nlohmann::json> records_in(const TemporaryFolder& folder) {
  std::vector<nlohmann::json> records;
  std::ifstream lines(folder / "metrics.jsonl");
  for (std::string line; std::getline(lines, line);) {
    const std::string name = folder.path().string();
    for (auto at = line.find(name); at != line.npos; at = line.find(name))
      line.replace(at, name.size(), "DIR");
    records.push_back(nlohmann::json::parse(line));
    if (records.back().contains("details"))
      records.back()["details"].erase("characters_per_second");
  }
  return records;
}

TEST(ModelFolder, GivesBackWhatItWasGiven) {
  const TemporaryFolder folder;
  for (const Mixer mixer : all_mixers) {
    const ModelDescription d = description(mixer);
    write_description(folder.path(), d);
    const ModelDescription back = read_description(folder.path());
    EXPECT_EQ(back.config.mixer, mixer);
    EXPECT_EQ(back.config.width, d.config.width);
    EXPECT_EQ(back.config.layers, d.config.layers);
    EXPECT_EQ(back.config.context, d.config.context);
    EXPECT_EQ(back.vocabulary.characters(), d.vocabulary.characters());
    EXPECT_EQ(back.training, d.training);

    const LanguageModel<float> model(d.config);
    const auto weights = model.layout().initial<float>(2);
    write_weights(folder / "w.safetensors", model.layout(), weights);
    EXPECT_EQ(read_weights(folder / "w.safetensors", model.layout()), weights);
  }
}

TEST(ModelFolder, RefusesWhatDoesNotFit) {
  const TemporaryFolder folder;
  EXPECT_THROW(read_description(folder.path()), InputError);
  write_file(folder / "config.json", R"({"model_type": "gpt2"})");
  EXPECT_THROW(read_description(folder.path()), InputError);
  const LanguageModel<float> l2(tiny(Mixer::l2, corpus()));
  const LanguageModel<float> dot(tiny(Mixer::dot, corpus()));
  write_weights(folder / "w.safetensors", l2.layout(),
                l2.layout().initial<float>(2));
  EXPECT_THROW(read_weights(folder / "w.safetensors", dot.layout()),
               InputError);
  LanguageModelConfig wider = tiny(Mixer::l2, corpus());
  wider.hidden = 33;
  EXPECT_THROW(read_weights(folder / "w.safetensors",
                            LanguageModel<float>(wider).layout()),
               InputError);
}

TEST(TrainingRun, GoesOnToTheSameBits) {
  const TemporaryFolder whole, parts;
  run(whole.path(), {.steps = 12});
  // ended in the middle, off the grid of evaluations, twice
  for (const Index end : {3, 7}) {
    const RunSummary summary =
        run(parts.path(), {.steps = 12,
                           .resume = end > 3,
                           .keep_going = [&](Index done, const StepReport&) {
                             return done < end;
                           }});
    EXPECT_EQ(summary.steps, end);
    EXPECT_FALSE(summary.finished);
  }
  const RunSummary summary = run(parts.path(), {.steps = 12, .resume = true});
  EXPECT_EQ(summary.steps, 12);
  for (const char* file : {"model.safetensors", "checkpoint-12.safetensors"})
    EXPECT_EQ(read_file(parts / file), read_file(whole / file)) << file;
  EXPECT_EQ(records_in(parts), records_in(whole));

  // the heads of the figures first, then each evaluation, then the end
  std::vector<Index> steps;
  for (const nlohmann::json& record : records_in(parts)) {
    const Index x = record.at("parameters").value("x", -1);
    if (steps.empty() || steps.back() != x) steps.push_back(x);
  }
  EXPECT_EQ(steps, (std::vector<Index>{-1, 4, 8, 12}));
  EXPECT_EQ(records_in(parts).back()["parameters"]["split"], "test");
  // config, model, metrics, state and one checkpoint
  EXPECT_EQ(parts.entries(), 5);
}

TEST(TrainingRun, WritesItsEndOnceHoweverOftenItGoesOn) {
  const TemporaryFolder whole, longer;
  run(whole.path(), {.steps = 12});
  for (const Index steps : {8, 8, 12})
    run(longer.path(), {.steps = steps, .resume = true});
  EXPECT_EQ(records_in(longer), records_in(whole));
}

// killed between the lines of an evaluation and its checkpoint
TEST(TrainingRun, TakesAwayLinesOfStepsThatAreDoneAgain) {
  const TemporaryFolder whole, killed;
  run(whole.path(), {.steps = 8});
  for (const Index at : {4, 8}) {
    RunOptions options{.steps = 8, .resume = true};
    options.seen = [&](const Evaluation& e) {
      if (e.step == at) throw RunError("killed");
    };
    EXPECT_THROW(run(killed.path(), options), RunError);
  }
  run(killed.path(), {.steps = 8, .resume = true});
  EXPECT_EQ(records_in(killed), records_in(whole));
}

TEST(TrainingRun, KeepsTheBestWeights) {
  const TemporaryFolder folder;
  double best = INFINITY;
  const RunSummary summary =
      run(folder.path(), {.steps = 20, .seen = [&](const Evaluation& seen) {
                            best = std::min(best, seen.valid_nll);
                          }});
  LanguageModel<float> model(tiny(Mixer::l2, corpus()));
  const auto weights =
      read_weights(folder / "model.safetensors", model.layout());
  EXPECT_EQ(score_of(model, weights, corpus().valid, 1).nll, best);
  EXPECT_EQ(summary.best_valid_nll, best);
  EXPECT_EQ(summary.test_nll, score_of(model, weights, corpus().test, 1).nll);
}

TEST(TrainingRun, RefusesAFolderThatHoldsAnotherRun) {
  const TemporaryFolder folder;
  run(folder.path(), {.steps = 4});
  EXPECT_THROW(run(folder.path(), {.steps = 8}), InputError);
  ModelDescription other = description();
  other.training["lr"] = 0.02;
  EXPECT_THROW(train_in_folder(folder.path(), other, corpus(), training,
                               {.steps = 8, .resume = true}),
               InputError);
}

TEST(TrainingRun, RefusesADamagedCheckpoint) {
  const TemporaryFolder folder;
  run(folder.path(), {.steps = 4});
  std::string bytes = read_file(folder / "checkpoint-4.safetensors");
  bytes[bytes.size() - 3] ^= 1;
  write_file(folder / "checkpoint-4.safetensors", bytes);
  EXPECT_THROW(run(folder.path(), {.steps = 8, .resume = true}), InputError);
  write_file(folder / "state.json", "{\"step\": 4}");
  EXPECT_THROW(run(folder.path(), {.steps = 8, .resume = true}), InputError);
}

TEST(StateFile, ComesBackAndRefusesWhatIsNone) {
  const StateFile state{
      .step = 40, .sha256 = "abc", .best_nll = 2.5, .best_step = 20};
  const StateFile back = parse_state(to_text(state), "state.json");
  EXPECT_EQ(back.checkpoint(), "checkpoint-40.safetensors");
  EXPECT_EQ(back.sha256, "abc");
  EXPECT_EQ(back.best_nll, 2.5);
  EXPECT_EQ(back.best_step, 20);
  const auto refused = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json json = nlohmann::json::parse(to_text(state));
    json[key] = value;
    EXPECT_THROW(parse_state(json.dump(), "state.json"), InputError) << key;
  };
  refused("step", -1);
  refused("step", 41);  // of another checkpoint
  refused("best_step", 1e300);
  refused("checkpoint", "../weights.safetensors");
  refused("sha256", 3);
  refused("best_valid_nll", "low");
}

}  // namespace model_folder_test
}  // namespace lipscope::test
