#include "lipscope/audit/meanfield.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>

#include "lipscope/attention/kinds.h"
#include "lipscope/audit/inputs.h"
#include "lipscope/audit/maps.h"
#include "lipscope/audit/new_record.h"
#include "lipscope/audit/subject.h"
#include "lipscope/audit/token_bounds.h"
#include "lipscope/audit/token_memory.h"
#include "lipscope/core/errors.h"
#include "lipscope/io/npy.h"
#include "lipscope/record/evidence.h"
#include "lipscope/record/fingerprint.h"
#include "lipscope/transport/local_constant.h"
#include "lipscope/transport/ratio.h"
#include "lipscope/transport/worst_measure.h"

namespace lipscope::audit {
namespace {

// gaps above this are said to be not solved
constexpr double small_gap = 1e-9;

// What tokens weigh and where they stand, as far as it is given.
struct Given {
  Vector mass, position;
  std::string name;  // begins messages
};

Given given_by(const MeanfieldRequest& o, const Subject& subject) {
  Given given{.mass = o.mass, .position = o.position, .name = "in memory:"};
  if (subject.layer && o.mass.size() == 0 && o.position.size() == 0)
    given = {.mass = subject.layer->mass,
             .position = subject.layer->position,
             .name = subject.name + ": tensor"};
  return given;
}

// the options' selection, for maps of measures
Selection select_measures(const MeanfieldRequest& o, const Subject& subject,
                          const Given& given) {
  Selection s = select(o.selection, o.source, subject);
  if (s.map != MapName::attn && s.map != MapName::core)
    throw InputError(fmt::format(
        "--map {}: measures go through attention alone; expected attn or core",
        name_of(s.map)));
  if (!kind_of(s.kind).shares())
    throw InputError(fmt::format(
        "--kind {}: its weights are not shares of a whole, so that it is no "
        "map of measures",
        s.kind_name));
  if (subject.model && !subject.model->config.plain_scores())
    throw InputError(fmt::format(
        "{}: has {}; only attention whose scores are those of tokens alone is "
        "taken for a map of measures, and positions tie tokens to places",
        subject.name, subject.model->config.score_features()));
  if (given.position.size() > 0 && o.selection.mask == "auto") {
    s.mask = Mask::causal;
    set_masks(s, subject);
  }
  for (const Mask& mask : s.masks)
    if (mask != Mask::none && mask != Mask::causal)
      throw InputError(fmt::format(
          "mask {}: a map of measures takes none or causal; windows and "
          "padding tie tokens to places",
          name_of(mask)));
  s.norm = s.mask_of({}) == Mask::causal ? Norm::d2 : Norm::w2;
  return s;
}

double longest(const Matrix& x) { return x.rowwise().norm().maxCoeff(); }

class Meanfield final {
 public:
  Meanfield(MeanfieldRequest request, Records& records, const Watch& watch)
      : o_(std::move(request)),
        subject_(load_subject(o_.source, watch)),
        given_(given_by(o_, subject_)),
        selection_(select_measures(o_, subject_, given_)),
        inputs_(o_.source, subject_, selection_, o_.solver.threads),
        maps_(subject_, selection_, o_.solver.threads, 0),
        records_(records),
        progress_(watch, total()) {
    if (total() > 1 && saves())
      throw InputError(
          fmt::format("--save-direction and --save-input take one input; these "
                      "are {}",
                      total()));
    if (o_.changes.optimise_masses && masked())
      throw InputError(
          "--optimise-masses: masses are optimised without a mask only");
    // every two tokens are joined where W2 is solved; under a mask each
    // position is by itself
    if (!masked() && o_.changes.step > 0)
      for (const Group& group : inputs_.groups())
        require_pair_memory(group.n * std::max<Index>(1, o_.changes.duplicate),
                            64, "the distance W2 between two clouds of");
    for (const Group& group : inputs_.groups())
      require_weight_memory(group.n, subject_, selection_, 0);
    records_.open();
    o_.solver.seed = o_.source.seed;
    o_.solver.keep_going = [this](int step) {
      progress_.show(done_, doing_, step, o_.solver.max_steps);
      return true;
    };
  }

  Outcome run() {
    progress_.note(inputs_.note());
    announce();
    for (const Group& group : inputs_.groups()) {
      const std::vector<Matrix> inputs = inputs_.at(group);
      for (std::size_t l = 0; l < inputs.size(); ++l)
        for (const std::optional<Index>& head : selection_.heads)
          for (Index i = 0; i < group.count; ++i) {
            doing_ = fmt::format("n = {}, sample {}", group.n, group.first + i);
            progress_.show(done_, doing_);
            At at{.question = record_of(group, i, l, head),
                  .layer = selection_.layers[l],
                  .head = head,
                  .mu = measure(inputs[l].middleRows(i * group.n, group.n))};
            set_radii(at.mu.x, at.question);
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
    return {.converged = records_.all_converged()};
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

  // all layers have the same mask
  bool masked() const { return selection_.mask_of({}) == Mask::causal; }

  bool saves() const { return !(o_.save_direction + o_.save_input).empty(); }

  Index total() const { return measurements(inputs_, selection_); }

  Measure measure(const Matrix& x) const {
    Measure plain = uniform_measure(x, selection_.mask_of({}));
    const Vector &mass = given_.mass, &s = given_.position;
    if (mass.size() == 0 && s.size() == 0) return plain;
    try {
      return make_measure(x, mass.size() > 0 ? mass : plain.mass,
                          masked() && s.size() > 0 ? s : plain.position);
    } catch (const std::invalid_argument& wrong) {
      throw InputError(fmt::format("{} {}", given_.name, wrong.what()));
    }
  }

  const LocalConstant& found(At& at) const {
    if (!at.found)
      at.found = local_constant(at.weights, at.options, at.mu, o_.solver);
    return *at.found;
  }

  // ---- records

  // what the questions at an input have in common
  Record record_of(const Group& group, Index i, std::size_t l,
                   std::optional<Index> head) const {
    Record r = new_record("meanfield", subject_, selection_, o_.source.seed);
    r.layer = selection_.layers[l];
    r.head = head;
    r.scope = Scope::input;
    if (given_.mass.size() > 0)
      r.parameters["mass_sha256"] = fingerprint(Matrix(given_.mass));
    if (given_.position.size() > 0 && masked())
      r.parameters["position_sha256"] = fingerprint(Matrix(given_.position));
    r = inputs_.with_tokens(std::move(r), group, i, l);
    set_mask(selection_, r);
    set_solver(o_.solver, r);
    return r;
  }

  MeanfieldRecords asked(const Record& at) const {
    return meanfield_records(at, o_.changes);
  }

  // how much is done already, before anything is made
  void announce() {
    if (!records_.resumes()) return;
    Index found = 0, all = 0;
    for (const Group& group : inputs_.groups())
      for (std::size_t l = 0; l < selection_.layers.size(); ++l)
        for (const std::optional<Index>& head : selection_.heads)
          for (Index i = 0; i < group.count; ++i)
            for (const Record& r : asked(record_of(group, i, l, head)).all()) {
              ++all;
              found += records_.find(r) != nullptr;
            }
    records_.count(found, all - found);
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
      if (b.norm == Norm::w2) r.details["bounds_log10"][b.name] = b.log10;
    if (const std::optional<Bound> best = best_bound(all, Norm::w2))
      lower_upper(r, *best);
  }

  void answer_all(At& at) {
    const MeanfieldRecords questions = asked(at.question);
    local(at, questions);
    if (questions.duplicate) duplicated(at, *questions.duplicate);
    for (const bool cut : {false, true})
      if (!questions.actual.empty()) actual(at, questions.actual[cut], cut);
    for (const bool splitting : {false, true})
      if (!questions.optimised.empty())
        optimised(at, questions.optimised[splitting], splitting);
  }

  void local(At& at, const MeanfieldRecords& questions) {
    ask(questions.moving, [&](Record& r) {
      set_measured(r, found(at).moving);
      r.details["least_mass"] = at.mu.mass.minCoeff();
      r.details["largest_mass"] = at.mu.mass.maxCoeff();
      add_bounds(at, r);
    });
    ask(questions.splitting, [&](Record& r) {
      const LocalConstant& c = found(at);
      set_measured(r, c.splits() ? c.splitting : c.moving);
      r.upper = r.upper_log10 = std::nullopt;
      r.upper_by = {};
      if (c.upper()) set_upper(r, *c.upper(), NormMethod::dense_gram);
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
    if (!o_.save_input.empty() && !o_.changes.optimise_masses)
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
      const LocalConstant c =
          local_constant(at.weights, at.options,
                         split_evenly(at.mu, o_.changes.duplicate), o_.solver);
      set_measured(r, c.moving);
      r.details["of_splitting"] = found(at).lower();
      add_bounds(at, r);
    });
  }

  // tokens really moved, whole and cut
  void actual(At& at, Record question, bool cut) {
    const double size = longest(at.mu.x);
    const double step = o_.changes.step * (size > 0.0 ? size : 1.0);
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
      r.lower_by = Procedure::exact_transport;
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
    if (o_.changes.move_atoms) question.radius_max = *o_.changes.move_atoms;
    ask(question, [&](Record& r) {
      const WorstMeasure w = worst_measure(at.weights, at.options, at.mu,
                                           {.radius = o_.changes.move_atoms,
                                            .splitting = splitting,
                                            .restarts = o_.changes.restarts,
                                            .seed = o_.source.seed,
                                            .threads = o_.solver.threads});
      const LocalConstant c =
          local_constant(at.weights, at.options, w.measure, o_.solver);
      r.lower = splitting ? c.lower() : c.moving.lower;
      r.lower_by = KnownBy(c.moving.lower_by).at("ascent");
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

  MeanfieldRequest o_;
  Subject subject_;
  Given given_;
  Selection selection_;
  Inputs inputs_;
  Maps maps_;
  Records& records_;
  Progress progress_;
  Index done_ = 0;
  std::string doing_;
};

}  // namespace

Outcome meanfield(const MeanfieldRequest& request, Records& records,
                  const Watch& watch) {
  return Meanfield(request, records, watch).run();
}

}  // namespace lipscope::audit
