// lipscope invert: the input of residual attention from its output, with the
// number of iterations known beforehand and the error bounded afterwards.

#include "lipscope/control/invert.h"

#include <chrono>
#include <cmath>
#include <map>
#include <memory>

#include "lipscope/cli/above.h"
#include "lipscope/cli/answer.h"
#include "lipscope/cli/commands.h"
#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/inverted_table.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/output_files.h"
#include "lipscope/cli/points.h"
#include "lipscope/cli/progress.h"
#include "lipscope/cli/question.h"
#include "lipscope/cli/recover.h"
#include "lipscope/cli/solver.h"
#include "lipscope/cli/token_memory.h"
#include "lipscope/control/contractive.h"
#include "lipscope/control/log_det.h"
#include "lipscope/core/errors.h"
#include "lipscope/io/npy.h"
#include "lipscope/report/findings.h"

namespace lipscope::cli {
namespace {

using nlohmann::ordered_json;

// a dense log-determinant is made beside the estimate up to so many unknowns
constexpr Index dense_unknowns = 512;

struct Options {
  SourceOptions source;
  SelectionOptions selection{.norm = "inf"};
  double scale = 0.5;
  Index depth = 1;
  InvertOptions invert;
  bool log_det = false;
  LogDetOptions series;
  OutputOptions output;
  std::string save_input;
  TrainedOptions trained;
  int threads = 0;
  bool strict = false;
};

void declare(CLI::App& app, Options& o) {
  app.description(
      "Invert residual attention g(X) = X + c f(X): find X from Y = g(X) by "
      "X <- Y - c f(X).\nFor Contractive-L2 attention, f divided by its proved "
      "bound, it converges from every Y,\nby c at least in each iteration; for "
      "other kinds it is tried, and what happens is said.\n\n"
      "Of a folder that train made: the text from the last layer's "
      "activations, "
      "block by block;\nsure to succeed with train --invertible.\n\n"
      "  lipscope invert runs/inv --text shakespeare.txt --length 256\n"
      "  lipscope invert --random d=64,heads=8,scale=0.125 --length 64 "
      "--scale 0.9\n"
      "  lipscope invert --random d=64,heads=8,scale=0.125 --length 64 --kind "
      "dot --radius 50\n"
      "  lipscope invert --weights layer.safetensors --num-heads 8 --input "
      "Y.npy --save-input X.npy\n"
      "  lipscope invert --random d=4,heads=1,scale=1 --length 9 --scale 0.9 "
      "--log-det");
  declare_source(app, o.source);
  app.get_option("--kind")->description(
      "contractive-l2 (tied L2 attention divided by its bound in the "
      "inf-norm), l2, dot, l2-untied, cosine or sigmoid; auto: contractive-l2, "
      "and all of a folder that train made");
  app.get_option("--input")->description(
      "Y, [n, d], from Y.npy: the output that is to be inverted. Without it X "
      "is made as said here, and the result compared with it");
  declare_selection(app, o.selection);
  for (const char* other : {"--map", "--heads"})
    app.remove_option(app.get_option(other));
  app.get_option("--norm")->description(
      "of steps and errors: inf, in which contractive-l2 contracts; 2 or "
      "token");

  const char* group = "The inversion";
  app.add_option("--scale", o.scale, "c; below 1 for contractive-l2")
      ->transform(positive_number())
      ->capture_default_str()
      ->group(group);
  app.add_option("--depth", o.depth,
                 "so many blocks one after the other, all with these weights")
      ->transform(whole_number(1, 1000))
      ->capture_default_str()
      ->group(group);
  app.add_option("--tolerance", o.invert.tolerance,
                 "done when the error bound, or without one the step, is below "
                 "this times max(1, |Y|)")
      ->transform(positive_number())
      ->capture_default_str()
      ->group(group);
  app.add_option("--max-iterations", o.invert.max_iterations,
                 "of each block, before giving up")
      ->transform(whole_number(1, 100000000))
      ->capture_default_str()
      ->group(group);
  declare_effort(app, o.strict, o.source.seed, o.threads, group);

  const char* volume = "Volume";
  app.add_flag("--log-det", o.log_det,
               "also log det of the Jacobian of g at the X found, by a power "
               "series with random signs; needs a proved contraction")
      ->group(volume);
  app.add_option("--probes", o.series.probes, "vectors of random signs")
      ->transform(whole_number(2, 1000000))
      ->capture_default_str()
      ->group(volume);
  app.add_option("--truncation", o.series.truncation,
                 "what may be cut off the series")
      ->transform(positive_number())
      ->capture_default_str()
      ->group(volume);

  declare_output(app, o.output);
  declare_trained(app, o.trained);
  app.add_option("--save-input", o.save_input,
                 "write the X found, [n, d], to X.npy (one inversion only)")
      ->type_name("FILE")
      ->group("Output");
}

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
  explicit Inverting(Options options)
      : o_(understood(std::move(options))),
        contractive_(o_.source.kind == "contractive-l2"),
        subject_(load_subject(plain(o_.source, contractive_))),
        selection_(
            select(o_.selection, plain(o_.source, contractive_), subject_)),
        points_(o_.source, subject_, selection_, o_.threads),
        maps_(subject_, selection_, o_.threads, 0),
        records_(o_.output),
        total_(inputs(points_, selection_)),
        progress_(total_, o_.output.quiet) {
    if (total_ > 1 && !o_.save_input.empty())
      throw InputError(fmt::format(
          "--save-input takes one inversion; these are {}", total_));
    for (const Group& group : points_.groups())
      require_weight_memory(group.n, subject_, selection_, 0);
    o_.invert.norm = selection_.norm;
    o_.series.seed = o_.source.seed;
    o_.series.threads = o_.threads;
  }

  int run() {
    if (!o_.output.quiet) print_note(points_.note());
    announce();
    for (const Group& group : points_.groups()) {
      const std::vector<Matrix> given = points_.at(group);
      for (std::size_t l = 0; l < selection_.layers.size(); ++l)
        for (Index i = 0; i < group.count; ++i) {
          invert_one(asked_of(group, i, l),
                     given[l].middleRows(i * group.n, group.n));
          ++done_;
        }
    }
    progress_.clear();
    conclude(o_.output, records_.shown(),
             {.table = inverted_table,
              .answer = inverted_finding(records_.shown())});
    return o_.strict && !records_.all_converged() ? 3 : 0;
  }

 private:
  // how much is done already, before anything is made
  void announce() const {
    if (!records_.resumes()) return;
    Index found = 0;
    for (const Group& group : points_.groups())
      for (std::size_t l = 0; l < selection_.layers.size(); ++l)
        for (Index i = 0; i < group.count; ++i)
          found += records_.find(asked_of(group, i, l)) != nullptr;
    records_.announce(found, total_ - found);
  }

  static Options understood(Options o) {
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
      map_ = maps_.make<double>(layer, std::nullopt, 1);
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
    if (selection_.kind != Kind::l2 && selection_.kind != Kind::cosine)
      return {};
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
    if (selection_.norm == "inf") {
      result.lipschitz = 1.0;
      result.by = "kim21_inf";
    } else if (result.lipschitz) {
      result.lipschitz = well_above(*result.lipschitz / divisor);
    }
    return result;
  }

  Record asked_of(const Group& group, Index i, std::size_t layer) const {
    Record r = cli::question("invert", subject_, selection_, o_.source.seed);
    r.map = "inverse";
    r.kind = o_.source.kind;
    r.layer = selection_.layers[layer];
    r.scope = "input";
    r.parameters.update({{"scale", o_.scale},
                         {"depth", o_.depth},
                         {"tolerance", o_.invert.tolerance},
                         {"max_iterations", o_.invert.max_iterations},
                         {"given", o_.source.input.empty() ? "X" : "Y"},
                         {"dtype_of_the_pass", points_.dtype()}});
    if (o_.log_det)
      r.parameters.update(
          {{"probes", o_.series.probes}, {"truncation", o_.series.truncation}});
    r = points_.question(std::move(r), group, i, layer);
    r.dtype = "f64";
    return r;
  }

  void invert_one(Record r, const Matrix& given) {
    if (o_.save_input.empty() && records_.keep(r)) return;
    tell_radii(given, r);
    const std::optional<Index> layer = r.layer;
    const std::string doing = fmt::format("n = {}, sample {}", r.n, r.sample);
    progress_.show(done_, doing);
    const auto start = std::chrono::steady_clock::now();

    const Proved known = proved(layer, r.n);
    const std::vector<ResidualBlock> blocks(
        o_.depth, {&map(layer), o_.scale, known.lipschitz});
    const bool truth = o_.source.input.empty();
    const Matrix y = truth ? forward(blocks, given) : given;
    if (!y.allFinite())
      throw RunError(fmt::format("{}: Y is not finite", subject_.name));

    ordered_json curve = ordered_json::array();
    InvertOptions options = o_.invert;
    options.keep_going = [&](const InvertStep& s) {
      progress_.show(done_, fmt::format("{}, iteration {}, step {:.3g}", doing,
                                        s.iteration, s.step));
      // of one block; of several, the X of those between is nobody's input
      if (o_.depth == 1 && shown(s.iteration)) {
        ordered_json line = {{"iteration", s.iteration}, {"step", s.step}};
        if (truth) line["error"] = sequence_norm(s.x - given, selection_.norm);
        if (s.error_bound) line["bound"] = *s.error_bound;
        curve.push_back(line);
      }
      return true;
    };
    const StackInversion found = invert_stack(blocks, y, options);
    answer(r, found, known);
    if (!curve.empty()) r.details["curve"] = curve;
    if (truth) {
      const double error = sequence_norm(found.x - given, selection_.norm);
      if (std::isfinite(error)) {
        r.lower = error;
        r.lower_by = "reconstruction";
      }
    }
    if (found.error_bound) {
      // the X that was given is the preimage of Y before it was rounded
      r.upper = truth ? well_above(*found.error_bound + *found.rounding)
                      : *found.error_bound;
      r.upper_by = "a-posteriori";
    }
    const Matrix back = forward(blocks, found.x);
    const double residual = sequence_norm(back - y, selection_.norm);
    if (std::isfinite(residual)) r.residual = residual;
    if (o_.log_det) r.details["log_det"] = volume(blocks, found);
    r.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    if (!o_.save_input.empty()) write_npy(o_.save_input, found.x);
    records_.add(r);
  }

  static Matrix forward(const std::vector<ResidualBlock>& blocks, Matrix x) {
    for (const ResidualBlock& g : blocks) {
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
    for (const Inversion& one : found.blocks) {
      iterations += one.iterations;
      enough += one.a_priori.value_or(0);
      promised = promised && one.a_priori;
      ratio = std::max(ratio, one.worst_ratio);
    }
    r.steps = iterations;
    const std::optional<double> q = found.blocks.front().contraction;
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

  // of all blocks: the sum over them, each at its own input
  ordered_json volume(const std::vector<ResidualBlock>& blocks,
                      const StackInversion& found) const {
    const std::optional<double> q = blocks.front().contraction();
    if (!q)
      throw InputError(fmt::format(
          "--log-det: no contraction is proved for kind {} with --scale {} in "
          "norm {}; contractive-l2 has one in norm inf",
          o_.source.kind, o_.scale, selection_.norm));
    LogDet sum;
    double dense = 0.0, squares = 0.0;
    const bool small = found.x.size() <= dense_unknowns;
    LogDetOptions series = o_.series;
    series.contraction = *q;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const OperatorPtr<double> a =
          lipscope::scale(o_.scale, blocks[b].f->linearize(found.blocks[b].x));
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

  Options o_;
  bool contractive_;
  Subject subject_;
  Selection selection_;
  Points points_;
  Maps maps_;
  Records records_;
  Index total_, done_ = 0;
  Progress progress_;
  MapPtr<double> map_;
  std::optional<Index> map_layer_;
};

}  // namespace

Run invert_command(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  declare(app, *options);
  return [options, &app] {
    const Options& o = *options;
    OutputFiles files = files_of(o.source, o.output);
    files.writes(o.save_input, "--save-input", OutputKind::matrix);
    files.writes(o.trained.save_output, "--save-output", OutputKind::matrix);
    files.check(o.output.force);
    if (o.source.kind != "auto" || !is_trained(o.source.model)) {
      refuse_trained(app);
      return Inverting(o).run();
    }
    return recover(app, {.source = o.source,
                         .invert = o.invert,
                         .trained = o.trained,
                         .save_input = o.save_input,
                         .output = o.output,
                         .threads = o.threads,
                         .strict = o.strict});
  };
}

}  // namespace lipscope::cli
