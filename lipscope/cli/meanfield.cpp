// lipscope meanfield: attention as a map of measures, tokens that weigh.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>

#include "lipscope/cli/above.h"
#include "lipscope/cli/answer.h"
#include "lipscope/cli/commands.h"
#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/fingerprint.h"
#include "lipscope/cli/meanfield_questions.h"
#include "lipscope/cli/meanfield_table.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/output_files.h"
#include "lipscope/cli/points.h"
#include "lipscope/cli/progress.h"
#include "lipscope/cli/question.h"
#include "lipscope/cli/selection.h"
#include "lipscope/cli/solver.h"
#include "lipscope/cli/subject.h"
#include "lipscope/cli/token_memory.h"
#include "lipscope/core/errors.h"
#include "lipscope/io/npy.h"
#include "lipscope/report/findings.h"
#include "lipscope/transport/local_constant.h"
#include "lipscope/transport/ratio.h"
#include "lipscope/transport/worst_measure.h"

namespace lipscope::cli {
namespace {

// gaps above this are said to be not solved
constexpr double small_gap = 1e-9;

struct Options {
  SourceOptions source;
  SelectionOptions selection{.norms = false};
  MeasureOptions solver;
  OutputOptions output;
  double step = 1e-7;
  Index duplicate = 0;
  bool optimise_masses = false;
  std::optional<double> move_atoms;
  int restarts = 8;
  std::string save_direction, save_input;
  bool strict = false;
};

void declare(CLI::App& app, Options& o) {
  app.description(
      "Attention on tokens that weigh: how far apart two clouds of tokens come "
      "out that were\nnear each other, in the Wasserstein distance W2 (under a "
      "mask, in the conditional\ndistance d2), where tokens move and where "
      "they may be cut and part.\n\n"
      "  lipscope meanfield --weights layer.safetensors --num-heads 1   (with "
      "x and mass)\n"
      "  lipscope meanfield --random d=8,heads=2,scale=1 --length 5 "
      "--duplicate "
      "2\n"
      "  lipscope meanfield bert/ --text alice.txt --layers 0,5 --lengths 8,32 "
      "--samples 1\n"
      "  lipscope meanfield --weights two.safetensors --num-heads 1 "
      "--optimise-masses");
  declare_source(app, o.source);
  declare_selection(app, o.selection);

  const char* group = "Measures (mass and position of --weights, if there)";
  app.add_option("--step", o.step,
                 "how far the tokens are really moved for the W2 ratio, as a "
                 "part of the longest token; 0: not at all")
      ->transform(number_between(0.0, 1.0))
      ->capture_default_str()
      ->group(group);
  app.add_option("--duplicate", o.duplicate,
                 "also list every token K times, with its share of the mass, "
                 "and measure that")
      ->transform(whole_number(2, 64))
      ->type_name("K")
      ->group(group);
  auto* optimise =
      app.add_flag("--optimise-masses", o.optimise_masses,
                   "look for the masses on these few tokens at which the "
                   "constant is largest")
          ->group(group);
  app.add_option("--move-atoms", o.move_atoms,
                 "let the tokens move as well, within this radius")
      ->needs(optimise)
      ->transform(positive_number())
      ->type_name("R")
      ->group(group);
  app.add_option("--restarts", o.restarts, "random starts of --optimise-masses")
      ->transform(whole_number(0, 100000))
      ->capture_default_str()
      ->group(group);

  group = "How hard to try";
  declare_solver(app, o.solver, group);
  declare_effort(app, o.strict, o.source.seed, o.solver.threads, group);

  declare_output(app, o.output);
  app.add_option("--save-direction", o.save_direction,
                 "write the worst change, [n, d], to V.npy: how each token "
                 "moves or, if cutting does more, how the halves of one part "
                 "(one input only)")
      ->type_name("FILE")
      ->group("Output");
  app.add_option("--save-input", o.save_input,
                 "write the tokens, [n, d], to X.npy; of --optimise-masses, "
                 "those found (one input only)")
      ->type_name("FILE")
      ->group("Output");
}

// the options' selection, for maps of measures
Selection select_measures(const Options& o, const Subject& subject) {
  Selection s = select(o.selection, o.source, subject);
  if (s.map != MapName::attn && s.map != MapName::core)
    throw InputError(fmt::format(
        "--map {}: measures go through attention alone; expected attn or core",
        name_of(s.map)));
  if (s.kind == Kind::sigmoid)
    throw InputError(
        "--kind sigmoid: its weights are not shares of a whole, so that it is "
        "no map of measures");
  if (subject.model && subject.model->config.rope_theta)
    throw InputError(fmt::format(
        "{}: rotary positions tie tokens to places, so that attention is no "
        "map of measures",
        subject.name));
  if (subject.layer && subject.layer->position.size() > 0 &&
      o.selection.mask == "auto")
    s.mask = Mask::causal;
  s.norm = s.mask == Mask::causal ? "d2" : "w2";
  return s;
}

double longest(const Matrix& x) { return x.rowwise().norm().maxCoeff(); }

class Meanfield final {
 public:
  explicit Meanfield(Options options)
      : o_(std::move(options)),
        subject_(load_subject(o_.source)),
        selection_(select_measures(o_, subject_)),
        points_(o_.source, subject_, selection_, o_.solver.threads),
        maps_(subject_, selection_, o_.solver.threads, 0),
        records_(o_.output),
        progress_(total(), o_.output.quiet) {
    if (total() > 1 && saves())
      throw InputError(
          fmt::format("--save-direction and --save-input take one input; these "
                      "are {}",
                      total()));
    if (o_.optimise_masses && selection_.mask == Mask::causal)
      throw InputError(
          "--optimise-masses: masses are optimised without a mask only");
    // every two tokens are joined where W2 is solved; under a mask each
    // position is by itself
    if (selection_.mask == Mask::none && o_.step > 0)
      for (const Group& group : points_.groups())
        require_pair_memory(group.n * std::max<Index>(1, o_.duplicate), 64,
                            "the distance W2 between two clouds of");
    for (const Group& group : points_.groups())
      require_weight_memory(group.n, subject_, selection_, 0);
    o_.solver.seed = o_.source.seed;
    o_.solver.keep_going = [this](int step) {
      progress_.show(done_, doing_, step, o_.solver.max_steps);
      return true;
    };
  }

  int run() {
    if (!o_.output.quiet) print_note(points_.note());
    announce();
    for (const Group& group : points_.groups()) {
      const std::vector<Matrix> inputs = points_.at(group);
      for (std::size_t l = 0; l < inputs.size(); ++l)
        for (const std::optional<Index>& head : selection_.heads)
          for (Index i = 0; i < group.count; ++i) {
            doing_ = fmt::format("n = {}, sample {}", group.n, group.first + i);
            progress_.show(done_, doing_);
            At at{.question = question(group, i, l, head),
                  .layer = selection_.layers[l],
                  .head = head,
                  .mu = measure(inputs[l].middleRows(i * group.n, group.n))};
            tell_radii(at.mu.x, at.question);
            at.weights = attention_of(maps_.weights(at.layer), selection_.kind);
            at.options = {.kind = selection_.kind,
                          .heads = head ? std::vector<Index>{*head}
                                        : std::vector<Index>{},
                          .project = selection_.map == MapName::attn,
                          .cosine = selection_.cosine,
                          .threads = o_.solver.threads};
            answer_all(at);
            ++done_;
          }
    }
    progress_.clear();
    conclude(o_.output, records_.shown(),
             {.table = meanfield_table,
              .answer = meanfield_finding(records_.shown())});
    return o_.strict && !records_.all_converged() ? 3 : 0;
  }

 private:
  // one measure, and the layer that acts on it
  struct At {
    Record question;  // but for the change
    std::optional<Index> layer, head;
    Measure mu;
    AttentionWeights weights = {};
    AttentionOptions options = {};
    std::optional<LocalConstant> found = {};  // made when it is needed
  };

  bool saves() const { return !(o_.save_direction + o_.save_input).empty(); }

  Index total() const { return inputs(points_, selection_); }

  Measure measure(const Matrix& x) const {
    const bool masked = selection_.mask == Mask::causal;
    Measure plain = uniform_measure(x, selection_.mask);
    if (!subject_.layer) return plain;
    const Vector &mass = subject_.layer->mass, &s = subject_.layer->position;
    try {
      return make_measure(x, mass.size() > 0 ? mass : plain.mass,
                          masked && s.size() > 0 ? s : plain.position);
    } catch (const std::invalid_argument& wrong) {
      throw InputError(
          fmt::format("{}: tensor {}", subject_.name, wrong.what()));
    }
  }

  const LocalConstant& found(At& at) const {
    if (!at.found)
      at.found = local_constant(at.weights, at.options, at.mu, o_.solver);
    return *at.found;
  }

  // ---- records

  // what the questions at an input have in common
  Record question(const Group& group, Index i, std::size_t l,
                  std::optional<Index> head) const {
    Record r = cli::question("meanfield", subject_, selection_, o_.source.seed);
    r.layer = selection_.layers[l];
    r.head = head;
    r.scope = "input";
    if (subject_.layer) {
      const Vector &mass = subject_.layer->mass, &s = subject_.layer->position;
      if (mass.size() > 0)
        r.parameters["mass_sha256"] = fingerprint(Matrix(mass));
      if (s.size() > 0 && selection_.mask == Mask::causal)
        r.parameters["position_sha256"] = fingerprint(Matrix(s));
    }
    r = points_.question(std::move(r), group, i, l);
    tell_solver(o_.solver, r);
    return r;
  }

  MeanfieldQuestions asked(const Record& at) const {
    return meanfield_questions(at, {.step = o_.step,
                                    .duplicate = o_.duplicate,
                                    .optimise_masses = o_.optimise_masses,
                                    .move_atoms = o_.move_atoms,
                                    .restarts = o_.restarts});
  }

  // how much is done already, before anything is made
  void announce() {
    if (!records_.resumes()) return;
    Index found = 0, all = 0;
    for (const Group& group : points_.groups())
      for (std::size_t l = 0; l < selection_.layers.size(); ++l)
        for (const std::optional<Index>& head : selection_.heads)
          for (Index i = 0; i < group.count; ++i)
            for (const Record& r : asked(question(group, i, l, head)).all()) {
              ++all;
              found += records_.find(r) != nullptr;
            }
    records_.announce(found, all - found);
  }

  // what is not in the journal yet is answered and written down
  void ask(Record r, const std::function<void(Record&)>& answering) {
    if (!saves() && records_.keep(r)) return;
    const auto start = std::chrono::steady_clock::now();
    answering(r);
    r.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    records_.add(r);
  }

  // The bounds over all measures in the ball of radius r.radius_max go beside
  // the answer, and the smallest above it where nothing smaller is.
  void add_bounds(const At& at, Record& r) {
    const double R = std::max(*r.radius_max, 1e-300) * (1 + 1e-12);
    const std::vector<Bound> all =
        bounds_of(maps_, selection_, at.layer, at.head, at.mu.n(), {R, {}});
    // in theory/ a bound in d2 is one in w2 with the mask causal
    for (const Bound& b : all)
      if (b.norm == "w2") r.details["bounds_log10"][b.name] = b.log10;
    const std::optional<Bound> best = best_bound(all, "w2");
    if (!best || (r.upper && *r.upper <= best->value)) return;
    r.upper_log10 = best->log10;
    r.upper =
        std::isfinite(best->value) ? std::optional(best->value) : std::nullopt;
    r.upper_by = best->name;
  }

  void answer_all(At& at) {
    const MeanfieldQuestions questions = asked(at.question);
    local(at, questions);
    if (questions.duplicate) duplicated(at, *questions.duplicate);
    for (const bool cut : {false, true})
      if (!questions.actual.empty()) actual(at, questions.actual[cut], cut);
    for (const bool splitting : {false, true})
      if (!questions.optimised.empty())
        optimised(at, questions.optimised[splitting], splitting);
  }

  void local(At& at, const MeanfieldQuestions& questions) {
    ask(questions.moving, [&](Record& r) {
      answer(r, found(at).moving);
      r.details["least_mass"] = at.mu.mass.minCoeff();
      r.details["largest_mass"] = at.mu.mass.maxCoeff();
      add_bounds(at, r);
    });
    ask(questions.splitting, [&](Record& r) {
      const LocalConstant& c = found(at);
      answer(r, c.splits() ? c.splitting : c.moving);
      r.upper = c.upper();
      r.upper_log10 =
          r.upper ? std::optional(std::log10(*r.upper)) : std::nullopt;
      r.upper_by = r.upper ? "dense-svd" : "";
      r.upper_whp = c.upper_whp();
      r.converged = c.converged;
      r.details["wins"] = c.splits() ? "split" : "move";
      r.details["token"] = c.token;
      r.details["token_mass"] = at.mu.mass[c.token];
      r.details["of_cutting_the_token"] = c.splitting.lower;
      r.details["of_moving_tokens"] = c.moving.lower;
      add_bounds(at, r);
    });
    if (!o_.save_direction.empty()) save_direction(at);
    if (!o_.save_input.empty() && !o_.optimise_masses)
      write_npy(o_.save_input, at.mu.x);
  }

  void save_direction(At& at) const {
    const LocalConstant& c = found(at);
    Matrix v = c.displacement;
    if (c.splits()) {
      v.setZero();
      v.row(c.token) = c.splitting.direction.transpose();
    }
    write_npy(o_.save_direction, v);
  }

  void duplicated(At& at, const Record& question) {
    ask(question, [&](Record& r) {
      const LocalConstant c = local_constant(
          at.weights, at.options, split_evenly(at.mu, o_.duplicate), o_.solver);
      answer(r, c.moving);
      r.details["of_splitting"] = found(at).lower();
      add_bounds(at, r);
    });
  }

  // tokens really moved, whole and cut
  void actual(At& at, Record question, bool cut) {
    const double size = longest(at.mu.x);
    const double step = o_.step * (size > 0.0 ? size : 1.0);
    question.radius_max = size + step;
    ask(question, [&](Record& r) {
      const LocalConstant& c = found(at);
      // a token that does not react to being cut may part along any direction
      Vector g = c.splitting.direction;
      if (g.norm() == 0.0) g = Vector::Unit(r.d, 0);
      const TransportRatio t = transport_ratio(
          at.weights, at.options, at.mu,
          cut ? parted(at.mu, c.token, g, step)
              : moved(at.mu, c.displacement, step / longest(c.displacement)));
      r.lower = t.lower;
      r.lower_by = "exact-transport";
      r.converged = t.relative_gap <= small_gap;
      r.details["ratio"] = t.value;
      r.details["by_the_formula"] = cut ? c.splitting.lower : c.moving.lower;
      r.details["distance_before"] = t.before.value;
      r.details["distance_after"] = t.after.value;
      r.details["relative_gap"] = t.relative_gap;
      add_bounds(at, r);
    });
  }

  void optimised(At& at, Record question, bool splitting) {
    if (o_.move_atoms) question.radius_max = *o_.move_atoms;
    ask(question, [&](Record& r) {
      const WorstMeasure w = worst_measure(at.weights, at.options, at.mu,
                                           {.radius = o_.move_atoms,
                                            .splitting = splitting,
                                            .restarts = o_.restarts,
                                            .seed = o_.source.seed,
                                            .threads = o_.solver.threads});
      const LocalConstant c =
          local_constant(at.weights, at.options, w.measure, o_.solver);
      r.lower = splitting ? c.lower() : c.moving.lower;
      r.lower_by = "ascent, " + c.moving.lower_by;
      r.residual = c.moving.residual;
      r.details["at_the_start"] = w.start;
      r.details["evaluations"] = w.evaluations;
      r.details["mass"] =
          std::vector<double>(w.measure.mass.begin(), w.measure.mass.end());
      for (const auto& atom : w.measure.x.rowwise())
        r.details["x"].push_back(std::vector<double>(atom.begin(), atom.end()));
      add_bounds(at, r);
      if (!splitting && !o_.save_input.empty())
        write_npy(o_.save_input, w.measure.x);
    });
  }

  Options o_;
  Subject subject_;
  Selection selection_;
  Points points_;
  Maps maps_;
  Records records_;
  Progress progress_;
  Index done_ = 0;
  std::string doing_;
};

}  // namespace

Run meanfield_command(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  declare(app, *options);
  return [options] {
    OutputFiles files = files_of(options->source, options->output);
    files.writes(options->save_direction, "--save-direction",
                 OutputKind::matrix);
    files.writes(options->save_input, "--save-input", OutputKind::matrix);
    files.check(options->output.force);
    return Meanfield(*options).run();
  };
}

}  // namespace lipscope::cli
