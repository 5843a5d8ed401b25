// Train a language model whose constant is promised, then prove how far its
// predictions hold.

#include <fmt/core.h>
#include <lipscope/lipscope.h>

#include <filesystem>
#include <fstream>

using namespace lipscope;

int main() {
  // a text that repeats itself, which a small model learns in seconds
  const std::string text = "promised.txt", folder = "promised_model";
  {
    std::ofstream out(text);
    for (int i = 0; i < 400; ++i) out << "the cat sat on the mat. ";
  }
  std::filesystem::remove_all(folder);

  audit::TrainRequest request;
  request.text = text;
  request.folder = folder;
  request.model = {.mixer = Mixer::l2,
                   .layers = 1,
                   .width = 16,
                   .heads = 2,
                   .context = 16,
                   .norm = NormPlace::none};
  request.training.batch = 8;
  request.training.schedule = {.rate = 0.01, .warmup = 10};
  request.training.limits.lipschitz = 20.0;
  request.run.steps = 60;
  request.run.eval_every = 30;
  const audit::Trained trained = audit::train(request);
  const PromisedConstant& promise = *trained.summary.promised;
  fmt::print("promised {:.4g}, certified {:.4g}, test loss {:.4g} nats\n",
             promise.limit, promise.certified, trained.summary.test_nll);

  Records records;  // in memory alone
  audit::certify({.folder = folder,
                  .text = {.text = text, .piece = "test"},
                  .positions = 20},
                 records);
  double least = INFINITY;
  for (const auto& row : records.rows())
    if (!row["lower"].is_null())
      least = std::min(least, row["lower"].get<double>());
  fmt::print("no change below {:.3g} changes any of {} predictions\n", least,
             records.rows().size());
  return promise.certified <= promise.limit && least > 0.0 ? 0 : 1;
}
