#include "lipscope/audit/bound.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "lipscope/attention/common_mode.h"
#include "lipscope/audit/maps.h"
#include "lipscope/audit/new_record.h"
#include "lipscope/audit/subject.h"
#include "lipscope/audit/token_bounds.h"
#include "lipscope/audit/token_memory.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"
#include "lipscope/model/stack.h"
#include "lipscope/record/evidence.h"
#include "lipscope/spectral/estimate.h"
#include "lipscope/spectral/inf_norm.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/model_bounds.h"
#include "lipscope/theory/regime.h"
#include "lipscope/theory/stack_constant.h"
#include "lipscope/theory/unbounded.h"

namespace lipscope::audit {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

class Bounding final {
 public:
  Bounding(BoundRequest request, const Watch& watch)
      : o_(std::move(request)),
        subject_(load_subject(o_.source, watch)),
        selection_(select(o_.selection, o_.source, subject_)),
        lengths_(lengths_of(o_.source)),
        maps_(subject_, selection_, o_.threads, 0),
        progress_(watch, static_cast<Index>(selection_.layers.size())) {
    require_sound_masks(selection_.masks, lengths_);
    if (stacked()) {
      if (o_.source.radius) radius_ = *o_.source.radius;
      refuse_what_is_unknown_of_a_stack();
      return;
    }
    const bool unlimited = unbounded(selection_.kind);
    if (o_.source.radius)
      radius_ = *o_.source.radius;
    else if (subject_.model && kind_bounds(selection_.kind).add)
      radius_ = Radius::norm_layer();
    refuse_what_is_unknown(unlimited);
    witness_ = unlimited && radius_.is_everywhere() && attention();
    if (witness_ && subject_.model &&
        subject_.model->config.query_key_norm != QueryKeyNormForm::none)
      throw nothing_known();
    if (witness_) require_token_memory(lengths_, 1, subject_, selection_);
  }

  // the order in which `run` answers: layer, head, length, and t of a witness
  Plan plan(const std::vector<std::string>& arguments) const {
    Plan plan("bound", arguments);
    for (const std::optional<Index>& layer : selection_.layers)
      for (const std::optional<Index>& head : selection_.heads)
        for (const Index n : lengths_) {
          Record question = asked(layer, head, n);
          if (!witness_) plan.add(question);
          if (!witness_) continue;
          for (const double t : growing) {
            question.parameters["t"] = t;
            plan.add(question);
          }
        }
    return plan;
  }

  void run(Records& records) {
    records_ = &records;
    records_->open();
    records_->count_of(static_cast<Index>(
        selection_.layers.size() * selection_.heads.size() * lengths_.size() *
        (witness_ ? std::size(growing) : 1)));
    if (selection_.map == MapName::model) {
      for (const Index n : lengths_)
        if (takes(asked({}, {}, n))) stacked() ? stack(n) : model(n);
    } else {
      Index done = 0;
      for (const std::optional<Index>& layer : selection_.layers) {
        progress_.show(done++, layer ? fmt::format("layer {}", *layer)
                                     : std::string("the layer"));
        if (witness_)
          witnesses(layer);
        else if (attention())
          attention_layer(layer);
        else
          whole_layer(*layer);
      }
    }
    // which bounds there are is known when they are made
    records_->count(found_,
                    static_cast<Index>(records_->rows().size()) - found_);
  }

 private:
  // how far out the inputs lie at which a map that is not Lipschitz is measured
  static constexpr double growing[] = {10.0, 100.0, 1000.0};

  // Whether the next question, in the order of `plan`, is this run's.
  bool takes(const Record& question) {
    const Index number = next_++;
    if (!records_->takes(number)) return false;
    records_->check(number, question);
    return true;
  }

  bool attention() const {
    return selection_.map == MapName::core || selection_.map == MapName::attn;
  }

  // Of layers of other forms than x + f(x) the constants are those of
  // theory/stack_constant.h, of the whole model.
  bool stacked() const {
    if (!subject_.model) return false;
    const ModelConfig& c = subject_.model->config;
    return c.position_heads > 0 || (c.carry != 1.0 && !attention());
  }

  void refuse_what_is_unknown_of_a_stack() const {
    if (selection_.map != MapName::model)
      throw InputError(fmt::format(
          "--map {}: {} has position heads, or layers that are not x + f(x); "
          "the whole of it is bounded, by --map model",
          name_of(selection_.map), subject_.name));
    if (selection_.norm != Norm::two && selection_.norm != Norm::token)
      throw InputError(
          fmt::format("--norm {}: {} is bounded in the norms 2 and token",
                      name_of(selection_.norm), subject_.name));
    if (radius_.is_norm_layer())
      throw InputError(fmt::format(
          "--radius ln: {} has position heads, or layers that are not x + "
          "f(x); expected a number, the length of tokens that enter layer 0",
          subject_.name));
  }

  void refuse_what_is_unknown(bool unlimited) const {
    const std::string kind = selection_.kind_name;
    const Norm norm = selection_.norm;
    if (!attention() && norm != Norm::two)
      throw InputError(fmt::format(
          "--map {} --norm {}: layers and models are bounded in the 2-norm",
          name_of(selection_.map), name_of(norm)));
    if (!attention() && !radius_.is_norm_layer() && norms_ahead())
      throw InputError(fmt::format(
          "--map {} --radius {}: what its attention reads has passed a norm "
          "layer; expected ln",
          name_of(selection_.map), name_of(radius_)));
    if (selection_.map == MapName::model && !norms_ahead() &&
        subject_.model->config.norm == NormPlace::none &&
        !lipschitz_everywhere(selection_, std::nullopt))
      throw InputError(fmt::format(
          "--map model: {} has no norms, and nothing bounds what the {} "
          "attention of its later layers reads",
          subject_.name, kind));
    const KindBounds& proved = kind_bounds(selection_.kind);
    for (const Mask& mask : selection_.masks)
      if (const std::string why = why_no_bounds(selection_.kind, mask);
          proved.add && !why.empty())
        throw InputError(
            fmt::format("--padding {}: {}", o_.selection.padding, why));
    if (!proved.add && !radius_.is_everywhere())
      throw InputError(fmt::format(
          "--kind {} --radius {}: no bound over a ball is known, and over all "
          "inputs there is none; without --radius the inputs are shown at "
          "which it grows",
          kind, name_of(radius_)));
    const bool known =
        norm == Norm::two || (norm == Norm::token && proved.token) ||
        (norm == Norm::inf && proved.inf) ||
        (norm == Norm::inf && unlimited && radius_.is_everywhere());
    if (!known)
      throw InputError(fmt::format(
          "--norm {} --kind {}: no bound is known; 2 has one for every kind "
          "but l2-untied, inf for l2, token for dot and l2",
          name_of(norm), kind));
    if (norm == Norm::token && unlimited && radius_.is_everywhere())
      throw InputError(
          "--norm token: give --radius; dot-product attention has no bound "
          "over all inputs, and how it grows is shown in the norms 2 and inf");
    const Index least = *std::min_element(lengths_.begin(), lengths_.end());
    if (unlimited && radius_.is_everywhere() && least < 3)
      throw InputError(fmt::format(
          "--length {}: the inputs at which {} attention grows without bound "
          "have at least 3 tokens; give --radius for a bound at {}",
          least, kind, least));
    for (const Mask& mask : selection_.masks)
      for (const Index n : lengths_)
        if (unlimited && radius_.is_everywhere() && attention() &&
            !witness_grows(selection_.kind, mask, n))
          throw InputError(fmt::format(
              "mask \"{}\", n = {}: the last token sees too few others for the "
              "inputs at which {} attention grows; give --radius for a bound",
              name_of(mask), n, kind));
  }

  // a norm layer ahead of the attention of every layer
  bool norms_ahead() const {
    return norm_ahead(subject_.model->config, 0).has_value();
  }

  // Around attention a radius is for layers without a norm ahead of it.
  TokenSet tokens(std::optional<Index> layer) const {
    if (radius_.is_everywhere()) return {};
    const bool ahead = !attention() && input_norm(subject_, layer).has_value();
    if (ahead || (radius_.is_norm_layer() && subject_.model))
      return tokens_ahead(subject_, selection_, layer);
    return tokens_within(radius_, subject_, layer);
  }

  Record asked(std::optional<Index> layer, std::optional<Index> head,
               Index n) const {
    Record r = new_record("bound", subject_, selection_, o_.source.seed);
    r.layer = layer;
    r.head = head;
    r.n = n;
    set_mask(selection_, r);
    r.dtype = NumberFormat::f64;
    r.parameters["radius"] = to_json(radius_);
    return r;
  }

  void add(const Record& r) {
    if (records_->find(r)) ++found_;
    records_->add(r);
  }

  // the part of a record that a bound fills
  static void fill(Record& r, const Bound& b, const TokenSet& tokens) {
    const bool ball = !b.scope.is_everywhere();
    r.scope = scope_of(b.scope);
    if (ball && tokens.radius > 0.0) r.radius_max = tokens.radius;
    r.parameters["bound"] = b.name;
    if (ball && tokens.norm) r.parameters["tokens"] = "after the norm layer";
    set_upper(r, b);
    r.details["citation"] = b.citation;
    r.details["proved_norm"] = name_of(b.norm);
    r.details["proved_mask"] = b.mask;
  }

  void attention_layer(std::optional<Index> layer) {
    const Index heads = static_cast<Index>(selection_.heads.size());
    const Index lengths = static_cast<Index>(lengths_.size());
    std::vector<Index> taken;
    for (Index i = 0; i < heads * lengths; ++i)
      if (takes(asked(layer, selection_.heads[i / lengths],
                      lengths_[i % lengths])))
        taken.push_back(i);
    if (taken.empty()) return;
    const TokenSet where = tokens(layer);
    maps_.weights(layer);  // read once, ahead of the threads
    // those that speak of the norm, from the best to the worst
    const auto bounds_at = [&](std::optional<Index> head, Index n) {
      std::vector<Bound> all =
          bounds_of(maps_, selection_, layer, head, n, where);
      std::erase_if(
          all, [&](const Bound& b) { return !speaks_of(b, selection_.norm); });
      std::stable_sort(
          all.begin(), all.end(),
          [](const Bound& a, const Bound& b) { return a.log10 < b.log10; });
      return all;
    };
    struct Answer {
      std::vector<Bound> now, later;  // at n and at 2n
      double seconds = 0.0;
    };
    std::vector<Answer> answers(heads * lengths);
    parallel_for(static_cast<Index>(taken.size()), o_.threads, [&](Index k) {
      const Index i = taken[k];
      const auto start = std::chrono::steady_clock::now();
      const std::optional<Index> head = selection_.heads[i / lengths];
      const Index n = lengths_[i % lengths];
      answers[i].now = bounds_at(head, n);
      answers[i].later = bounds_at(head, 2 * n);
      answers[i].seconds = seconds_since(start);
    });
    for (const Index i : taken)
      write(asked(layer, selection_.heads[i / lengths], lengths_[i % lengths]),
            where, answers[i].now, answers[i].later, answers[i].seconds);
  }

  // one record for each bound
  void write(const Record& question, const TokenSet& where,
             const std::vector<Bound>& now, const std::vector<Bound>& later,
             double seconds) {
    if (now.empty()) throw nothing_known();
    const Regime regime = regime_of(now, later);
    for (const Bound& b : now) {
      Record r = question;
      fill(r, b, where);
      const bool best = &b == &now.front();
      r.details["best"] = best;
      // how many there are: whoever merges records sees whether one is missing
      r.details["bounds"] = now.size();
      if (best) r.details["growth"] = regime.exponent;
      if (best && selection_.kind == Kind::dot && selection_.norm == Norm::two)
        r.details["regime"] = regime.name;
      r.seconds = seconds / static_cast<double>(now.size());
      add(r);
    }
  }

  InputError nothing_known() const {
    const std::string features =
        subject_.model ? subject_.model->config.score_features() : "";
    return InputError(fmt::format(
        "{}: no bound is known for kind {}, norm {}{}", subject_.name,
        selection_.kind_name, name_of(selection_.norm),
        features.empty() ? "" : " with " + features));
  }

  static nlohmann::ordered_json logs(const BlockParts& p, MapName map) {
    nlohmann::ordered_json json = {
        {"attention", p.attention.log10()},
        {"attention_norm", p.attention_norm.log10()}};
    if (map == MapName::block) {
      json["mlp"] = p.mlp.log10();
      json["mlp_norm"] = p.mlp_norm.log10();
    }
    return json;
  }

  void whole_layer(Index layer) {
    for (const Index n : lengths_) {
      if (!takes(asked(layer, {}, n))) continue;
      const auto start = std::chrono::steady_clock::now();
      const TokenSet where = tokens(layer);
      const std::optional<LayerBound> found =
          layer_bound_everywhere(maps_.weights(layer), selection_.map,
                                 map_options(selection_, {}), n, where);
      if (!found) throw nothing_known();
      Record r = asked(layer, {}, n);
      fill(r, found->bound, where);
      r.details["best"] = true;
      r.details["log10_of_parts"] = logs(found->parts, selection_.map);
      r.seconds = seconds_since(start);
      add(r);
    }
  }

  // the product over all blocks and the final norm
  void model(Index n) {
    const auto start = std::chrono::steady_clock::now();
    const Model& model = *subject_.model;
    const TokenSet entering = tokens(Index{0});
    const std::optional<ModelBound> found = model_bound_everywhere(
        model,
        [&](Index l) -> const LayerWeights& {
          progress_.show(0, fmt::format("n = {}, layer {}", n, l));
          return maps_.weights(l);
        },
        map_options(selection_, {}), n, entering);
    if (!found) throw nothing_known();
    nlohmann::ordered_json layers = nlohmann::ordered_json::array();
    for (const Magnitude& block : found->layers)
      layers.push_back(block.log10());
    Record r = asked({}, {}, n);
    fill(r, found->bound, entering);
    r.details["best"] = true;
    r.details["log10_of_layers"] = layers;
    r.seconds = seconds_since(start);
    add(r);
  }

  // the product over all parts of a model, followed through its layers
  void stack(Index n) {
    const auto start = std::chrono::steady_clock::now();
    if (!stack_) stack_ = load_stack(*subject_.model);
    stack_->context = n;
    StackConstantOptions how{.norm = selection_.norm};
    if (!radius_.is_everywhere()) how.radius = radius_.value();
    const StackConstant found = stack_constant(*stack_, how);
    if (!found.hidden)
      throw InputError(fmt::format("{}: no bound is known; {}{}", subject_.name,
                                   found.unbounded,
                                   how.radius ? "" : "; give --radius R"));
    nlohmann::ordered_json parts = nlohmann::ordered_json::array();
    for (const StackPart& part : found.parts)
      parts.push_back({{"layer", part.layer},
                       {"part", part.part},
                       {"bound", part.bound},
                       {"log10", part.value.log10()}});
    Record r = asked({}, {}, n);
    fill(r,
         make_bound({.name = "stack_constant",
                     .norm = selection_.norm,
                     .mask = "causal",
                     .citation = "lipscope: product of proved parts, "
                                 "theory/stack_constant.h"},
                    *found.hidden, found.scope),
         {.radius = how.radius.value_or(0.0)});
    r.details["best"] = true;
    r.details["parts"] = parts;
    r.details["logits_log10"] = found.logits->log10();
    r.seconds = seconds_since(start);
    add(r);
  }

  // inputs at which the map grows without bound, and how much it does there
  void witnesses(std::optional<Index> layer) {
    const LayerWeights& weights = maps_.weights(layer);
    const AttentionWeights read = attention_of(weights, selection_.kind);
    for (const std::optional<Index>& chosen : selection_.heads) {
      // of a layer, the head that grows fastest
      HeadWeights fastest;
      Index number = 0;
      double rate = -1.0;
      for (Index h = 0; h < read.heads; ++h) {
        if (chosen && *chosen != h) continue;
        HeadWeights one = head(read, h);
        if (selection_.map == MapName::core) one.output = Matrix();
        const double its_rate = unbounded_rate(one);
        if (its_rate <= rate) continue;
        rate = its_rate;
        number = h;
        fastest = std::move(one);
      }
      for (const Index n : lengths_)
        for (const double t : growing)
          witness(layer, chosen, n, t, number, fastest);
    }
  }

  void witness(std::optional<Index> layer, std::optional<Index> chosen, Index n,
               double t, Index number, const HeadWeights& fastest) {
    const auto start = std::chrono::steady_clock::now();
    Record r = asked(layer, chosen, n);
    r.parameters["t"] = t;
    if (!takes(r)) return;
    const Matrix x = unbounded_witness(fastest, selection_.kind, n, t);
    r.radius_max = x.rowwise().norm().maxCoeff();
    r.scope = Scope::input;
    if (records_->keep(r)) {
      ++found_;
      return;
    }
    const MapPtr<double> exact = maps_.make<double>({layer, chosen}, 1);
    if (selection_.norm == Norm::inf) {
      r.lower = inf_norm(*exact->linearize(x), {.threads = o_.threads}).value;
      r.lower_by = NormMethod::row_sweep;
    } else {
      MeasureOptions how;
      how.from_above = false;
      how.threads = o_.threads;
      how.seed = o_.source.seed;
      const MapPtr<float> search = maps_.make<float>({layer, chosen}, 1);
      how.common_shift = common_shift_of(*search);
      const Measurement m = measure_norm(*search, *exact, x, how);
      set_lower(r, m);
    }
    r.details["not_lipschitz"] = true;
    r.details["witness_head"] = number;
    r.seconds = seconds_since(start);
    add(r);
  }

  BoundRequest o_;
  Subject subject_;
  Selection selection_;
  std::vector<Index> lengths_;
  Maps maps_;
  Records* records_ = nullptr;
  Progress progress_;
  Radius radius_ = Radius::everywhere();
  bool witness_ = false;
  std::optional<Stack> stack_;  // of a model that is bounded as one
  Index found_ = 0;             // by --resume
  Index next_ = 0;              // number of the next question
};

}  // namespace

void bound(const BoundRequest& request, Records& records, const Watch& watch) {
  Bounding(request, watch).run(records);
}

Plan plan(const BoundRequest& request,
          const std::vector<std::string>& arguments, const Watch& watch) {
  return Bounding(request, watch).plan(arguments);
}

}  // namespace lipscope::audit
