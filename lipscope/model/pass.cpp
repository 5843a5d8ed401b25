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

template <class Real>
ForwardPass<Real>::ForwardPass(const Model& model, PassOptions options)
    : model_(model), options_(options) {
  if (!options_.from_layer_0) require_complete(model);
  if (options_.keep_layers)
    for (Index l = 0; l < model.config.layers; ++l) kept_.push_back(stage(l));
  if (const std::optional<NormWeights> norm = load_final_norm(model))
    final_norm_ = std::make_unique<LayerNorm<Real>>(*norm);
}

template <class Real>
auto ForwardPass<Real>::stage(Index layer) const -> Stage {
  const LayerWeights w = load_layer(model_, layer);
  // nothing is differentiated here: no attention weights are kept
  const ModelMapOptions options{.mask = options_.mask,
                                .sequences = options_.sequences,
                                .threads = options_.threads,
                                .memory = 1};
  return {w.attention_norm_place() == NormPlace::pre
              ? std::make_unique<LayerNorm<Real>>(w.attention_norm)
              : nullptr,
          layer_map<Real>(w, MapName::block, options)};
}

template <class Real>
HiddenStates<Real> ForwardPass<Real>::operator()(const std::vector<Index>& ids,
                                                 Index layers) const {
  return from(embed<Real>(model_, ids, options_.sequences), layers);
}

template <class Real>
HiddenStates<Real> ForwardPass<Real>::from(MatrixOf<Real> x,
                                           Index layers) const {
  require(layers <= model_.config.layers, "pass: {} layers of a model with {}",
          layers, model_.config.layers);
  const Index count = layers < 0 ? model_.config.layers : layers;
  HiddenStates<Real> states;
  for (Index l = 0; l < count; ++l) {
    const Stage made = options_.keep_layers ? Stage{} : stage(l);
    const Stage& at = options_.keep_layers ? kept_[l] : made;
    states.layer.push_back(x);
    states.attention.push_back(at.norm ? (*at.norm)(x) : x);
    if (layers < 0 || l + 1 < count) x = (*at.block)(x);
  }
  if (layers < 0) states.last = final_norm_ ? (*final_norm_)(x) : std::move(x);
  return states;
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

Matrix load_head(const Model& model) {
  const Head head = head_of(model);
  if (head.module.bias)
    throw InputError(
        fmt::format("{}: its language-model head has a bias, "
                    "which is not supported here",
                    model.parameters.source()));
  Matrix w = model.parameters.matrix(weight_of(head.module));
  if (model.config.logit_scale != 1.0) w *= model.config.logit_scale;
  if (head.by_words) return w.transpose();
  return w;
}

template <class Real>
MatrixOf<Real> logits(const Model& model, const MatrixOf<Real>& last,
                      int threads) {
  const ModelConfig& c = model.config;
  const Head head = head_of(model);
  require(last.cols() == c.width, "logits: states of {} features, not {}",
          last.cols(), c.width);

  if (!head.by_words) {
    const MatrixOf<Real> w =
        model.parameters.rows<Real>(weight_of(head.module), 0, c.width);
    return product(as_is(last), as_is(w), threads);
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
  if (head.module.bias)
    out.rowwise() +=
        model.parameters.matrix(bias_of(head.module)).row(0).cast<Real>();
  return out;
}

template class ForwardPass<float>;
template class ForwardPass<double>;
template MatrixOf<float> embed(const Model&, const std::vector<Index>&, Index);
template MatrixOf<double> embed(const Model&, const std::vector<Index>&, Index);
template MatrixOf<float> logits(const Model&, const MatrixOf<float>&, int);
template MatrixOf<double> logits(const Model&, const MatrixOf<double>&, int);

}  // namespace lipscope
