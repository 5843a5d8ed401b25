#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "lipscope/attention/common_mode.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"
#include "lipscope/experiments/shared_steps.h"
#include "lipscope/model/layer.h"
#include "lipscope/model/model.h"
#include "lipscope/model/pass.h"

namespace lipscope {
namespace {

enum Stream : std::uint64_t { weight_stream, token_stream };

// how long the windows of the text are, and how many there are of each
struct Windows {
  std::vector<Index> lengths;
  Index samples = 0;

  Index tokens() const {
    Index sum = 0;
    for (const Index n : lengths) sum += n * samples;
    return sum;
  }
};

// 2, 4, …, 98 and ten of each as in the paper, or fewer over the same range
Windows windows(bool full) {
  if (!full) return {{2, 4, 8, 16, 32, 64, 98}, 4};
  Windows all{{}, 10};
  for (Index n = 2; n < 100; n += 2) all.lengths.push_back(n);
  return all;
}

// A model and its text. What is made of the model is made when the first answer
// wants it, and kept.
class Reader {
 public:
  Reader(const Model& model, std::vector<Index> ids, Index samples,
         const ExperimentOptions& options)
      : model_(model), ids_(std::move(ids)), samples_(samples), o_(options) {}

  // the inputs of attention, the windows of a length under one another
  std::vector<MatrixOf<float>> inputs(Index n, Index offset) {
    const auto first = ids_.begin() + offset;
    if (!pass_)
      pass_.emplace(model_,
                    PassOptions{.sequences = samples_, .threads = o_.threads});
    return (*pass_)({first, first + n * samples_}).attention;
  }

  // all windows of a length together
  std::vector<Measurement> measure(Index layer, const Matrix& x) {
    if (!maps_.contains(layer)) {
      const LayerWeights weights = load_layer(model_, layer, MapName::attn);
      const ModelMapOptions how{.sequences = samples_, .threads = o_.threads};
      maps_[layer] = {layer_map<float>(weights, MapName::attn, how),
                      layer_map<double>(weights, MapName::attn, how)};
    }
    MeasureOptions how;
    how.from_above = false;
    how.seed = o_.seed;
    how.threads = o_.threads;
    how.sequences = samples_;
    const auto& [search, witness] = maps_.at(layer);
    how.common_shift = common_shift_of(*search);
    return measure_norms(*search, *witness, x, how);
  }

  // √‖Jᵀf(x)‖ of each window: what the script that was published with the paper
  // computes in place of ‖J‖. Its power iteration takes for u = J v the first
  // of the two values that torch.func.jvp returns, and these are f(x) and J v.
  // Then Jᵀu does not depend on v, and every step gives the same number. The
  // layer was measured before.
  std::vector<double> script_values(Index layer, const Matrix& x) const {
    const Map<double>& map = *maps_.at(layer).second;
    const Vector pulled_back = map.linearize(x)->apply_adjoint(flatten(map(x)));
    const Index entries = x.size() / samples_;
    std::vector<double> values;
    for (Index s = 0; s < samples_; ++s)
      values.push_back(
          std::sqrt(pulled_back.segment(s * entries, entries).norm()));
    return values;
  }

 private:
  const Model& model_;
  std::vector<Index> ids_;
  Index samples_;
  const ExperimentOptions& o_;
  std::optional<ForwardPass<float>> pass_;
  std::map<Index, std::pair<MapPtr<float>, MapPtr<double>>> maps_;
};

// One length.
class OneLength {
 public:
  OneLength(Reader& reader, Index n, Index offset)
      : reader_(reader), n_(n), offset_(offset) {}

  void answer(Record& record, Index sample) {
    const Index l = *record.layer;
    if (inputs_.empty()) inputs_ = reader_.inputs(n_, offset_);
    if (!measured_.contains(l)) {
      const Matrix x = inputs_[l].cast<double>();
      measured_[l] = reader_.measure(l, x);
      script_values_[l] = reader_.script_values(l, x);
    }
    set_sides(record, measured_.at(l)[sample]);
    record.details["script_value"] = script_values_.at(l)[sample];
    record.details["radius_rms"] =
        inputs_[l].middleRows(sample * n_, n_).norm() /
        std::sqrt(static_cast<double>(n_));
  }

 private:
  Reader& reader_;
  Index n_, offset_;
  std::vector<MatrixOf<float>> inputs_;
  std::map<Index, std::vector<Measurement>> measured_;
  std::map<Index, std::vector<double>> script_values_;
};

struct Read {
  const Model& model;
  std::string name;
  std::vector<Index> ids;
};

void sweep(const Read& read, const ExperimentOptions& o, const Notebook& book) {
  const Windows over = windows(o.full);
  if (static_cast<Index>(read.ids.size()) < over.tokens())
    throw InputError(
        fmt::format("{}: the text has {} tokens, and {} are needed", read.name,
                    read.ids.size(), over.tokens()));
  const Mask mask = read.model.config.mask(0);
  book.open({.name = "castin-real, " + read.name,
             .title = "Attention at the inputs of a model: " + read.name,
             .explanation = fmt::format(
                 "What is measured is the map attn: from the input of the "
                 "attention module to its output, all heads, after the output "
                 "projection, without the residual connection and without the "
                 "norm layer; mask {}. The 2-norm of its Jacobian at windows "
                 "of n tokens, from below, and c n^alpha fitted to it.",
                 name_of(mask)),
             .x_name = "n",
             .y_name = "2-norm of the Jacobian",
             .log_x = true,
             .log_y = true});
  std::map<Index, std::vector<GrowthPoint>> points;
  Record question = attention_question(read.name);
  question.mask = name_of(mask);
  question.d = read.model.config.width;
  question.dtype = NumberFormat::f32;
  const auto point = [&](Index layer) -> Point {
    return {fmt::format("layer {}", layer), static_cast<double>(question.n)};
  };
  Reader reader(read.model, read.ids, over.samples, o);
  Index offset = 0;
  for (const Index n : over.lengths) {
    OneLength here(reader, n, offset);
    offset += n * over.samples;
    for (const Index l : shown_layers(read.model, o.full))
      for (Index s = 0; s < over.samples; ++s) {
        question.layer = l;
        question.n = n;
        question.parameters["sample"] = static_cast<double>(s);
        const std::optional<double> found =
            book.ask(point(l), question, [&](Record& r) { here.answer(r, s); });
        if (found) points[l].push_back({n, *found, 0.0});
      }
  }
  question.parameters.clear();
  for (const auto& [l, measured] : points) {
    question.layer = l;
    if (const std::optional<GrowthFit> fit = fit_growth(measured))
      book.fit(point(l), question, *fit);
  }
}

std::vector<Index> random_ids(const ModelConfig& config, std::uint64_t seed,
                              Index count) {
  Rng rng = Rng(seed).split(token_stream);
  std::vector<Index> ids;
  for (Index i = 0; i < count; ++i)
    ids.push_back(static_cast<Index>(
        rng.next() % static_cast<std::uint64_t>(config.vocabulary)));
  return ids;
}

}  // namespace

void castin_real(const ExperimentOptions& o, const Notebook& book) {
  const Index needed = windows(o.full).tokens();
  const std::uint64_t seed = Rng(o.seed).split(weight_stream).next();
  if (o.model) {
    if (o.ids.empty())
      throw InputError(fmt::format(
          "castin-real: {} reads a text; give --text FILE", o.model_name));
    sweep({*o.model, o.model_name, o.ids}, o, book);
    const Model untrained = random_model(o.model->config, seed);
    sweep({untrained, "random weights, same architecture", o.ids}, o, book);
    return;
  }
  for (const auto& [name, architecture] :
       {std::pair("random bert", Architecture::bert),
        std::pair("random gpt2", Architecture::gpt2)}) {
    const Model model = random_model(usual_config(architecture), seed);
    sweep({model, name, random_ids(model.config, o.seed, needed)}, o, book);
  }
}

}  // namespace lipscope
