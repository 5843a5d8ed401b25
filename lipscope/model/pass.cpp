#include "lipscope/model/pass.h"

#include <algorithm>

#include "lipscope/core/errors.h"
#include "lipscope/core/gemm.h"

namespace lipscope {

template <class Real>
MatrixOf<Real> embed(const Model& model, const std::vector<Index>& ids,
                     Index sequences) {
  const ModelConfig& c = model.config;
  const Index count = static_cast<Index>(ids.size());
  require(sequences >= 1 && count > 0 && count % sequences == 0,
          "embed: {} tokens do not make {} sequences of one length", count,
          sequences);
  const Index n = count / sequences;
  const OuterModules m = outer_modules(c);
  if (!m.reads_tokens())
    throw InputError(fmt::format("{}: a {} model reads no tokens",
                                 model.parameters.source(),
                                 name_of(c.architecture)));
  std::vector<Module> needed{m.tokens};
  for (const auto& module :
       {m.positions, m.types, m.embedding_norm, m.embedding_projection})
    if (module) needed.push_back(*module);
  require_tensors(model, needed, "a pass from tokens");
  if (m.positions && n > c.positions)
    throw InputError(
        fmt::format("{}: sequences of {} tokens, the model has {} positions",
                    model.parameters.source(), n, c.positions));

  MatrixOf<Real> x(count, m.tokens.out);
  const TensorSpec table = weight_of(m.tokens);
  for (Index i = 0; i < count; ++i) {
    if (ids[i] < 0 || ids[i] >= c.vocabulary)
      throw InputError(
          fmt::format("{}: token id {}, the model's vocabulary has {}",
                      model.parameters.source(), ids[i], c.vocabulary));
    x.row(i) = model.parameters.rows<Real>(table, ids[i], 1);
  }
  if (c.embedding_scale != 1.0) x *= static_cast<Real>(c.embedding_scale);
  if (m.positions) {
    const MatrixOf<Real> places = model.parameters.rows<Real>(
        weight_of(*m.positions), 0, c.position_offset + n);
    for (Index i = 0; i < count; i += n) {
      Index next = c.position_offset;
      for (Index t = i; t < i + n; ++t)
        x.row(t) +=
            places.row(c.padding && ids[t] == *c.padding ? *c.padding : next++);
    }
  }
  if (m.types) {
    const MatrixOf<Real> first =
        model.parameters.rows<Real>(weight_of(*m.types), 0, 1);
    x.rowwise() += first.row(0);
  }
  if (m.embedding_norm)
    x = LayerNorm<Real>(load_norm(model, *m.embedding_norm))(x);
  if (m.embedding_projection) {
    const MatrixOf<Real> w =
        model.parameters.matrix(weight_of(*m.embedding_projection))
            .transpose()
            .cast<Real>();
    x = product(as_is(x), as_is(w), 1);
    x.rowwise() += model.parameters.matrix(bias_of(*m.embedding_projection))
                       .row(0)
                       .cast<Real>();
  }
  return x;
}

namespace {

// the norm between the input of a layer and its attention, or nothing
template <class Real>
MapPtr<Real> norm_ahead_of_attention(const Model& model, Index layer) {
  const LayerModules m = layer_modules(model.config, layer);
  if (model.config.norm != NormPlace::pre || !m.attention_norm) return nullptr;
  return std::make_unique<LayerNorm<Real>>(load_norm(model, *m.attention_norm));
}

// nothing is differentiated here: no attention weights are kept
template <class Real>
MapPtr<Real> block_to_run(const LayerWeights& weights, Index sequences,
                          const PassOptions& options) {
  return layer_map<Real>(weights, MapName::block,
                         {.mask = options.mask,
                          .sequences = sequences,
                          .threads = options.threads,
                          .memory = 1});
}

}  // namespace

template <class Real>
ForwardPass<Real>::ForwardPass(const Model& model, PassOptions options)
    : model_(model), options_(options) {
  if (!options_.from_layer_0) require_complete(model);
  const Index all = model.config.layers;
  require(options.layers <= all, "pass: {} layers of a model with {}",
          options.layers, all);
  const bool whole = options.layers < 0;
  const Index count = whole ? all : options.layers;
  for (Index l = 0; l < count; ++l)
    kept_.push_back({norm_ahead_of_attention<Real>(model, l),
                     whole || l + 1 < count
                         ? block_to_run<Real>(load_layer(model, l),
                                              options.sequences, options)
                         : nullptr});
  if (!whole) return;
  if (const std::optional<NormWeights> norm = load_final_norm(model))
    final_norm_ = std::make_unique<LayerNorm<Real>>(*norm);
}

template <class Real>
HiddenStates<Real> ForwardPass<Real>::operator()(const std::vector<Index>& ids,
                                                 Index layers) const {
  return from(embed<Real>(model_, ids, options_.sequences), layers);
}

template <class Real>
HiddenStates<Real> ForwardPass<Real>::from(MatrixOf<Real> x,
                                           Index layers) const {
  const Index most = static_cast<Index>(kept_.size());
  const bool whole = layers < 0 && options_.layers < 0;
  require(layers <= most, "pass: {} layers of a pass through {}", layers, most);
  const Index count = layers < 0 ? most : layers;
  HiddenStates<Real> states;
  for (Index l = 0; l < count; ++l) {
    const Stage& at = kept_[l];
    states.layer.push_back(x);
    states.attention.push_back(at.norm ? (*at.norm)(x) : x);
    if (whole || l + 1 < count) x = (*at.block)(x);
  }
  if (whole) states.last = final_norm_ ? (*final_norm_)(x) : std::move(x);
  return states;
}

template <class Real>
LayerWalk<Real>::LayerWalk(const Model& model,
                           std::vector<StackedSequences<Real>> batches,
                           PassOptions options)
    : model_(model), options_(options), batches_(std::move(batches)) {}

template <class Real>
const MatrixOf<Real>& LayerWalk<Real>::layer_input(std::size_t batch) const {
  return batches_.at(batch).x;
}

template <class Real>
MatrixOf<Real> LayerWalk<Real>::attention_input(std::size_t batch) const {
  const MapPtr<Real> norm = norm_ahead_of_attention<Real>(model_, layer_);
  const MatrixOf<Real>& x = batches_.at(batch).x;
  return norm ? (*norm)(x) : x;
}

template <class Real>
void LayerWalk<Real>::advance() {
  require(layer_ < model_.config.layers, "walk: after the last of {} layers",
          model_.config.layers);
  std::optional<LayerWeights> weights = load_layer(model_, layer_);
  // one map for all batches with the same number of sequences
  std::vector<Index> counts;
  for (const StackedSequences<Real>& batch : batches_)
    counts.push_back(batch.sequences);
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  for (const Index count : counts) {
    const MapPtr<Real> block = block_to_run<Real>(*weights, count, options_);
    if (count == counts.back()) weights.reset();
    for (StackedSequences<Real>& batch : batches_)
      if (batch.sequences == count) batch.x = (*block)(batch.x);
  }
  ++layer_;
}

namespace {

// its weight is stored [d×vocabulary], or [vocabulary×d] as a table of tokens
struct Head {
  Module module;
  bool by_words;
};

Head head_of(const Model& model) {
  if (!has_head(model.config))
    throw InputError(fmt::format(
        "{}: a {} model has no language-model head that is supported",
        model.parameters.source(), name_of(model.config.architecture)));
  const OuterModules m = outer_modules(model.config);
  const Head head{m.head ? *m.head : m.tokens,
                  !m.head || m.head->stored == Module::Stored::out_in};
  require_tensors(model, {head.module}, "the language-model head");
  return head;
}

}  // namespace

LogitHead load_head(const Model& model) {
  const Head head = head_of(model);
  LogitHead out{model.parameters.matrix(weight_of(head.module)), {}};
  if (model.config.logit_scale != 1.0) out.weight *= model.config.logit_scale;
  if (head.by_words) out.weight.transposeInPlace();
  if (head.module.bias)
    out.bias = flatten(model.parameters.matrix(bias_of(head.module)));
  return out;
}

template <class Real>
MatrixOf<Real> logits(const Model& model, const MatrixOf<Real>& last,
                      int threads) {
  const ModelConfig& c = model.config;
  const Head head = head_of(model);
  const auto add_bias = [&](MatrixOf<Real>& out) {
    if (head.module.bias)
      out.rowwise() +=
          model.parameters.matrix(bias_of(head.module)).row(0).cast<Real>();
  };
  require(last.cols() == c.width, "logits: states of {} features, not {}",
          last.cols(), c.width);

  if (!head.by_words) {
    const MatrixOf<Real> w =
        model.parameters.rows<Real>(weight_of(head.module), 0, c.width);
    MatrixOf<Real> out = product(as_is(last), as_is(w), threads);
    add_bias(out);
    return out;
  }
  // a few thousand words at a time: the table may be larger than the model
  constexpr Index piece = 4096;
  MatrixOf<Real> out(last.rows(), c.vocabulary);
  for (Index word = 0; word < c.vocabulary; word += piece) {
    const Index words = std::min(piece, c.vocabulary - word);
    const MatrixOf<Real> rows =
        model.parameters.rows<Real>(weight_of(head.module), word, words);
    product_into(as_is(last), transposed(rows),
                 view(out, Rectangle{0, word, last.rows(), words}), threads);
  }
  if (c.logit_scale != 1.0) out *= static_cast<Real>(c.logit_scale);
  add_bias(out);
  return out;
}

template class ForwardPass<float>;
template class ForwardPass<double>;
template class LayerWalk<float>;
template class LayerWalk<double>;
template MatrixOf<float> embed(const Model&, const std::vector<Index>&, Index);
template MatrixOf<double> embed(const Model&, const std::vector<Index>&, Index);
template MatrixOf<float> logits(const Model&, const MatrixOf<float>&, int);
template MatrixOf<double> logits(const Model&, const MatrixOf<double>&, int);

}  // namespace lipscope
