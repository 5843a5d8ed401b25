#include "lipscope/audit/certify.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "lipscope/control/certifier.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/memory.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rng.h"
#include "lipscope/model/pass.h"
#include "lipscope/record/config_fingerprint.h"
#include "lipscope/record/evidence.h"
#include "lipscope/record/fingerprint.h"
#include "lipscope/text/tokenizer.h"
#include "lipscope/train/corpus.h"

namespace lipscope::audit {
namespace {

// one prediction that is asked about
struct Place {
  std::shared_ptr<const Certifier::Sequence> sequence;
  Index position = 0;  // in its sequence
  Record record;       // the question, then the answer
  bool known = false;
};

// A model of the next token whose layers control/deviation.h follows a change
// through.
Model certifiable(const std::string& folder) {
  Model model = load_model(folder);
  const ModelConfig& c = model.config;
  require_next_token(model);
  if (!c.plain_scores() || c.gated || c.parallel || c.output_norms ||
      c.residual_scale != 1.0 || c.carry != 1.0 || c.head_bias)
    throw InputError(fmt::format(
        "certify {}: a {} model; no radius is proved for rotary positions, "
        "position heads, gated MLPs, a head with a bias, and layers of another "
        "form than GPT-2's and BERT's",
        folder, name_of(c.architecture)));
  // all weights, as they are and in the map that is attacked
  require_memory(2 * sizeof(double) * parameter_count(c),
                 fmt::format("certify: a model of {} layers of width {}, a "
                             "context of {}",
                             c.layers, c.width, c.positions));
  require_complete(model);
  return model;
}

class Certifying final {
 public:
  Certifying(CertifyRequest request, Records& records, const Watch& watch)
      : o_(std::move(request)),
        model_(certifiable(o_.folder)),
        stack_(load_stack(model_)),
        tokenizer_(load_tokenizer(o_.folder, model_.config.vocabulary)),
        text_(piece_of(o_.text, tokenizer_)),
        records_(records),
        watch_(watch) {
    records_.open();
  }

  Certified run() {
    const Certifier certifier(stack_);
    const auto all = static_cast<Index>(text_.tokens.size()) - 1;
    const Index count = o_.positions == 0 ? all : std::min(o_.positions, all);
    const std::vector<Batch> windows =
        all_windows(text_.tokens, 1, model_.config.positions);
    const Record question = question_of_all(certifier);
    announce(question, windows, count);
    const Progress progress(watch_, count);
    Index done = 0;
    for (const Batch& window : windows) {
      if (done == count) break;
      // a window is the piece of work: its positions side by side
      std::vector<Place> places = places_of(question, window, done, count);
      if (!std::all_of(places.begin(), places.end(),
                       [](const Place& p) { return p.known; })) {
        const auto sequence = std::make_shared<const Certifier::Sequence>(
            certifier.sequence(embed<double>(
                model_, {window.characters.begin(), window.characters.end()})));
        for (Place& p : places) {
          p.sequence = sequence;
          set_radii(sequence->x.topRows(p.position + 1), p.record);
        }
      }
      parallel_for(static_cast<Index>(places.size()), o_.threads, [&](Index i) {
        if (!places[i].known) answer(certifier, window.targets[i], places[i]);
      });
      for (const Place& p : places) {
        records_.add(p.record);
        progress.show(++done, "positions");
      }
    }
    return {.constant = stack_constant(stack_)};
  }

 private:
  // The questions at the positions of a window, of which `done` came before.
  // The content of one is what the model read and the token that came next.
  std::vector<Place> places_of(const Record& question, const Batch& window,
                               Index done, Index count) {
    std::vector<Place> places(std::min(window.length, count - done));
    std::vector<Index> read;
    for (Index i = 0; i < static_cast<Index>(places.size()); ++i) {
      Place& p = places[i];
      p.position = i;
      p.record = question;
      p.record.n = i + 1;
      p.record.sample = done + i;
      // the restarts of the attack are drawn by it
      p.record.parameters["position"] = done + i;
      read.push_back(window.characters[i]);
      read.push_back(window.targets[i]);
      p.record.input = RecordInput{.from = "text",
                                   .name = o_.text.text,
                                   .sha256 = fingerprint(read),
                                   .offset = text_.begin + done};
      read.pop_back();
      p.known = records_.find(p.record) != nullptr;
    }
    return places;
  }

  // how much is done already, before anything is made
  void announce(const Record& question, const std::vector<Batch>& windows,
                Index count) {
    if (!records_.resumes()) return;
    Index done = 0, found = 0;
    for (const Batch& window : windows)
      for (const Place& p : places_of(question, window, done, count)) {
        ++done;
        found += p.known;
      }
    records_.count(found, count - found);
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
    r.parameters = {{"distance", "nearest change of the prediction"},
                    {"from", "input of layer 0"},
                    {"to", model_.config.architecture == Architecture::lipscope
                               ? "next character"
                               : "next token"},
                    {"config_sha256", fingerprint(model_.config)},
                    {"characters_sha256", fingerprint(tokenizer_.pieces())},
                    {"targets", o_.attack.targets},
                    {"restarts", o_.attack.restarts},
                    {"iterations", o_.attack.iterations}};
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
  Stack stack_;
  Tokenizer tokenizer_;
  TextPiece text_;
  Records& records_;
  Watch watch_;
};

}  // namespace

Certified certify(const CertifyRequest& request, Records& records,
                  const Watch& watch) {
  return Certifying(request, records, watch).run();
}

}  // namespace lipscope::audit
