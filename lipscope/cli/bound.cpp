// lipscope bound: what theory allows attention to do, from weights, length and
// radius.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>

#include "lipscope/cli/above.h"
#include "lipscope/cli/bounds_table.h"
#include "lipscope/cli/commands.h"
#include "lipscope/cli/output.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"
#include "lipscope/spectral/estimate.h"
#include "lipscope/spectral/inf_norm.h"
#include "lipscope/theory/layer_bounds.h"
#include "lipscope/theory/unbounded.h"

namespace lipscope::cli {
namespace {

struct Options {
  SourceOptions source;
  SelectionOptions selection;
  OutputOptions output;
  int threads = 0;
};

void declare(CLI::App& app, Options& o) {
  app.description(
      "Bound the Lipschitz constant of attention from above: every bound that "
      "is proved for\nthese weights, this many tokens and this radius, the "
      "best one marked.\n\n"
      "  lipscope bound --random d=64,heads=4 --lengths 8,64,512 --radius 4\n"
      "  lipscope bound gpt2/ --heads each --length 1024 --out bounds.jsonl\n"
      "  lipscope bound bert/ --map model\n"
      "  lipscope bound --weights layer.safetensors --num-heads 8 --kind l2 "
      "--norm inf\n\n"
      "Dot-product attention is not Lipschitz over all inputs: without "
      "--radius, a layer by itself\nis answered with inputs at which it reacts "
      "ever more strongly.");
  declare_weights(app, o.source);
  declare_token_set(app, o.source);
  o.selection.token_norm = true;
  declare_selection(app, o.selection);
  app.add_option("--seed", o.source.seed, "of random weights")
      ->capture_default_str()
      ->group("How");
  app.add_option("--threads", o.threads, "0: all cores")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str()
      ->group("How");
  declare_output(app, o.output);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

// How the best bound grows with n, from n to 2n: the exponent, and what that
// means for a softmax. With logits within 2s of one another a column of P sums
// to n while n << e^{2s}, and to no more than e^{2s} (times log n under a mask)
// ever: sqrt-n, then saturated; mean-field once the bound without n is reached.
struct Growth {
  double exponent = 0.0;
  std::string regime;
};

Growth growth(const Bound& now, const std::vector<Bound>& all,
              const Bound& later) {
  Growth g{std::max(0.0, (later.log10 - now.log10) / std::log10(2.0)), {}};
  if (!std::isfinite(g.exponent)) g.exponent = 0.0;  // of a layer that is 0
  double without_n = INFINITY;
  for (const Bound& b : all)
    if (b.norm == "w2") without_n = std::min(without_n, b.log10);
  g.regime = now.log10 >= without_n - std::log10(1.01) ? "mean-field"
             : g.exponent > 0.25                       ? "sqrt-n"
                                                       : "saturated";
  return g;
}

class Bounding final {
 public:
  explicit Bounding(Options options)
      : o_(std::move(options)),
        subject_(load_subject(o_.source)),
        selection_(select(o_.selection, o_.source, subject_)),
        lengths_(parse_lengths(o_.source.lengths.empty() ? "128"
                                                         : o_.source.lengths)),
        maps_(subject_, selection_, o_.threads, 0),
        records_(o_.output),
        progress_(static_cast<Index>(selection_.layers.size()),
                  o_.output.quiet) {
    const bool unlimited = unbounded(selection_.kind);
    radius_ = o_.source.radius;
    if (radius_.empty())
      radius_ = subject_.model && selection_.kind != Kind::l2_untied
                    ? "ln"
                    : "everywhere";
    refuse_what_is_unknown(unlimited);
    witness_ = unlimited && radius_ == "everywhere" && attention();
  }

  int run() {
    if (selection_.map == MapName::model) {
      for (const Index n : lengths_) model(n);
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
          whole_layer(layer);
      }
    }
    records_.print(bounds_table(records_.shown(), records_.quiet()));
    return 0;
  }

 private:
  bool attention() const {
    return selection_.map == MapName::core || selection_.map == MapName::attn;
  }

  void refuse_what_is_unknown(bool unlimited) const {
    const std::string kind = name_of(selection_.kind), norm = selection_.norm;
    if (!attention() && norm != "2")
      throw InputError(fmt::format(
          "--map {} --norm {}: layers and models are bounded in the 2-norm",
          name_of(selection_.map), norm));
    if (!attention() && radius_ != "ln")
      throw InputError(fmt::format(
          "--map {} --radius {}: what its attention reads has passed a norm "
          "layer; expected ln",
          name_of(selection_.map), radius_));
    if (selection_.kind == Kind::l2_untied && radius_ != "everywhere")
      throw InputError(fmt::format(
          "--kind l2-untied --radius {}: no bound over a ball is known, and "
          "over all inputs there is none; without --radius the inputs are "
          "shown at which it grows",
          radius_));
    const bool known = norm == "2" ||
                       (norm == "token" && selection_.kind == Kind::dot) ||
                       (norm == "inf" && selection_.kind == Kind::l2) ||
                       (norm == "inf" && unlimited && radius_ == "everywhere");
    if (!known)
      throw InputError(fmt::format(
          "--norm {} --kind {}: no bound is known; 2 has one for every kind "
          "but l2-untied, inf for l2, token for dot",
          norm, kind));
    if (norm == "token" && radius_ == "everywhere")
      throw InputError(
          "--norm token: give --radius; dot-product attention has no bound "
          "over all inputs, and the token norm is not measured");
    const Index least = *std::min_element(lengths_.begin(), lengths_.end());
    if (unlimited && radius_ == "everywhere" && least < 3)
      throw InputError(fmt::format(
          "--length {}: the inputs at which {} attention grows without bound "
          "have at least 3 tokens; give --radius for a bound at {}",
          least, kind, least));
  }

  TokenSet tokens(std::optional<Index> layer) const {
    if (radius_ == "everywhere") return {};
    return tokens_within(radius_, subject_, layer);
  }

  Record question(std::optional<Index> layer, std::optional<Index> head,
                  Index n) const {
    Record r;
    r.command = "bound";
    r.model = subject_.name;
    r.model_sha256 = subject_.sha256;
    r.layer = layer;
    r.head = head;
    r.map = name_of(selection_.map);
    r.kind = name_of(selection_.kind);
    r.mask = name_of(selection_.mask);
    r.norm = selection_.norm;
    r.n = n;
    r.d = subject_.features();
    r.dtype = "f64";
    r.seed = o_.source.seed;
    return r;
  }

  void add(const Record& r) {
    if (!records_.find(r)) records_.add(r);
  }

  // the part of a record that a bound fills
  static void fill(Record& r, const Bound& b, const TokenSet& tokens) {
    const bool ball = b.scope != "everywhere";
    r.scope = ball ? "ball" : "everywhere";
    if (ball) r.radius_max = tokens.radius;
    r.parameters["bound"] = b.name;
    if (ball && tokens.norm) r.parameters["tokens"] = "after the norm layer";
    if (std::isfinite(b.value)) r.upper = b.value;
    if (std::isfinite(b.log10)) r.upper_log10 = b.log10;
    r.upper_by = b.name;
    r.details["citation"] = b.citation;
    r.details["proved_norm"] = b.norm;
    r.details["proved_mask"] = b.mask;
  }

  void attention_layer(std::optional<Index> layer) {
    const TokenSet where = tokens(layer);
    const LayerWeights& weights = maps_.weights(layer);
    const auto bounds_at = [&](std::optional<Index> head, Index n) {
      return attention_bounds(weights, selection_.map == MapName::attn,
                              map_options(selection_, head), n, where);
    };
    struct Answer {
      std::vector<Bound> now, later;  // at n and at 2n
      double seconds = 0.0;
    };
    const Index heads = static_cast<Index>(selection_.heads.size());
    const Index lengths = static_cast<Index>(lengths_.size());
    std::vector<Answer> answers(heads * lengths);
    parallel_for(heads * lengths, o_.threads, [&](Index i) {
      const auto start = std::chrono::steady_clock::now();
      const std::optional<Index> head = selection_.heads[i / lengths];
      const Index n = lengths_[i % lengths];
      answers[i].now = bounds_at(head, n);
      answers[i].later = bounds_at(head, 2 * n);
      answers[i].seconds = seconds_since(start);
    });
    for (Index i = 0; i < heads * lengths; ++i)
      write(
          question(layer, selection_.heads[i / lengths], lengths_[i % lengths]),
          where, std::move(answers[i].now), answers[i].later,
          answers[i].seconds);
  }

  // one record for each bound, from the best to the worst
  void write(const Record& asked, const TokenSet& where, std::vector<Bound> now,
             const std::vector<Bound>& later, double seconds) {
    std::erase_if(
        now, [&](const Bound& b) { return !speaks_of(b, selection_.norm); });
    if (now.empty())
      throw InputError(fmt::format(
          "{}: no bound is known for kind {}, mask {}, norm {}{}",
          subject_.name, asked.kind, asked.mask, asked.norm,
          maps_.weights(asked.layer).rope_theta ? " with rotary positions"
                                                : ""));
    std::stable_sort(
        now.begin(), now.end(),
        [](const Bound& a, const Bound& b) { return a.log10 < b.log10; });
    const std::optional<Bound> best_later = best_bound(later, selection_.norm);
    for (const Bound& b : now) {
      Record r = asked;
      fill(r, b, where);
      const bool best = &b == &now.front();
      r.details["best"] = best;
      if (best) {
        const Growth g = growth(b, now, *best_later);
        r.details["growth"] = g.exponent;
        if (selection_.kind == Kind::dot && selection_.norm == "2")
          r.details["regime"] = g.regime;
      }
      r.seconds = seconds / static_cast<double>(now.size());
      add(r);
    }
  }

  // The best bound on the attention that reads what a norm layer lets through,
  // and with it the layer. In a pre-norm model every input passes that norm: it
  // holds everywhere.
  std::pair<Bound, BlockParts> parts(const LayerWeights& weights,
                                     std::optional<Index> layer, Index n,
                                     MapName map) const {
    const std::optional<Bound> attention =
        best_bound(attention_bounds(weights, true, map_options(selection_, {}),
                                    n, tokens(layer)),
                   "2");
    if (!attention || !std::isfinite(attention->value))
      throw InputError(
          fmt::format("{}: no bound is known for kind {}{}", subject_.name,
                      name_of(selection_.kind),
                      weights.rope_theta ? " with rotary positions" : ""));
    return {*attention, parts_everywhere(weights, map, attention->value)};
  }

  Bound around(const std::string& map, const Bound& inner,
               Magnitude value) const {
    return make_bound(
        {.name = map + "(" + inner.name + ")",
         .norm = "2",
         .mask = inner.mask,
         .citation = "of its parts, theory/blocks.h; " + inner.citation},
        value, subject_.model->config.pre_norm() ? "everywhere" : inner.scope);
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

  void whole_layer(std::optional<Index> layer) {
    const LayerWeights& weights = maps_.weights(layer);
    for (const Index n : lengths_) {
      const auto start = std::chrono::steady_clock::now();
      const auto [attention, made] = parts(weights, layer, n, selection_.map);
      Record r = question(layer, {}, n);
      fill(r,
           around(r.map, attention,
                  layer_bound(made, selection_.map, weights.pre_norm)),
           tokens(layer));
      r.details["best"] = true;
      r.details["log10_of_parts"] = logs(made, selection_.map);
      r.seconds = seconds_since(start);
      add(r);
    }
  }

  // the product over all blocks and the final norm
  void model(Index n) {
    const auto start = std::chrono::steady_clock::now();
    const Model& model = *subject_.model;
    Magnitude product = 1.0;
    std::optional<Bound> inner;
    nlohmann::ordered_json layers = nlohmann::ordered_json::array();
    for (Index l = 0; l < model.config.layers; ++l) {
      progress_.show(0, fmt::format("n = {}, layer {}", n, l));
      const LayerWeights weights = load_layer(model, l);
      const auto [attention, made] = parts(weights, l, n, MapName::block);
      const Magnitude block =
          layer_bound(made, MapName::block, weights.pre_norm);
      layers.push_back(block.log10());
      product = product * block;
      if (!inner || inner->log10 < attention.log10) inner = attention;
    }
    if (const std::optional<NormWeights> norm = load_final_norm(model))
      product = product * norm_layer_everywhere(*norm);
    Record r = question({}, {}, n);
    fill(r, around("model", around("block", *inner, 1.0), product),
         tokens(Index{0}));
    r.details["best"] = true;
    r.details["log10_of_layers"] = layers;
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
        for (const double t : {10.0, 100.0, 1000.0})
          witness(layer, chosen, n, t, number, fastest);
    }
  }

  void witness(std::optional<Index> layer, std::optional<Index> chosen, Index n,
               double t, Index number, const HeadWeights& fastest) {
    const auto start = std::chrono::steady_clock::now();
    const Matrix x = unbounded_witness(fastest, selection_.kind, n, t);
    Record r = question(layer, chosen, n);
    r.parameters["t"] = t;
    r.radius_max = x.rowwise().norm().maxCoeff();
    r.scope = "input";
    if (records_.find(r)) return;
    const MapPtr<double> exact = maps_.make<double>(layer, chosen, 1);
    if (selection_.norm == "inf") {
      r.lower = inf_norm(*exact->linearize(x), {.threads = o_.threads}).value;
      r.lower_by = "row-sweep";
    } else {
      MeasureOptions how;
      how.threads = o_.threads;
      how.seed = o_.source.seed;
      const Measurement m =
          measure_norm(*maps_.make<float>(layer, chosen, 1), *exact, x, how);
      r.lower = m.lower;
      r.lower_by = m.lower_by;
      r.converged = m.converged;
      r.residual = m.residual;
      r.steps = m.steps;
    }
    r.details["not_lipschitz"] = true;
    r.details["witness_head"] = number;
    r.seconds = seconds_since(start);
    add(r);
  }

  Options o_;
  Subject subject_;
  Selection selection_;
  std::vector<Index> lengths_;
  Maps maps_;
  Records records_;
  Progress progress_;
  std::string radius_;  // a number, "ln" or "everywhere"
  bool witness_ = false;
};

}  // namespace

Run bound_command(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  declare(app, *options);
  return [options] { return Bounding(*options).run(); };
}

}  // namespace lipscope::cli
