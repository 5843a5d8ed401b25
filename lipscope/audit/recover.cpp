#include "lipscope/audit/recover.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "lipscope/audit/inputs.h"
#include "lipscope/audit/text_windows.h"
#include "lipscope/control/recover.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/rounding.h"
#include "lipscope/io/npy.h"
#include "lipscope/record/config_fingerprint.h"
#include "lipscope/record/evidence.h"
#include "lipscope/record/fingerprint.h"
#include "lipscope/text/tokenizer.h"

namespace lipscope::audit {
namespace {

using nlohmann::ordered_json;

// activations, and what they were made from where that is known
struct Passage {
  Matrix x, y;
  std::vector<Index> ids;
  Record question;
};

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

class Recovering final {
 public:
  Recovering(const RecoverRequest& request, Records& records,
             const Watch& watch)
      : o_(request),
        model_(load_model(o_.source.model)),
        sha256_(model_.parameters.sha256()),
        tokenizer_(load_tokenizer(o_.source.model)),
        records_(records),
        progress_(watch, 1) {
    for (TokenId i = 0; i < tokenizer_.vocabulary_size(); ++i)
      characters_.push_back(tokenizer_.decode(std::span(&i, 1)));
    require_no_norms(model_);
    require_complete(model_);
    o_.invert.norm = Norm::inf;
    records_.open();
  }

  Outcome run() {
    if (!o_.source.input.empty()) {
      Matrix y = read_npy(o_.source.input);
      if (y.cols() != model_.config.width || y.rows() < 1 ||
          y.rows() > model_.config.positions)
        throw InputError(fmt::format(
            "{}: [{}, {}]; the model has {} features and at most {} positions",
            o_.source.input, y.rows(), y.cols(), model_.config.width,
            model_.config.positions));
      const Record question = asked(
          y.rows(),
          {.from = "file", .name = o_.source.input, .sha256 = fingerprint(y)});
      const bool known = records_.find(question);
      records_.count(known, !known);
      one({.x = {}, .y = std::move(y), .ids = {}, .question = question});
    } else {
      windows();
    }
    return {.converged = records_.all_converged()};
  }

 private:
  // one window as long as the model reads, or as the text is
  Windows passages_of(Index characters) const {
    SourceOptions asked = o_.source;
    if (asked.samples == 0) asked.samples = 1;
    const Index left = characters - asked.offset;
    if (asked.lengths.empty()) {
      const Index n =
          std::clamp<Index>(left / asked.samples, 1, model_.config.positions);
      asked.lengths = std::to_string(n);
      if (n < model_.config.positions)
        progress_.note(fmt::format(
            "{} has {} characters: length {}, {} window{}", text_name(asked),
            left, n, asked.samples, asked.samples == 1 ? "" : "s"));
    }
    return windows_of_text(asked, characters, model_.config.positions,
                           "characters")
        .windows;
  }

  // Castin24's protocol, as elsewhere: a cursor that only advances
  void windows() {
    if (!gives_text(o_.source))
      throw InputError(fmt::format(
          "{}: which text? Give --text FILE, or the activations by --input "
          "Y.npy",
          o_.source.model));
    const std::vector<Index> all = read_tokens(o_.source, model_).ids;
    const Windows windows = passages_of(static_cast<Index>(all.size()));
    const auto& [lengths, samples] = windows;
    if ((!o_.trained.save_output.empty() || !o_.save_input.empty()) &&
        samples * static_cast<Index>(lengths.size()) > 1)
      throw InputError("--save-output and --save-input take one passage");
    std::vector<Passage> passages;
    std::size_t at = static_cast<std::size_t>(o_.source.offset);
    for (const Index n : lengths)
      for (Index sample = 0; sample < samples; ++sample) {
        const auto from = all.begin() + static_cast<std::ptrdiff_t>(at);
        Passage p{.x = {}, .y = {}, .ids = {from, from + n}, .question = {}};
        p.question = asked(n, {.from = o_.source.text.empty() ? "ids" : "text",
                               .sha256 = fingerprint(p.ids),
                               .offset = static_cast<Index>(at)});
        if (o_.source.token_ids.empty())
          p.question.input->name = text_name(o_.source);
        p.question.sample = sample;
        passages.push_back(std::move(p));
        at += static_cast<std::size_t>(n);
      }
    const Index found = std::count_if(
        passages.begin(), passages.end(),
        [&](const Passage& p) { return records_.find(p.question) != nullptr; });
    records_.count(found, static_cast<Index>(passages.size()) - found);
    for (Passage& p : passages) {
      if (!saves() && records_.keep(p.question)) continue;
      p.x = embed<double>(model_, p.ids);
      p.y = ResidualModel(model_, p.question.n, o_.threads)(p.x);
      if (!p.y.allFinite())
        throw RunError(
            fmt::format("{}: the activations are not finite", o_.source.model));
      if (o_.trained.activations == NumberFormat::f32)
        p.y = p.y.cast<float>().cast<double>().eval();
      one(std::exchange(p, {}));
    }
  }

  bool saves() const {
    return !(o_.trained.save_output + o_.save_input).empty();
  }

  Record asked(Index n, RecordInput input) const {
    Record r;
    r.command = "invert";
    r.model = o_.source.model;
    r.model_sha256 = sha256_;
    r.map = "inverse";
    r.quantity = Quantity::reconstruction_error;
    r.kind = model_.config.kind_name();
    r.mask = name_of(model_.config.mask(0));
    r.norm = o_.invert.norm;
    r.n = n;
    r.d = model_.config.width;
    r.input = std::move(input);
    r.scope = Scope::input;
    r.dtype = NumberFormat::f64;
    r.parameters = {{"of", "model"},
                    {"config_sha256", fingerprint(model_.config)},
                    {"characters_sha256", fingerprint(characters_)},
                    {"tolerance", o_.invert.tolerance},
                    {"max_iterations", o_.invert.max_iterations},
                    {"given", r.input->from == "file" ? "Y" : "X"}};
    if (o_.trained.activations == NumberFormat::f32)
      r.parameters["activations"] = name_of(NumberFormat::f32);
    if (o_.trained.given_error)
      r.parameters["given_error"] = *o_.trained.given_error;
    return r;
  }

  void one(const Passage& p) {
    if (!o_.trained.save_output.empty()) write_npy(o_.trained.save_output, p.y);
    Record r = p.question;
    if (!saves() && records_.keep(r)) return;
    set_radii(p.y, r);
    const auto start = std::chrono::steady_clock::now();
    const ResidualModel stack(model_, p.y.rows(), o_.threads);
    InvertOptions options = o_.invert;
    options.given_error =
        o_.trained.given_error.value_or(storage_rounding(p.y));
    options.keep_going = [&](const InvertStep& s) {
      progress_.show(
          0, fmt::format("n = {}, iteration {}", p.y.rows(), s.iteration));
      return true;
    };
    const StackInversion found = invert_stack(stack.residuals(), p.y, options);
    // the X that was given is the preimage of Y before it was rounded
    std::optional<double> bound;
    if (found.error_bound)
      bound = well_above(*found.error_bound + *found.rounding);
    const ReadTokens read = lipscope::read_tokens(model_, found.x, bound);

    r.converged = found.status == InvertStatus::converged;
    answer(r, stack, found, read);
    if (options.given_error > 0) r.details["given_error"] = options.given_error;
    if (bound) {
      r.upper = *bound;
      r.upper_by = Procedure::a_posteriori;
    }
    if (!p.ids.empty()) {
      const double error = sequence_norm(found.x - p.x, o_.invert.norm);
      if (std::isfinite(error)) {
        r.lower = error;
        r.lower_by = Procedure::reconstruction;
      }
      Index right = 0;
      for (std::size_t i = 0; i < p.ids.size(); ++i)
        right += p.ids[i] == read.ids[i];
      r.details["recovered"] = right;
    }
    r.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    if (!o_.save_input.empty()) write_npy(o_.save_input, found.x);
    records_.add(r);
  }

  void answer(Record& r, const ResidualModel& stack,
              const StackInversion& found, const ReadTokens& read) const {
    ordered_json blocks = ordered_json::array();
    Index iterations = 0;
    for (std::size_t i = 0; i < found.each.size(); ++i) {
      const Inversion& b = found.each[i];
      iterations += b.iterations;
      const std::size_t block = stack.names().size() - 1 - i;
      blocks.push_back(
          {{"block", stack.names()[block]},
           {"iterations", b.iterations},
           {"a_priori", or_null(b.a_priori)},
           {"contraction", or_null(b.contraction)},
           {"lipschitz", or_null(stack.residuals()[block].lipschitz)},
           {"error_bound", or_null(b.error_bound)},
           {"status", name_of(b.status)}});
    }
    r.steps = iterations;
    std::vector<TokenId> ids(read.ids.begin(), read.ids.end());
    r.details = {
        {"outcome", name_of(found.status)},
        {"proved", std::count(read.proved.begin(), read.proved.end(), true)},
        {"margin", read.margin},
        {"farthest", read.farthest},
        {"text", tokenizer_.decode(ids)},
        {"blocks", std::move(blocks)}};
  }

  RecoverRequest o_;
  Model model_;
  std::optional<std::string> sha256_;
  Tokenizer tokenizer_;
  std::vector<std::string> characters_;
  Records& records_;
  Progress progress_;
};

}  // namespace

bool is_trained(const std::string& folder) {
  return !folder.empty() &&
         load_model(folder).config.architecture == Architecture::lipscope;
}

Outcome recover(const RecoverRequest& request, Records& records,
                const Watch& watch) {
  return Recovering(request, records, watch).run();
}

}  // namespace lipscope::audit
