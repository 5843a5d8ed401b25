// The commands: keyword arguments in, records as lines of JSON out, as the
// program prints them.

#include <nanobind/stl/vector.h>

#include <type_traits>
#include <utility>

#include "arrays.h"
#include "bindings.h"
#include "lipscope/audit/bound.h"
#include "lipscope/audit/certify.h"
#include "lipscope/audit/invert.h"
#include "lipscope/audit/meanfield.h"
#include "lipscope/audit/measure.h"
#include "lipscope/audit/page.h"
#include "lipscope/audit/recover.h"
#include "lipscope/audit/reproduce.h"
#include "lipscope/audit/search.h"
#include "lipscope/audit/train.h"
#include "lipscope/core/stop.h"
#include "lipscope/io/json_text.h"
#include "lipscope/model/activation.h"
#include "lipscope/report/findings.h"
#include "options.h"
#include "requests.h"
#include "watched_run.h"
#include "weights.h"

namespace lipscope::python {
namespace {

using Rows = std::vector<nlohmann::ordered_json>;

// ---- requests

void read_source(const Options& o, audit::SourceOptions& source) {
  o.read("model", source.model);
  o.read("weights", source.weights);
  o.read("random", source.random);
  o.read("num_heads", source.num_heads);
  o.read("kind", source.kind);
  o.read("tau", source.cosine.tau);
  o.read("nu", source.cosine.nu);
  o.read("epsilon", source.cosine.epsilon);
  o.read("input", source.input);
  o.read("embedded", source.embedded);
  o.read("text", source.text);
  o.read("ids", source.ids);
  o.read("token_ids", source.token_ids);
  o.read("lengths", source.lengths);
  o.read("samples", source.samples);
  o.read("offset", source.offset);
  o.read("radius", source.radius, audit::parse_radius);
  o.read("dtype", source.dtype, parse_number_format);
  o.read("seed", source.seed);
}

void read_selection(const Options& o, audit::SelectionOptions& selection) {
  o.read("map", selection.map);
  o.read("layers", selection.layers);
  o.read("heads", selection.heads);
  o.read("mask", selection.mask);
  o.read("window", selection.window);
  o.read("padding", selection.padding);
  o.read("norm", selection.norm, parse_norm);
}

void read_solver(const Options& o, MeasureOptions& solver) {
  o.read("tolerance", solver.tolerance);
  o.read("max_steps", solver.max_steps);
  o.read("enclose", solver.enclose);
  o.read("from_above", solver.from_above);
  o.read("delta", solver.delta);
  o.read("threads", solver.threads);
}

}  // namespace

void read_request(const Options& o, audit::MeasureRequest& r) {
  read_source(o, r.source);
  read_selection(o, r.selection);
  read_solver(o, r.solver);
  o.read("certificate", r.certificate);
  o.read("memory", r.memory);
  o.read("budget", r.budget);
  o.read("tokens", r.tokens);
}

namespace {

void read_request(const Options& o, audit::BoundRequest& r) {
  read_source(o, r.source);
  read_selection(o, r.selection);
  o.read("threads", r.threads);
}

void read_request(const Options& o, audit::SearchRequest& r) {
  read_source(o, r.source);
  read_selection(o, r.selection);
  o.read("restarts", r.search.restarts);
  o.read("max_evaluations", r.search.max_evaluations);
  o.read("budget", r.search.budget);
  o.read("threads", r.threads);
}

void read_request(const Options& o, audit::MeanfieldRequest& r) {
  read_source(o, r.source);
  read_selection(o, r.selection);
  read_solver(o, r.solver);
  o.read("step", r.changes.step);
  o.read("duplicate", r.changes.duplicate);
  o.read("optimise_masses", r.changes.optimise_masses);
  o.read("move_atoms", r.changes.move_atoms);
  o.read("restarts", r.changes.restarts);
  o.read("mass", r.mass);
  o.read("position", r.position);
}

void read_request(const Options& o, audit::InvertRequest& r) {
  read_source(o, r.source);
  o.read("layers", r.selection.layers);
  o.read("mask", r.selection.mask);
  o.read("window", r.selection.window);
  o.read("padding", r.selection.padding);
  o.read("norm", r.selection.norm, parse_norm);
  o.read("scale", r.scale);
  o.read("depth", r.depth);
  o.read("tolerance", r.invert.tolerance);
  o.read("max_iterations", r.invert.max_iterations);
  o.read("log_det", r.log_det);
  o.read("probes", r.series.probes);
  o.read("truncation", r.series.truncation);
  o.read("threads", r.threads);
}

void read_request(const Options& o, audit::RecoverRequest& r) {
  read_source(o, r.source);
  o.read("tolerance", r.invert.tolerance);
  o.read("max_iterations", r.invert.max_iterations);
  o.read("activations", r.trained.activations);
  o.read("given_error", r.trained.given_error);
  o.read("threads", r.threads);
}

void read_request(const Options& o, audit::CertifyRequest& r) {
  o.read("folder", r.folder);
  o.read("text", r.text.text);
  o.read("split", r.text.piece);
  o.read("positions", r.positions);
  o.read("context", r.context);
  o.read("targets", r.attack.targets);
  o.read("restarts", r.attack.restarts);
  o.read("iterations", r.attack.iterations);
  o.read("seed", r.attack.seed);
  o.read("threads", r.threads);
}

void read_request(const Options& o, audit::ReproduceRequest& r) {
  o.read("name", r.name);
  o.read("model", r.model);
  o.read("text", r.text);
  o.read("runs", r.experiment.runs);
  o.read("full", r.experiment.full);
  o.read("steps", r.experiment.steps);
  o.read("seed", r.experiment.seed);
  o.read("threads", r.experiment.threads);
}

// the enumerator of this name; ValueError with all names otherwise
template <class Enum>
void read_word(const Options& o, const char* name,
               std::initializer_list<Enum> all, Enum& into) {
  const std::string word = o.text(name);
  if (word.empty()) return;
  std::string names;
  for (const Enum e : all) {
    if (name_of(e) == word) {
      into = e;
      return;
    }
    names += (names.empty() ? "" : ", ") + std::string(name_of(e));
  }
  throw nb::value_error(
      fmt::format("{}: '{}' is none of {}", name, word, names).c_str());
}

void read_request(const Options& o, audit::TrainRequest& r) {
  o.read("text", r.text);
  o.read("out", r.folder);
  read_word(o, "model",
            {Mixer::dot, Mixer::l2, Mixer::l2_untied, Mixer::contractive_l2,
             Mixer::position, Mixer::lstm},
            r.model.mixer);
  o.read("layers", r.model.layers);
  o.read("width", r.model.width);
  o.read("heads", r.model.heads);
  o.read("context", r.model.context);
  o.read("mlp_width", r.mlp_width);
  read_word(o, "norm", {NormPlace::post, NormPlace::pre, NormPlace::none},
            r.model.norm);
  o.read("contraction", r.model.contraction);
  read_word(o, "divide", {Division::layer, Division::coordinate},
            r.model.division);
  o.read("quiet_gain", r.model.quiet_gain);
  read_word(o, "activation",
            {Activation::gelu, Activation::relu, Activation::max_min},
            r.model.activation);
  o.read("position_heads", r.model.position_heads);
  o.read("heads_apart", r.model.heads_apart);
  read_word(o, "positions",
            {Positions::table, Positions::rotary, Positions::relative,
             Positions::none},
            r.model.positions);
  read_word(o, "residual", {Join::add, Join::convex, Join::none}, r.model.join);
  o.read("residual_share", r.model.join_share);
  o.read("head_bias", r.model.head_bias);
  read_word(o, "optimizer", {Optimizer::adamw, Optimizer::muon},
            r.training.optimizer);
  o.read("muon_lr", r.training.muon.rate);
  o.read("batch", r.training.batch);
  o.read("steps", r.run.steps);
  o.read("lr", r.training.schedule.rate);
  o.read("warmup", r.training.schedule.warmup);
  read_word(o, "schedule",
            {Schedule::After::inverse_sqrt, Schedule::After::fixed,
             Schedule::After::linear},
            r.training.schedule.after);
  read_word(o, "precision", {Precision::full, Precision::high, Precision::bf16},
            r.training.products);
  o.read("weight_decay", r.training.adamw.weight_decay);
  o.read("dropout", r.training.dropout);
  o.read("clip", r.training.clip);
  o.read("eval_every", r.run.eval_every);
  o.read("measure", r.run.measured_characters);
  o.read("seed", r.training.seed);
  o.read("threads", r.training.threads);
  o.read("max_lipschitz", r.training.limits.lipschitz);
  read_word(o, "promise", {Norm::two, Norm::token}, r.training.limits.norm);
  o.read("longest_token", r.training.limits.longest_token);
  read_word(o, "singular_values",
            {SingularValues::free, SingularValues::cap, SingularValues::soft,
             SingularValues::normalise},
            r.training.limits.rule);
  read_word(o, "matrix_limits", {MatrixLimits::one, MatrixLimits::newhouse25},
            r.training.limits.matrices);
  o.read("zero_outputs", r.training.zero_outputs);
  o.read("score_limit", r.training.limits.scores);
  o.read("spectral_cap", r.training.limits.spectral);
  o.read("cost", r.cost);
  o.read("resume", r.run.resume);
  o.read("force", r.run.anew);
}

// ---- running them

nb::list lines_of(const Rows& rows) {
  nb::list lines;
  for (const nlohmann::ordered_json& row : rows) lines.append(json_line(row));
  return lines;
}

// what a run found, for Python
nb::dict found_by(const Rows& rows, const Rows& fits,
                  std::vector<audit::Witness> witnesses,
                  const std::string& finding) {
  nb::dict found;
  found["rows"] = lines_of(rows);
  found["fits"] = lines_of(fits);
  nb::dict arrays;
  for (audit::Witness& w : witnesses) {
    const auto or_none = [](Matrix& m) {
      return m.size() > 0 ? to_numpy(std::move(m)) : nb::none();
    };
    arrays[nb::int_(w.row)] =
        nb::make_tuple(or_none(w.direction), or_none(w.input));
  }
  found["arrays"] = arrays;
  found["finding"] = finding;
  return found;
}

}  // namespace

nb::dict found_in(const Rows& rows, const Rows& fits,
                  const std::string& finding) {
  return found_by(rows, fits, {}, finding);
}

namespace {

RecordsOptions records_options(const Options& o) {
  RecordsOptions options;
  options.file = o.text("out");
  o.read("resume", options.resume);
  return options;
}

template <class Request>
constexpr bool has_source = requires(Request r) {
  r.source.layer;
};
template <class Request>
constexpr bool has_witness = requires(Request r) {
  r.witness;
};

// weights: a Layer, a Transformer or None; tokens: an array or None
template <class Request, class Run, class Finding>
nb::dict run(nb::dict given, nb::handle weights, nb::handle tokens,
             nb::handle progress, const Run& command, const Finding& finding) {
  const Options o(std::move(given));
  Request request;
  read_request(o, request);
  if constexpr (has_source<Request>) {
    if (nb::isinstance<Transformer>(weights))
      request.source.model_in_memory =
          nb::cast<const Transformer&>(weights).model;
    else if (!weights.is_none())
      request.source.layer = nb::cast<const Layer&>(weights).weights;
    bool embedded = false;  // what `tokens` is
    o.read("tokens_embedded", embedded);
    if (!tokens.is_none())
      (embedded ? request.source.embedded_tokens : request.source.tokens) =
          std::make_shared<const Matrix>(Array(tokens, "x").to_matrix());
  }
  std::vector<audit::Witness> witnesses;
  if constexpr (has_witness<Request>) {
    bool wanted = false;
    o.read("directions", wanted);
    if (wanted)
      request.witness = [&](audit::Witness w) {
        witnesses.push_back(std::move(w));
      };
  }
  Records records(records_options(o));
  watched_run(progress,
              [&](const audit::Watch& watch, const std::atomic<bool>& stop) {
                const StopWhen told(&stop);
                command(request, records, watch);
              });
  return found_by(records.rows(), records.fits(), std::move(witnesses),
                  finding(request, records));
}

nb::dict run_train(nb::dict given, nb::handle progress) {
  const Options o(std::move(given));
  audit::TrainRequest request;
  read_request(o, request);
  Rows rows;
  audit::Trained trained;
  watched_run(
      progress, [&](const audit::Watch& watch, const std::atomic<bool>& stop) {
        audit::TrainWatch told;
        told.keep_going = [&](Index done, const StepReport& report) {
          watch.working({.done = done,
                         .total = request.run.steps,
                         .doing = fmt::format("loss {:.4f}", report.nll)});
          // a run that is told to stop ends after a checkpoint
          return !stop.load();
        };
        told.record = [&](const nlohmann::ordered_json& row) {
          rows.push_back(row);
        };
        trained = audit::train(request, told);
      });
  const RunSummary& s = trained.summary;
  nlohmann::ordered_json summary = {{"best_step", s.best_step},
                                    {"best_valid_nll", s.best_valid_nll},
                                    {"test_nll", s.test_nll}};
  if (s.promised)
    summary.update(
        {{"limit", s.promised->limit}, {"certified", s.promised->certified}});
  if (trained.cost) summary["cost_in_valid_nll"] = trained.cost->in_valid_nll();
  return found_by(rows, {}, {}, trained_finding(summary));
}

void bind_runs(nb::module_& m) {
  using namespace nb::literals;
  const auto bind = [&]<class Request>(std::type_identity<Request>,
                                       const char* name, auto command,
                                       auto said) {
    const auto finding = [said](const Request& request,
                                const Records& records) {
      if constexpr (std::is_invocable_v<decltype(said), Rows>)
        return said(records.rows());
      else
        return said(request, records);
    };
    m.def(
        name,
        [command, finding](nb::dict options, nb::handle weights,
                           nb::handle tokens, nb::handle progress) {
          return run<Request>(std::move(options), weights, tokens, progress,
                              command, finding);
        },
        "options"_a, "weights"_a.none() = nb::none(),
        "tokens"_a.none() = nb::none(), "progress"_a.none() = nb::none());
  };
  bind(std::type_identity<audit::MeasureRequest>(), "measure", audit::measure,
       measured_finding);
  bind(std::type_identity<audit::BoundRequest>(), "bound", audit::bound,
       bounds_finding);
  bind(std::type_identity<audit::SearchRequest>(), "search", audit::search,
       searched_finding);
  bind(std::type_identity<audit::MeanfieldRequest>(), "meanfield",
       audit::meanfield, meanfield_finding);
  bind(std::type_identity<audit::InvertRequest>(), "invert", audit::invert,
       inverted_finding);
  bind(std::type_identity<audit::RecoverRequest>(), "recover", audit::recover,
       recovered_finding);
  bind(std::type_identity<audit::CertifyRequest>(), "certify", audit::certify,
       certified_finding);
  bind(std::type_identity<audit::ReproduceRequest>(), "reproduce",
       audit::reproduce,
       [](const audit::ReproduceRequest& request, const Records& records) {
         Rows spoken_of = records.rows();
         spoken_of.insert(spoken_of.end(), records.fits().begin(),
                          records.fits().end());
         return reproduced_finding(request.name, spoken_of);
       });
  m.def("train", run_train, "options"_a, "progress"_a.none() = nb::none());
}

}  // namespace

void bind_commands(nb::module_& m) {
  using namespace nb::literals;
  bind_runs(m);
  m.def("is_trained", &audit::is_trained, "folder"_a,
        "Whether the folder is one that train made.");
  m.def("names_of_experiments", &audit::names_of_experiments);
  m.def(
      "write_page",
      [](const std::vector<std::string>& files, const std::string& out,
         bool compare) {
        const nb::gil_scoped_release free;
        return audit::write_page({files, out, compare}).finding;
      },
      "files"_a, "out"_a, "compare"_a = false,
      "One HTML page of files of records.");
}

}  // namespace lipscope::python
