#include "lipscope/model/masked_stack.h"

#include <fmt/format.h>

#include <vector>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

// the Hugging Face names of the parts of a head
struct HeadNames {
  Architecture architecture;
  const char *dense, *norm, *bias;
  const char* decoder;  // where it is not the table of tokens
};

constexpr HeadNames heads[] = {
    {Architecture::bert, "cls.predictions.transform.dense",
     "cls.predictions.transform.LayerNorm", "cls.predictions.bias",
     "cls.predictions.decoder.weight"},
    {Architecture::roberta, "lm_head.dense", "lm_head.layer_norm",
     "lm_head.bias", "lm_head.decoder.weight"},
    {Architecture::distilbert, "vocab_transform", "vocab_layer_norm",
     "vocab_projector.bias", "vocab_projector.weight"}};

const HeadNames* names_of(const Model& model) {
  for (const HeadNames& names : heads)
    if (names.architecture == model.config.architecture) return &names;
  return nullptr;
}

Module dense_of(const HeadNames& names, const ModelConfig& c) {
  return {names.dense, Module::Stored::out_in, c.width, c.width, true};
}

Module norm_of(const HeadNames& names, const ModelConfig& c) {
  return {names.norm, Module::Stored::vector, c.width, c.width, true};
}

}  // namespace

std::string why_no_masked_tokens(const Model& model) {
  const ModelConfig& c = model.config;
  const HeadNames* names = names_of(model);
  if (!names || c.causal)
    return fmt::format("no head for masked tokens of a {} model is read here",
                       name_of(c.architecture));
  std::vector<TensorSpec> needed = tensors_of(dense_of(*names, c));
  for (const TensorSpec& t : tensors_of(norm_of(*names, c)))
    needed.push_back(t);
  needed.push_back({names->bias, {c.vocabulary}});
  std::string missing;
  for (const TensorSpec& t : needed)
    if (!model.parameters.contains(t.name))
      missing += (missing.empty() ? "" : ", ") + t.name;
  if (missing.empty()) return "";
  return "the folder has no head that predicts masked tokens (no " + missing +
         "), and a last hidden state by itself predicts nothing";
}

Stack load_masked_stack(const Model& model) {
  const std::string why = why_no_masked_tokens(model);
  if (!why.empty())
    throw InputError(fmt::format("{}: {}", model.parameters.source(), why));
  const ModelConfig& c = model.config;
  const HeadNames& names = *names_of(model);
  Stack stack{.context = c.positions};
  for (Index l = 0; l < c.layers; ++l)
    stack.layers.push_back(load_layer(model, l));
  stack.last_norm = load_final_norm(model);

  const Module dense = dense_of(names, c);
  const Parameters& p = model.parameters;
  stack.transform =
      HeadTransform{.dense = {.up = p.matrix(weight_of(dense)).transpose(),
                              .down = Matrix::Identity(c.width, c.width),
                              .up_bias = flatten(p.matrix(bias_of(dense))),
                              .activation = c.activation},
                    .norm = load_norm(model, norm_of(names, c))};
  const TensorSpec own{names.decoder, {c.vocabulary, c.width}};
  stack.head =
      p.matrix(p.contains(own.name) ? own : weight_of(outer_modules(c).tokens))
          .transpose();
  stack.head_bias = flatten(p.matrix({names.bias, {c.vocabulary}}));
  return stack;
}

}  // namespace lipscope
