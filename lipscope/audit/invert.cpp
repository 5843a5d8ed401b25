#include "lipscope/audit/invert.h"

#include <chrono>
#include <cmath>
#include <memory>

#include "lipscope/audit/inputs.h"
#include "lipscope/audit/maps.h"
#include "lipscope/audit/new_record.h"
#include "lipscope/audit/subject.h"
#include "lipscope/audit/token_bounds.h"
#include "lipscope/audit/token_memory.h"
#include "lipscope/control/contractive.h"
#include "lipscope/core/errors.h"
#include "lipscope/io/npy.h"
#include "lipscope/record/evidence.h"
#include "lipscope/theory/kim21.h"

namespace lipscope::audit {
namespace {

using nlohmann::ordered_json;

// up to this many unknowns a dense log-determinant is made beside the estimate
constexpr Index dense_unknowns = 512;

// the iterations that are shown: all at first, then fewer and fewer
bool shown(int iteration) {
  for (double next = 11.0; iteration > 10; next *= 1.25) {
    if (static_cast<int>(next) == iteration) return true;
    if (next > iteration) return false;
  }
  return true;
}

class Inverting final {
 public:
  Inverting(InvertRequest request, Records& records, const Watch& watch)
      : o_(understood(std::move(request))),
        contractive_(o_.source.kind == "contractive-l2"),
        subject_(load_subject(plain(o_.source, contractive_), watch)),
        selection_(
            select(o_.selection, plain(o_.source, contractive_), subject_)),
        inputs_(o_.source, subject_, selection_, o_.threads),
        maps_(subject_, selection_, o_.threads, 0),
        records_(records),
        total_(measurements(inputs_, selection_)),
        progress_(watch, total_) {
    if (total_ > 1 && !o_.save_input.empty())
      throw InputError(fmt::format(
          "--save-input takes one inversion; these are {}", total_));
    for (const Group& group : inputs_.groups())
      require_weight_memory(group.n, subject_, selection_, 0);
    o_.invert.norm = selection_.norm;
    o_.series.seed = o_.source.seed;
    o_.series.threads = o_.threads;
    records_.open();
  }

  Outcome run() {
    progress_.note(inputs_.note());
    announce();
    for (const Group& group : inputs_.groups()) {
      const std::vector<Matrix> given = inputs_.at(group);
      for (std::size_t l = 0; l < selection_.layers.size(); ++l)
        for (Index i = 0; i < group.count; ++i) {
          invert_one(asked_of(group, i, l),
                     given[l].middleRows(i * group.n, group.n));
          ++done_;
        }
    }
    return {.converged = records_.all_converged()};
  }

 private:
  // how much is done already, before anything is made
  void announce() {
    if (!records_.resumes()) return;
    Index found = 0;
    for (const Group& group : inputs_.groups())
      for (std::size_t l = 0; l < selection_.layers.size(); ++l)
        for (Index i = 0; i < group.count; ++i)
          found += records_.find(asked_of(group, i, l)) != nullptr;
    records_.count(found, total_ - found);
  }

  static InvertRequest understood(InvertRequest o) {
    if (o.source.kind == "auto") o.source.kind = "contractive-l2";
    const bool contractive = o.source.kind == "contractive-l2";
    if (contractive && o.scale >= 1.0)
      throw InputError(fmt::format(
          "--scale {}: x + c f(x) with a contraction f is invertible for c "
          "below 1",
          o.scale));
    try {
      if (!contractive) parse_kind(o.source.kind);
    } catch (const InputError& wrong) {
      throw InputError(fmt::format("{}; or contractive-l2", wrong.what()));
    }
    return o;
  }

  // the source as other commands know it: the division comes on top
  static SourceOptions plain(SourceOptions source, bool contractive) {
    if (contractive) source.kind = name_of(Kind::l2);
    return source;
  }

  // f of a layer; the one before is let go
  const Map<double>& map(std::optional<Index> layer) {
    if (map_ && map_layer_ == layer) return *map_;
    if (contractive_) {
      const LayerWeights& weights = maps_.weights(layer);
      ModelMapOptions options = map_options(selection_, std::nullopt);
      options.threads = o_.threads;
      map_ = std::make_unique<ContractiveL2<double>>(
          attention_of(weights, Kind::l2),
          attention_options(weights, true, options));
    } else {
      map_ = maps_.make<double>({.layer = layer}, 1);
    }
    map_layer_ = layer;
    return *map_;
  }

  struct Proved {
    std::optional<double> lipschitz;  // of f in the norm asked for
    std::string by;
    std::optional<double> divisor;
  };

  // what is known of f on sequences of n tokens anywhere: iterates may be
  // anywhere
  Proved proved(std::optional<Index> layer, Index n) {
    if (!lipschitz_everywhere(selection_, layer)) return {};
    Proved result;
    const std::vector<Bound> all =
        bounds_of(maps_, selection_, layer, std::nullopt, n, {});
    if (const auto best = best_bound(all, selection_.norm);
        best && std::isfinite(best->value)) {
      result.lipschitz = best->value;
      result.by = best->name;
    }
    if (!contractive_) return result;
    const double divisor =
        static_cast<const ContractiveL2<double>&>(map(layer)).bound(n).value();
    result.divisor = divisor;
    if (selection_.norm == Norm::inf) {
      result.lipschitz = 1.0;
      result.by = kim21_inf_statement.name;
    } else if (result.lipschitz) {
      result.lipschitz = well_above(*result.lipschitz / divisor);
    }
    return result;
  }

  Record asked_of(const Group& group, Index i, std::size_t layer) const {
    Record r = new_record("invert", subject_, selection_, o_.source.seed);
    r.map = "inverse";
    r.quantity = Quantity::reconstruction_error;
    r.kind = o_.source.kind;
    r.layer = selection_.layers[layer];
    r.scope = Scope::input;
    r.parameters.update({{"scale", o_.scale},
                         {"depth", o_.depth},
                         {"tolerance", o_.invert.tolerance},
                         {"max_iterations", o_.invert.max_iterations},
                         {"given", gives_tokens(o_.source) ? "Y" : "X"},
                         {"dtype_of_the_pass", name_of(inputs_.dtype())}});
    if (o_.log_det)
      r.parameters.update(
          {{"probes", o_.series.probes}, {"truncation", o_.series.truncation}});
    r = inputs_.with_tokens(std::move(r), group, i, layer);
    set_mask(selection_, r);
    r.dtype = NumberFormat::f64;
    return r;
  }

  void invert_one(Record r, const Matrix& given) {
    if (o_.save_input.empty() && !o_.witness && records_.keep(r)) return;
    set_radii(given, r);
    const std::optional<Index> layer = r.layer;
    const std::string doing = fmt::format("n = {}, sample {}", r.n, r.sample);
    progress_.show(done_, doing);
    const auto start = std::chrono::steady_clock::now();

    const Proved known = proved(layer, r.n);
    const std::vector<ResidualMap> maps(
        o_.depth, {&map(layer), o_.scale, known.lipschitz});
    const bool truth = !gives_tokens(o_.source);
    const Matrix y = truth ? forward(maps, given) : given;
    if (!y.allFinite())
      throw RunError(fmt::format("{}: Y is not finite", subject_.name));

    ordered_json curve = ordered_json::array();
    InvertOptions options = o_.invert;
    options.keep_going = [&](const InvertStep& s) {
      progress_.show(done_, fmt::format("{}, iteration {}, step {:.3g}", doing,
                                        s.iteration, s.step));
      // of one map; of several, the X of those between is nobody's input
      if (o_.depth == 1 && shown(s.iteration)) {
        ordered_json line = {{"iteration", s.iteration}, {"step", s.step}};
        if (truth) line["error"] = sequence_norm(s.x - given, selection_.norm);
        if (s.error_bound) line["bound"] = *s.error_bound;
        curve.push_back(line);
      }
      return true;
    };
    const StackInversion found = invert_stack(maps, y, options);
    answer(r, found, known);
    if (!curve.empty()) r.details["curve"] = curve;
    if (truth) {
      const double error = sequence_norm(found.x - given, selection_.norm);
      if (std::isfinite(error)) {
        r.lower = error;
        r.lower_by = Procedure::reconstruction;
      }
    }
    if (found.error_bound) {
      // the X that was given is the preimage of Y before it was rounded
      r.upper = truth ? well_above(*found.error_bound + *found.rounding)
                      : *found.error_bound;
      r.upper_by = Procedure::a_posteriori;
    }
    const Matrix back = forward(maps, found.x);
    const double residual = sequence_norm(back - y, selection_.norm);
    if (std::isfinite(residual)) r.residual = residual;
    if (o_.log_det) r.details["log_det"] = volume(maps, found);
    r.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    if (!o_.save_input.empty()) write_npy(o_.save_input, found.x);
    records_.add(r);
    if (o_.witness)
      o_.witness({.row = records_.rows().size() - 1, .input = found.x});
  }

  static Matrix forward(const std::vector<ResidualMap>& maps, Matrix x) {
    for (const ResidualMap& g : maps) {
      if (!x.allFinite()) return x;
      x = g(x);
    }
    return x;
  }

  static void answer(Record& r, const StackInversion& found,
                     const Proved& known) {
    r.converged = found.status == InvertStatus::converged;
    Index iterations = 0, enough = 0;
    double ratio = 0.0;
    bool promised = true;
    for (const Inversion& one : found.each) {
      iterations += one.iterations;
      enough += one.a_priori.value_or(0);
      promised = promised && one.a_priori;
      ratio = std::max(ratio, one.worst_ratio);
    }
    r.steps = iterations;
    const std::optional<double> q = found.each.front().contraction;
    const auto or_null = [](const auto& v) {
      return v ? ordered_json(*v) : ordered_json(nullptr);
    };
    r.details = {{"outcome", name_of(found.status)},
                 {"a_priori", promised ? ordered_json(enough) : nullptr},
                 {"contraction", or_null(q)},
                 {"worst_ratio", ratio > 0.0 ? ordered_json(ratio) : nullptr},
                 {"lipschitz", or_null(known.lipschitz)},
                 {"divisor", or_null(known.divisor)}};
    if (known.lipschitz) r.details["lipschitz_by"] = known.by;
  }

  // of all maps: the sum over them, each at its own input
  ordered_json volume(const std::vector<ResidualMap>& maps,
                      const StackInversion& found) const {
    const std::optional<double> q = maps.front().contraction();
    if (!q)
      throw InputError(fmt::format(
          "--log-det: no contraction is proved for kind {} with --scale {} in "
          "norm {}; contractive-l2 has one in norm inf",
          o_.source.kind, o_.scale, name_of(selection_.norm)));
    LogDet sum;
    double dense = 0.0, squares = 0.0;
    const bool small = found.x.size() <= dense_unknowns;
    LogDetOptions series = o_.series;
    series.contraction = *q;
    for (std::size_t b = 0; b < maps.size(); ++b) {
      const OperatorPtr<double> a =
          lipscope::scale(o_.scale, maps[b].f->linearize(found.each[b].x));
      series.seed = o_.series.seed + b;
      const LogDet one = log_det(*a, series);
      sum.value += one.value;
      sum.truncation += one.truncation;
      sum.terms = one.terms;
      squares += one.error_bar * one.error_bar;
      if (small) dense += log_det_dense(*a);
    }
    ordered_json json = {{"value", sum.value},
                         {"error_bar", std::sqrt(squares)},
                         {"confidence", series.confidence},
                         {"truncation", sum.truncation},
                         {"terms", sum.terms},
                         {"probes", series.probes}};
    if (small) json["dense"] = dense;
    return json;
  }

  InvertRequest o_;
  bool contractive_;
  Subject subject_;
  Selection selection_;
  Inputs inputs_;
  Maps maps_;
  Records& records_;
  Index total_, done_ = 0;
  Progress progress_;
  MapPtr<double> map_;
  std::optional<Index> map_layer_;
};

}  // namespace

Outcome invert(const InvertRequest& request, Records& records,
               const Watch& watch) {
  return Inverting(request, records, watch).run();
}

}  // namespace lipscope::audit
