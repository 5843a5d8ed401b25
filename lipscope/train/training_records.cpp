#include "lipscope/train/training_records.h"

#include <fmt/format.h>

#include <numbers>

#include "lipscope/record/evidence.h"
#include "lipscope/record/provenance.h"
#include "lipscope/train/sliding_windows.h"

namespace lipscope {
namespace {

using nlohmann::ordered_json;
using Lines = std::vector<ordered_json>;

const char* const losses = "losses";
const char* const constants = "constants of attention";
const char* const gradients = "gradient norms";
const char* const promises = "constant of the whole model";

Record record_of(const TrainingSubject& s, const char* figure) {
  Record r;
  r.command = "train";
  r.model = s.folder;
  r.kind = name_of(s.model.mixer);
  r.mask = "causal";
  r.n = s.model.context;
  r.d = s.model.width;
  r.dtype = NumberFormat::f32;
  r.seed = s.seed;
  r.parameters["experiment"] = fmt::format("{}, {}", s.folder, figure);
  return r;
}

Record point_of(const TrainingSubject& s, const char* figure,
                const std::string& series, Index step) {
  Record r = record_of(s, figure);
  r.parameters.update({{"series", series}, {"x_name", "step"}, {"x", step}});
  return r;
}

Record loss(const TrainingSubject& s, const std::string& split, Scope scope,
            Index step, double nll, Index characters) {
  Record r = point_of(s, losses, split, step);
  r.map = "model";
  r.scope = scope;
  r.quantity = Quantity::loss;
  r.value_of = "loss in nats a character";
  r.value = nll;
  r.parameters["split"] = split;
  r.details = {{"characters", characters}, {"bits", nll / std::numbers::ln2}};
  return r;
}

Record gradient(const TrainingSubject& s, const std::string& series, Index step,
                double norm) {
  Record r = point_of(s, gradients, series, step);
  r.norm = Norm::two;
  r.scope = Scope::batch;
  r.quantity = Quantity::gradient_norm;
  r.value_of = "norm of the gradient before clipping";
  r.value = norm;
  return r;
}

Record constant(const TrainingSubject& s, const LayerConstant& c, Index step) {
  Record r = point_of(s, constants, fmt::format("layer {}", c.layer), step);
  r.layer = c.layer;
  r.map = "attn";
  r.norm = Norm::two;
  r.n = c.n;
  r.radius_max = c.radius;
  set_lower(r, c.measured);
  r.scope = Scope::input;
  if (c.above) {
    set_upper(r, *c.above);
    r.details["upper_scope"] = name_of(c.above->scope);
  }
  return r;
}

Record promise(const TrainingSubject& s, const PromisedConstant& c,
               Index step) {
  Record r = point_of(s, promises, "certified", step);
  r.map = "model";
  r.norm = c.norm;
  set_upper(r, c.certified, KnownBy::bound("stack_constant"));
  r.scope = scope_of(c.scope);
  r.parameters.update(
      {{"from", "input of layer 0"}, {"to", "logits"}, {"limit", c.limit}});
  r.details.update({{"longest_token", c.longest_token},
                    {"times_longest_token", c.certified * c.longest_token},
                    {"between_rms", c.certified_rms()}});
  if (c.in_other_norm)
    r.details[c.norm == Norm::two ? "in_token_norm" : "in_two_norm"] =
        *c.in_other_norm;
  return r;
}

// the only lines that say who wrote the file: a run that goes on leaves them
ordered_json figure(const TrainingSubject& s, const char* name,
                    const std::string& explanation, const char* y_name,
                    bool log_y) {
  Record r = record_of(s, name);
  r.quantity = {};
  r.details = {{"title", fmt::format("{}: {}", s.folder, name)},
               {"explanation", explanation},
               {"y_name", y_name},
               {"log_x", false},
               {"log_y", log_y}};
  return with_provenance(to_json(r));
}

}  // namespace

Lines figure_lines(const TrainingSubject& s) {
  const std::string model = fmt::format(
      "A model of characters ({}, {} layers, width {}, context {})",
      name_of(s.model.mixer), s.model.layers, s.model.width, s.model.context);
  Lines lines = {
      figure(s, losses,
             model +
                 " as it learns: the mean of -log p(character | those before "
                 "it in its window). 'train' is the batch of a step before "
                 "the step, 'valid' the validation text after it, 'test' the "
                 "test text with the weights that were best on the "
                 "validation text, 'last tenth' both with the last weights, "
                 "'newhouse25 windows' 1,280 windows of 256 characters at "
                 "its beginning with the last weights.",
             "nats a character", false),
      figure(s, constants,
             model +
                 " as it learns: how strongly the attention of each layer "
                 "amplifies a change of its input (map attn, after the output "
                 "projection, without residual and norm; causal, 2-norm), at "
                 "the first characters of the validation text from below, and "
                 "from above by the bound that the record names.",
             "constant", true),
      figure(s, gradients,
             model + " as it learns: the 2-norm of the gradient of the "
                     "batch's loss by the weights of each layer, "
                     "before clipping.",
             "norm of the gradient", true)};
  if (s.limited)
    lines.push_back(figure(
        s, promises,
        model + " as it learns: the constant from the input of layer 0 to the "
                "logits, residuals and MLPs included (causal), from above, in "
                "the norm and over the inputs that the record names; it is "
                "kept below the limit that the record names.",
        "constant, from above", true));
  return lines;
}

Lines lines_of(const TrainingSubject& s, const Evaluation& e) {
  std::vector<Record> records = {
      loss(s, "train", Scope::batch, e.step, e.train_nll, e.train_characters),
      loss(s, "valid", Scope::validation_text, e.step, e.valid_nll,
           e.valid_characters),
      gradient(s, "whole model", e.step, e.gradient_norm)};
  records[0].details.update({{"learning_rate", e.rate},
                             {"characters_per_second", e.characters_per_second},
                             {"products", products_in_words(s.products)}});
  records[1].details.update(
      {{"best_step", e.best_step}, {"accuracy", e.valid_accuracy}});
  for (std::size_t i = 0; i < e.layer_gradient_norms.size(); ++i) {
    records.push_back(gradient(s, fmt::format("layer {}", i), e.step,
                               e.layer_gradient_norms[i]));
    records.back().layer = static_cast<Index>(i);
  }
  for (const LayerConstant& c : e.attention)
    records.push_back(constant(s, c, e.step));
  if (e.promised) records.push_back(promise(s, *e.promised, e.step));
  Lines lines;
  for (const Record& r : records) lines.push_back(to_json(r));
  return lines;
}

Lines lines_of(const TrainingSubject& s, const RunSummary& e) {
  Record r =
      loss(s, "test", Scope::test_text, e.steps, e.test_nll, e.test_characters);
  r.details.update(
      {{"best_step", e.best_step}, {"best_valid_nll", e.best_valid_nll}});
  const auto of_last_step = [&](const char* split, const TextScore& score,
                                Index characters) {
    Record last =
        loss(s, split, Scope::test_text, e.steps, score.nll, characters);
    last.details.update(
        {{"accuracy", score.accuracy}, {"weights_of_step", e.steps}});
    return to_json(last);
  };
  Lines lines = {
      of_last_step("last tenth", e.last_tenth, e.last_tenth_characters)};
  if (e.newhouse25_windows)
    lines.push_back(
        of_last_step("newhouse25 windows", *e.newhouse25_windows,
                     SlidingWindows{}.count * SlidingWindows{}.length));
  lines.push_back(to_json(r));
  return lines;
}

}  // namespace lipscope
