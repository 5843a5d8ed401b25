#include "lipscope/audit/certify.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "lipscope/control/certifier.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/memory.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rng.h"
#include "lipscope/model/masked_stack.h"
#include "lipscope/model/pass.h"
#include "lipscope/record/config_fingerprint.h"
#include "lipscope/record/evidence.h"
#include "lipscope/record/fingerprint.h"
#include "lipscope/text/tokenizer.h"
#include "lipscope/theory/mlp_bound.h"
#include "lipscope/theory/model_bounds.h"
#include "lipscope/theory/norm_layer_bound.h"
#include "lipscope/theory/norms.h"
#include "lipscope/train/corpus.h"

namespace lipscope::audit {
namespace {

// one prediction that is asked about
struct Place {
  std::shared_ptr<const Certifier::Sequence> sequence;
  Index position = 0;  // in its sequence
  Record record;       // the question, then the answer
  bool taken = true;   // this run's to answer
  bool known = false;
};

// A model that predicts tokens: the next, or masked ones.
Model certifiable(const std::string& folder) {
  Model model = load_model(folder);
  const ModelConfig& c = model.config;
  if (!has_head(c)) {
    const std::string why = why_no_masked_tokens(model);
    if (!why.empty())
      throw InputError(
          fmt::format("certify {}: a {} model does not predict the next token; "
                      "{}",
                      folder, name_of(c.architecture), why));
  }
  // all weights, as they are and in the map that is attacked
  require_memory(2 * sizeof(double) * parameter_count(c),
                 fmt::format("certify: a model of {} layers of width {}, a "
                             "context of {}",
                             c.layers, c.width, c.positions));
  require_complete(model);
  return model;
}

// what theory/stack_constant.h speaks of: all that lipscope train makes, and
// layers of others in the same form
bool has_stack_constant(const Model& model, const Stack& stack) {
  if (model.config.architecture == Architecture::lipscope) return true;
  return !stack.transform &&
         std::all_of(stack.layers.begin(), stack.layers.end(),
                     [](const LayerWeights& w) {
                       return w.mask == Mask::causal && w.plain_scores() &&
                              w.plain_form() && w.mlp.gate.size() == 0;
                     });
}

// Of the whole model over all inputs; of layers of other forms from the bounds
// of their blocks.
StackConstant constant_of(const Model& model, const Stack& stack, Index n) {
  if (has_stack_constant(model, stack)) return stack_constant(stack);
  StackConstant found;
  for (std::size_t l = 0; l < stack.layers.size(); ++l) {
    const LayerWeights& w = stack.layers[l];
    if (!w.query_key_norm) continue;
    found.unbounded = fmt::format(
        "layer {}, attention: q/k-norm has no bound over all inputs here", l);
    return found;
  }
  const std::optional<ModelBound> hidden = model_bound_everywhere(
      model,
      [&](Index l) -> const LayerWeights& {
        return stack.layers[static_cast<std::size_t>(l)];
      },
      {}, n);
  if (!hidden) {
    found.unbounded =
        "a layer without a norm ahead of its attention, or whose bound is "
        "larger than a double";
    return found;
  }
  Magnitude product = 1.0;
  for (const Magnitude& layer : hidden->layers) product = product * layer;
  if (stack.last_norm)
    product = product * norm_layer_everywhere(*stack.last_norm);
  if (stack.transform)
    product = product * mlp_lipschitz(stack.transform->dense, Norm::two) *
              norm_layer_everywhere(stack.transform->norm);
  found.hidden = product;
  found.logits = product * weight_norm_above(stack.head);
  return found;
}

// the constants of a radius, an object for each layer
nlohmann::ordered_json by_layers(const std::vector<PartGain>& parts) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const PartGain& p : parts) {
    if (layers.empty() || layers.back()["layer"] != p.layer)
      layers.push_back({{"layer", p.layer}});
    layers.back()[p.part] = p.log10;
  }
  return layers;
}

// a model of masked tokens reads all of its window for each of them
constexpr Index usual_masked_window = 32;

class Certifying final {
 public:
  Certifying(CertifyRequest request, const Watch& watch)
      : o_(std::move(request)),
        model_(certifiable(o_.folder)),
        masked_(!has_head(model_.config)),
        stack_(masked_ ? load_masked_stack(model_) : load_stack(model_)),
        tokenizer_(load_tokenizer(o_.folder, model_.config.vocabulary)),
        text_(piece_of(o_.text, tokenizer_)),
        watch_(watch) {
    const Index most = model_.config.positions;
    if (o_.context > most)
      throw InputError(fmt::format(
          "--context {}: the model reads {} tokens at most", o_.context, most));
    window_ = o_.context > 0 ? o_.context
              : masked_      ? std::min(most, usual_masked_window)
                             : most;
    if (masked_) mask_ = id_of_mask();
  }

  Plan plan(const std::vector<std::string>& arguments) const {
    const Certifier certifier(stack_);
    const Record question = question_of_all(certifier);
    Plan plan("certify", arguments);
    Index done = 0;
    for (const Batch& window : all_windows(text_.tokens, 1, window_))
      for (const Place& p : places_of(question, window, done, count())) {
        plan.add(p.record);
        ++done;
      }
    return plan;
  }

  Certified run(Records& records) {
    records_ = &records;
    records_->open();
    const Certifier certifier(stack_);
    const Index count = this->count(), taken = records_->count_of(count);
    const std::vector<Batch> windows = all_windows(text_.tokens, 1, window_);
    const Record question = question_of_all(certifier);
    announce(question, windows, count);
    const Progress progress(watch_, taken);
    Index done = 0, answered = 0;
    for (const Batch& window : windows) {
      if (done == count) break;
      // a window is the piece of work: its positions side by side
      std::vector<Place> places = places_of(question, window, done, count);
      const auto wanted = [](const Place& p) { return p.taken && !p.known; };
      if (std::any_of(places.begin(), places.end(), wanted))
        set_sequences(certifier, window, places);
      parallel_for(static_cast<Index>(places.size()), o_.threads, [&](Index i) {
        if (wanted(places[i]))
          answer(certifier, masked_ ? window.characters[i] : window.targets[i],
                 places[i]);
      });
      for (const Place& p : places) {
        ++done;
        if (!p.taken) continue;
        records_->add(p.record);
        progress.show(++answered, "positions");
      }
    }
    return {.constant = constant_of(model_, stack_, window_),
            .unbounded = certifier.unbounded()};
  }

 private:
  Index count() const {
    const auto all = static_cast<Index>(text_.tokens.size()) - 1;
    return o_.positions == 0 ? all : std::min(o_.positions, all);
  }

  // the piece that stands for a token that is to be guessed
  Index id_of_mask() const {
    const std::vector<std::string>& pieces = tokenizer_.pieces();
    for (const char* name : {"[MASK]", "<mask>"}) {
      const auto at = std::find(pieces.begin(), pieces.end(), name);
      if (at != pieces.end()) return at - pieces.begin();
    }
    throw InputError(fmt::format(
        "{}: its tokenizer has no piece [MASK] or <mask>, which stands for the "
        "tokens that are predicted",
        o_.folder));
  }

  // A model of the next token has one sequence for all positions of a window.
  // One of masked tokens has one for each, with the mask in place of the token.
  void set_sequences(const Certifier& certifier, const Batch& window,
                     std::vector<Place>& places) const {
    std::vector<Index> ids(window.characters.begin(), window.characters.end());
    const auto made = [&] {
      return std::make_shared<const Certifier::Sequence>(
          certifier.sequence(embed<double>(model_, ids)));
    };
    if (masked_) {
      for (Place& p : places) {
        if (p.known || !p.taken) continue;
        const Index own = std::exchange(ids[p.position], mask_);
        p.sequence = made();
        ids[p.position] = own;
        set_radii(p.sequence->x, p.record);
      }
      return;
    }
    // no more of a long window than is asked about; in steps, so that a few
    // positions more or less do not change how products are rounded
    const std::size_t asked = (places.size() + 63) / 64 * 64;
    if (ids.size() > asked) ids.resize(asked);
    const auto sequence = made();
    for (Place& p : places) {
      p.sequence = sequence;
      set_radii(sequence->x.topRows(p.position + 1), p.record);
    }
  }

  // The questions at the positions of a window, of which `done` came before.
  // The content of one is what the model read and the token that came next.
  std::vector<Place> places_of(const Record& question, const Batch& window,
                               Index done, Index count) const {
    std::vector<Place> places(std::min(window.length, count - done));
    std::vector<Index> read;
    for (Index i = 0; i < static_cast<Index>(places.size()); ++i) {
      Place& p = places[i];
      p.position = i;
      p.record = question;
      p.record.n = masked_ ? window.length : i + 1;
      p.record.sample = done + i;
      // the restarts of the attack are drawn by it
      p.record.parameters["position"] = done + i;
      if (masked_) {
        read.assign(window.characters.begin(), window.characters.end());
        read.push_back(i);
      } else {
        read.push_back(window.characters[i]);
        read.push_back(window.targets[i]);
      }
      p.record.input = RecordInput{.from = "text",
                                   .name = o_.text.text,
                                   .sha256 = fingerprint(read),
                                   .offset = text_.begin + done};
      read.pop_back();
      if (!records_) continue;
      p.taken = records_->takes(done + i);
      if (!p.taken) continue;
      records_->check(done + i, p.record);
      p.known = records_->find(p.record) != nullptr;
    }
    return places;
  }

  // how much is done already, before anything is made
  void announce(const Record& question, const std::vector<Batch>& windows,
                Index count) {
    if (!records_->resumes()) return;
    Index done = 0, found = 0;
    for (const Batch& window : windows)
      for (const Place& p : places_of(question, window, done, count)) {
        ++done;
        found += p.known;
      }
    records_->count(found, records_->count_of(count) - found);
  }

  // what the records of all positions have in common
  Record question_of_all(const Certifier& certifier) const {
    Record r;
    r.command = "certify";
    r.model = o_.folder;
    r.model_sha256 = model_.parameters.sha256();
    r.map = "model";
    r.kind = model_.config.kind_name();
    r.mask = name_of(model_.config.mask(0));
    r.norm = Norm::two;
    r.quantity = Quantity::distance;
    r.lower_is = Evidence::proved;
    r.upper_is = Evidence::found;
    r.d = model_.config.width;
    r.scope = Scope::input;
    r.dtype = NumberFormat::f64;
    r.seed = o_.attack.seed;
    r.parameters = {
        {"distance", "nearest change of the prediction"},
        {"from", "input of layer 0"},
        {"to", masked_ ? "masked token"
               : model_.config.architecture == Architecture::lipscope
                   ? "next character"
                   : "next token"},
        {"config_sha256", fingerprint(model_.config)},
        {"characters_sha256", fingerprint(tokenizer_.pieces())},
        {"targets", o_.attack.targets},
        {"restarts", o_.attack.restarts},
        {"iterations", o_.attack.iterations}};
    if (masked_ || o_.context > 0) r.parameters["context"] = window_;
    if (!certifier.bound().empty())
      r.lower_by = KnownBy::deviation(certifier.bound());
    return r;
  }

  // a model may have more logits than its tokenizer has pieces
  std::string piece(Index token) const {
    return token < tokenizer_.vocabulary_size()
               ? tokenizer_.piece(static_cast<TokenId>(token))
               : fmt::format("token {}", token);
  }

  void answer(const Certifier& certifier, int next, Place& p) const {
    const auto start = std::chrono::steady_clock::now();
    AttackOptions how = o_.attack;
    how.seed = Rng(o_.attack.seed).split(p.record.sample).next();
    const Robustness found = certifier.at(*p.sequence, p.position, how);
    const CertifiedRadius& c = found.certified;
    Record& r = p.record;
    r.details = {{"predicted", piece(c.character)},
                 {"next", piece(next)},
                 {"right", c.character == next},
                 {"margin", c.margin},
                 {"runner_up", piece(c.runner_up)}};
    if (c.proved) {
      r.lower = c.radius;
      r.details["gain_log10"] = c.gain_log10;
      if (std::isfinite(c.log10)) r.details["lower_log10"] = c.log10;
      r.details["parts_log10"] = by_layers(found.parts);
    } else {
      r.details["nothing_proved"] = certifier.unbounded();
    }
    if (how.targets > 0) r.converged = found.attack.has_value();
    if (found.attack) {
      set_upper(r, found.attack->distance, Procedure::attack);
      r.steps = found.attack->evaluations;
      r.details["becomes"] = piece(found.attack->character);
    }
    r.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
  }

  CertifyRequest o_;
  Model model_;
  bool masked_;  // it predicts masked tokens, not the next one
  Stack stack_;
  Tokenizer tokenizer_;
  TextPiece text_;
  Records* records_ = nullptr;
  Watch watch_;
  Index window_ = 1;  // tokens that are read, at most
  Index mask_ = 0;    // the token that stands for masked ones
};

}  // namespace

Certified certify(const CertifyRequest& request, Records& records,
                  const Watch& watch) {
  return Certifying(request, watch).run(records);
}

Plan plan(const CertifyRequest& request,
          const std::vector<std::string>& arguments, const Watch& watch) {
  return Certifying(request, watch).plan(arguments);
}

}  // namespace lipscope::audit
