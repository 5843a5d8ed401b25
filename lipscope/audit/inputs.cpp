#include "lipscope/audit/inputs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "lipscope/audit/text_windows.h"
#include "lipscope/audit/token_bounds.h"
#include "lipscope/audit/token_memory.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/memory.h"
#include "lipscope/core/rng.h"
#include "lipscope/io/npy.h"
#include "lipscope/io/sha256.h"
#include "lipscope/io/text_file.h"
#include "lipscope/record/fingerprint.h"
#include "lipscope/text/token_ids.h"
#include "lipscope/text/tokenizer.h"
#include "lipscope/text/words.h"

namespace lipscope::audit {
namespace {

// tokens that go through a layer together: enough to keep the products busy
constexpr Index tokens_together = 4096;

}  // namespace

TextTokens read_tokens(const SourceOptions& o, const Model& model) {
  const Index vocabulary = model.config.vocabulary;
  if (!o.text.empty() && (!o.ids.empty() || !o.token_ids.empty()))
    throw InputError("--text and --ids are two sources of tokens; give one");
  std::vector<Index> ids;
  if (o.text.empty()) {
    ids = o.token_ids;
    if (ids.empty())
      for (const TokenId id : read_token_ids(o.ids)) ids.push_back(id);
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (ids[i] < 0 || ids[i] >= vocabulary)
        throw InputError(
            fmt::format("{}: id {} (number {}{}) is not in the model's "
                        "vocabulary of {}",
                        text_name(o), ids[i], i,
                        o.ids.empty() ? "" : " of the file", vocabulary));
    return {.ids = std::move(ids), .words = {}};
  }
  if (o.model.empty())
    throw InputError(
        fmt::format("--text {}: a {} has no tokenizer; give --ids FILE", o.text,
                    o.model_in_memory ? "model in memory" : "random model"));
  const Tokenizer tokenizer = load_tokenizer(o.model, vocabulary);
  const std::string text = read_text_file(o.text);
  try {
    const std::vector<Token> tokens = tokenizer.encode(text);
    for (const Token& token : tokens) ids.push_back(token.id);
    return {.ids = std::move(ids), .words = words_of(text, tokens)};
  } catch (const InputError& wrong) {
    throw InputError(fmt::format("{}: {}", o.text, wrong.what()));
  }
}

namespace {

// A folder with attention alone serves as long as no token has to be read.
void require_whole(const Model& model) {
  try {
    require_complete(model);
  } catch (const InputError& missing) {
    throw InputError(fmt::format(
        "{}. Its attention can be measured without: at --input X.npy (the "
        "input of the attention module) or at made-up tokens, --length N "
        "--radius ln; bound and search need no tokens",
        missing.what()));
  }
}

// rotary positions have no end
Index longest_sequence(const Model& model) {
  const ModelConfig& c = model.config;
  return c.rope ? std::numeric_limits<Index>::max() : c.positions;
}

}  // namespace

Inputs::Inputs(const SourceOptions& o, const Subject& subject,
               const Selection& selection, int threads)
    : subject_(subject),
      selection_(selection),
      threads_(threads),
      seed_(o.seed) {
  const bool text = gives_text(o);
  if (text && subject.layer)
    throw InputError(
        "--text and --ids are for models; a layer by itself reads tokens of "
        "numbers: --input X.npy or --length N");
  const bool embedded = gives_embedded(o);
  if ((text || embedded || gives_tokens(o)) && o.radius)
    throw InputError("--radius: the tokens are given, not made");
  if (embedded && subject.layer)
    throw InputError(
        "--embedded is the input of a model's layer 0; a layer by itself "
        "reads --input X.npy");
  if (embedded && (text || gives_tokens(o)))
    throw InputError("--embedded is a source of tokens by itself; give one");
  const bool attention =
      selection.map == MapName::core || selection.map == MapName::attn;
  if (subject.model && !attention && (gives_tokens(o) || o.radius))
    throw InputError(fmt::format(
        "--map {}: its input comes from tokens; give --text or --ids, or the "
        "input of layer 0, --embedded X.npy",
        name_of(selection.map)));

  if (embedded) {
    use_embedded(o);
  } else if (o.tokens) {
    use_given(*o.tokens, "tokens in memory");
    input_.from = "memory";
  } else if (!o.input.empty()) {
    use_given(read_npy(o.input), o.input);
    input_.from = "file", input_.name = o.input;
  } else if (subject.layer && o.lengths.empty() &&
             subject.layer->x.size() > 0) {
    if (o.radius) throw InputError("--radius: the tokens are given, not made");
    use_given(subject.layer->x, subject.name + ": tensor \"x\"");
    input_.from = "tensor", input_.name = subject.name;
  } else if (subject.model && !o.radius) {
    use_ids(o);
  } else {
    use_gaussian(o);
  }
}

void Inputs::use_embedded(const SourceOptions& o) {
  dtype_ = o.dtype;
  if (o.embedded_tokens) {
    use_given(*o.embedded_tokens, "embedded tokens in memory");
    input_.from = "embedded";
  } else {
    use_given(read_npy(o.embedded), o.embedded);
    input_.from = "embedded", input_.name = o.embedded;
  }
  embedded_ = std::move(given_);
  given_ = {};
  require_sound_pass();
}

void Inputs::use_given(Matrix x, const std::string& where) {
  if (x.rows() == 0) throw InputError(where + ": an empty sequence");
  if (x.cols() != subject_.features())
    throw InputError(
        fmt::format("{}: tokens have {} features, the layer reads {}", where,
                    x.cols(), subject_.features()));
  require_sound_masks(selection_.masks, {x.rows()});
  groups_ = {{.n = x.rows()}};
  given_ = std::move(x);
  input_.sha256 = fingerprint(given_);
}

// Castin24's protocol: for each length the next samples·n tokens; the cursor
// only advances.
void Inputs::use_ids(const SourceOptions& o) {
  const Model& model = *subject_.model;
  if (!outer_modules(model.config).reads_tokens())
    throw InputError(fmt::format(
        "{}: a {} model reads no tokens; give the input of layer 0, "
        "--embedded X.npy, or that of the attention module, --input X.npy",
        subject_.name, name_of(model.config.architecture)));
  require_whole(model);
  require(o.dtype == NumberFormat::f32 || o.dtype == NumberFormat::f64,
          "inputs: a pass in {}, expected f32 or f64", name_of(o.dtype));
  dtype_ = o.dtype;
  if (gives_text(o)) {
    input_.from = o.text.empty() ? "ids" : "text";
    if (o.token_ids.empty()) input_.name = text_name(o);
    TextTokens tokens = read_tokens(o, model);
    ids_ = std::move(tokens.ids);
    words_ = std::move(tokens.words);
    const FittedWindows fitted = windows_of_text(
        o, static_cast<Index>(ids_.size()), longest_sequence(model), "tokens");
    note_ = fitted.note;
    make_groups(fitted.windows.lengths, fitted.windows.samples, o.offset);
  } else if (!o.random.empty()) {
    // a random model has learnt no text: any tokens are as good
    input_.from = "random ids";
    const Windows windows = asked_windows(o);
    make_groups(windows.lengths, windows.samples, o.offset);
    require_memory(
        8.0 * static_cast<double>(o.offset),
        fmt::format("--offset {}: the tokens that are skipped", o.offset));
    Rng rng = Rng(seed_).split(token_stream);
    for (Index i = 0; i < o.offset + windows.tokens(); ++i)
      ids_.push_back(static_cast<Index>(
          rng.next() % static_cast<std::uint64_t>(model.config.vocabulary)));
  } else {
    throw InputError(fmt::format(
        "{}: at which tokens? Give --text FILE or --ids FILE, --input X.npy "
        "(the input of the attention module), or --length N --radius ln",
        subject_.name));
  }
  require_sound_pass();
}

void Inputs::require_sound_pass() const {
  std::vector<Mask> own;
  for (Index l = 0; l < subject_.layers(); ++l)
    own.push_back(selection_.padding().over(subject_.mask(l)));
  std::vector<Index> lengths;
  for (const Group& group : groups_) lengths.push_back(group.n);
  require_sound_masks(own, lengths);
}

void Inputs::use_gaussian(const SourceOptions& o) {
  std::vector<Index> lengths = {128};
  if (!o.lengths.empty())
    lengths = parse_lengths(o.lengths);
  else if (o.random.empty())
    throw InputError(fmt::format(
        "{}: at which tokens? {}; give --input X.npy or --length N",
        subject_.name,
        o.layer ? "None are given" : "The file has no tensor \"x\""));
  make_groups(lengths, o.samples > 0 ? o.samples : 1, 0);

  gaussian_ = true;
  input_.from = "gaussian";
  for (const std::optional<Index>& layer : selection_.layers) {
    if (!o.radius)
      radii_.push_back(std::nullopt);
    else
      radii_.push_back(tokens_within(*o.radius, subject_, layer).radius);
  }
}

void Inputs::make_groups(const std::vector<Index>& lengths, Index samples,
                         Index offset) {
  require_token_memory(lengths, samples, subject_, selection_);
  require_sound_masks(selection_.masks, lengths);
  for (const Index n : lengths) {
    const Index together = std::max<Index>(1, tokens_together / n);
    for (Index first = 0; first < samples; first += together)
      groups_.push_back({.n = n,
                         .first = first,
                         .count = std::min(together, samples - first),
                         .offset = offset + first * n,
                         .number = static_cast<Index>(groups_.size())});
    offset += samples * n;
  }
}

std::vector<std::vector<Group>> Inputs::portions(
    const std::vector<Group>& groups) const {
  // of each token two states on their way through a layer, its input there in
  // f64, and what the layer makes of it
  constexpr double room = 5e8;
  const double bytes_a_token = 32.0 * static_cast<double>(subject_.features());
  std::vector<std::vector<Group>> all;
  double bytes = 0.0;
  for (const Group& group : groups) {
    const double more = bytes_a_token * static_cast<double>(group.n) *
                        static_cast<double>(group.count);
    if (all.empty() || bytes + more > room) {
      all.emplace_back();
      bytes = 0.0;
    }
    all.back().push_back(group);
    bytes += more;
  }
  return all;
}

std::vector<Matrix> Inputs::at(const Group& group) {
  if (need_pass() && subject_.keeps_layers)
    return dtype_ == NumberFormat::f64 ? through_model(group, passes_f64_)
                                       : through_model(group, passes_f32_);
  std::vector<Matrix> inputs(selection_.layers.size());
  InputWalk walk(*this, {group});
  for (const std::size_t layer : ascending_layers(selection_))
    inputs[layer] = std::move(walk.at(layer).front());
  return inputs;
}

// what needs no pass: given or drawn
Matrix Inputs::made_up(const Group& group, std::size_t layer) const {
  if (!gaussian_) return given_;
  const Index d = subject_.features();
  Matrix x(group.count * group.n, d);
  for (Index i = 0; i < group.count; ++i) {
    auto rows = x.middleRows(i * group.n, group.n);
    rows = gaussian(
        group.n, d,
        Rng(seed_).split(token_stream).split(group.n).split(group.first + i));
    if (radii_[layer])
      rows *= *radii_[layer] / rows.rowwise().norm().maxCoeff();
  }
  return x;
}

// all that at() draws them from
std::string Inputs::gaussian_recipe(const Group& group, Index i,
                                    std::size_t layer) const {
  return fmt::format("gaussian seed={} n={} d={} sample={} radius={}", seed_,
                     group.n, subject_.features(), group.first + i,
                     radii_[layer] ? fmt::format("{:.17g}", *radii_[layer])
                                   : std::string("any"));
}

Record Inputs::with_tokens(Record r, const Group& group, Index i,
                           std::size_t layer) const {
  r.n = group.n;
  r.sample = group.first + i;
  r.dtype = dtype_;
  r.input = input_;
  if (gaussian_) {
    r.input->sha256 = sha256_text(gaussian_recipe(group, i, layer));
  } else if (!ids_.empty()) {
    const Index begin = group.offset + i * group.n;
    r.input->offset = begin;
    r.input->sha256 = fingerprint(std::span(ids_).subspan(
        static_cast<std::size_t>(begin), static_cast<std::size_t>(group.n)));
  }
  return r;
}

std::vector<std::string> Inputs::words(const Group& group, Index i) const {
  std::vector<std::string> found;
  const Index begin = group.offset + i * group.n;
  for (Index t = begin; t < begin + group.n && !ids_.empty(); ++t)
    found.push_back(words_.empty() ? fmt::format(" {}", ids_[t]) : words_[t]);
  return found;
}

template <class Real>
MatrixOf<Real> Inputs::input_of_layer_0(const Group& group) const {
  if (embedded_.size() > 0) return embedded_.cast<Real>();
  const auto first = ids_.begin() + group.offset;
  return embed<Real>(*subject_.model, {first, first + group.count * group.n},
                     group.count);
}

template <class Real>
LayerWalk<Real> Inputs::walk_of(const std::vector<Group>& groups) const {
  if (embedded_.size() == 0) require_complete(*subject_.model);
  std::vector<StackedSequences<Real>> batches;
  for (const Group& group : groups)
    batches.push_back({input_of_layer_0<Real>(group), group.count});
  return {*subject_.model, std::move(batches),
          PassOptions{.mask = selection_.padding(), .threads = threads_}};
}

bool Inputs::of_attention() const {
  return selection_.map == MapName::core || selection_.map == MapName::attn;
}

template <class Real>
Matrix Inputs::checked(const MatrixOf<Real>& x, Index layer) const {
  if (!x.allFinite())
    throw RunError(fmt::format("{}: the input of layer {} is not finite in {}",
                               subject_.name, layer, name_of(dtype_)));
  return x.template cast<double>();
}

template <class Real>
std::vector<Matrix> Inputs::through_model(const Group& group,
                                          Passes<Real>& passes) {
  Index last = 0;
  for (const std::optional<Index>& layer : selection_.layers)
    last = std::max(last, layer.value_or(0));
  if (!passes.contains(group.count)) {
    passes.clear();
    passes.try_emplace(group.count, *subject_.model,
                       PassOptions{.mask = selection_.padding(),
                                   .sequences = group.count,
                                   .threads = threads_,
                                   .layers = last + 1,
                                   .from_layer_0 = embedded_.size() > 0});
  }
  const ForwardPass<Real>& pass = passes.at(group.count);
  const HiddenStates<Real> states =
      pass.from(input_of_layer_0<Real>(group), last + 1);

  std::vector<Matrix> inputs;
  for (const std::optional<Index>& layer : selection_.layers) {
    const Index l = layer.value_or(0);
    inputs.push_back(
        checked(of_attention() ? states.attention[l] : states.layer[l], l));
  }
  return inputs;
}

InputWalk::InputWalk(const Inputs& inputs, std::vector<Group> groups,
                     std::function<void(Index layer)> passed)
    : inputs_(inputs), groups_(std::move(groups)), passed_(std::move(passed)) {
  if (!inputs.need_pass()) return;
  if (inputs.dtype_ == NumberFormat::f64)
    walk_.emplace<LayerWalk<double>>(inputs.walk_of<double>(groups_));
  else
    walk_.emplace<LayerWalk<float>>(inputs.walk_of<float>(groups_));
}

std::vector<Matrix> InputWalk::at(std::size_t layer) {
  if (auto* walk = std::get_if<LayerWalk<float>>(&walk_))
    return at(layer, *walk);
  if (auto* walk = std::get_if<LayerWalk<double>>(&walk_))
    return at(layer, *walk);
  std::vector<Matrix> made;
  for (const Group& group : groups_)
    made.push_back(inputs_.made_up(group, layer));
  return made;
}

template <class Real>
std::vector<Matrix> InputWalk::at(std::size_t layer,
                                  LayerWalk<Real>& walk) const {
  const Index asked = inputs_.selection_.layers[layer].value_or(0);
  require(asked >= walk.layer(), "inputs: layer {} after layer {}", asked,
          walk.layer());
  while (walk.layer() < asked) {
    walk.advance();
    if (passed_) passed_(walk.layer() - 1);
  }
  std::vector<Matrix> found;
  for (std::size_t b = 0; b < groups_.size(); ++b)
    found.push_back(inputs_.of_attention()
                        ? inputs_.checked(walk.attention_input(b), asked)
                        : inputs_.checked(walk.layer_input(b), asked));
  return found;
}

std::vector<std::size_t> ascending_layers(const Selection& selection) {
  std::vector<std::size_t> numbers(selection.layers.size());
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  std::stable_sort(numbers.begin(), numbers.end(),
                   [&](std::size_t a, std::size_t b) {
                     return selection.layers[a] < selection.layers[b];
                   });
  return numbers;
}

Index measurements(const Inputs& inputs, const Selection& selection) {
  Index count = 0;
  for (const Group& group : inputs.groups()) count += group.count;
  return count *
         static_cast<Index>(selection.layers.size() * selection.heads.size());
}

}  // namespace lipscope::audit
