// lipscope measure: how sharply attention reacts at given inputs.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include "lipscope/cli/certificates.h"
#include "lipscope/cli/commands.h"
#include "lipscope/cli/measured_table.h"
#include "lipscope/cli/output.h"
#include "lipscope/cli/points.h"
#include "lipscope/cli/selection.h"
#include "lipscope/cli/subject.h"
#include "lipscope/cli/token_shares.h"
#include "lipscope/core/errors.h"
#include "lipscope/io/npy.h"
#include "lipscope/spectral/estimate.h"
#include "lipscope/spectral/inf_norm.h"

namespace lipscope::cli {
namespace {

struct Options {
  SourceOptions source;
  SelectionOptions selection;
  MeasureOptions solver;
  OutputOptions output;
  std::string certificate = "auto";
  std::string save_direction, save_input;
  double budget = 0.0;
  std::uint64_t memory = 0;
  bool strict = false;
  bool tokens = false;
};

void declare(CLI::App& app, Options& o) {
  app.description(
      "Measure the local Lipschitz constant of attention: the norm of its "
      "Jacobian at given\ntokens, from below with a witness and from above "
      "with a proof.\n\n"
      "  lipscope measure bert/ --text alice.txt --lengths 8,32,128 --heads "
      "each\n"
      "  lipscope measure gpt2/ --text alice.txt --map block --layers 0,6,11\n"
      "  lipscope measure --random d=768,heads=12 --length 128 --enclose 1.05\n"
      "  lipscope measure --weights layer.safetensors --num-heads 12 --mask "
      "causal \\\n      --input x.npy --save-direction v.npy");
  declare_source(app, o.source);
  declare_selection(app, o.selection);

  const char* group = "How hard to try";
  app.add_option("--tolerance", o.solver.tolerance,
                 "done when the relative residual is below this")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group(group);
  app.add_option("--max-steps", o.solver.max_steps,
                 "Golub-Kahan steps before giving up")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str()
      ->group(group);
  app.add_option("--enclose", o.solver.enclose,
                 "go on until 'upper (whp)' is within this factor of 'lower', "
                 "e.g. 1.05")
      ->check(CLI::Range(1.0 + 1e-6, 1e6))
      ->group(group);
  app.add_option("--delta", o.solver.delta,
                 "chance with which 'upper (whp)' may fail")
      ->check(CLI::Range(1e-300, 0.5))
      ->capture_default_str()
      ->group(group);
  app.add_option(
         "--certificate", o.certificate,
         "what proves 'upper' where the Jacobian is too large to decompose. "
         "auto: own_split for a layer and own_blocks for a head of "
         "dot-product attention, the best bound over the ball that holds the "
         "input for other kinds; split, blocks (of a layer: seconds at 32 "
         "tokens), local: that one; all: each of them, the best counts; none")
      ->type_name("NAME")
      ->capture_default_str()
      ->group(group);
  app.add_option("--budget", o.budget,
                 "stop after this many seconds with what was found")
      ->check(CLI::PositiveNumber)
      ->group(group);
  app.add_flag("--strict", o.strict, "exit code 3 if anything did not converge")
      ->group(group);
  app.add_option("--seed", o.source.seed,
                 "of random weights, tokens and starting vectors")
      ->capture_default_str()
      ->group(group);
  app.add_option("--threads", o.solver.threads, "0: all cores")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str()
      ->group(group);

  app.add_option(
         "--memory", o.memory,
         "bytes that attention weights may take in each precision, e.g. "
         "2G; beyond, they are rebuilt at every product. Default: a "
         "quarter of the machine's")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("BYTES")
      ->group(group);

  declare_output(app, o.output);
  app.add_flag("--tokens", o.tokens,
               "say in each record how much of the worst change sits on each "
               "token, going in and coming out; 'report' colours the text by "
               "it")
      ->group("Output");
  app.add_option("--save-direction", o.save_direction,
                 "write the witness, [n, d], to V.npy (one measurement only)")
      ->type_name("FILE")
      ->group("Output");
  app.add_option("--save-input", o.save_input,
                 "write the tokens, [n, d], to X.npy (one measurement only)")
      ->type_name("FILE")
      ->group("Output");
}

// what is asked of every input
Record question(const Options& o, const Subject& subject, const Selection& s,
                const Points& points) {
  Record r;
  r.command = "measure";
  r.model = subject.name;
  r.model_sha256 = subject.sha256;
  r.map = name_of(s.map);
  r.kind = name_of(s.kind);
  r.mask = name_of(s.mask);
  r.norm = s.norm;
  r.d = subject.features();
  if (s.norm == "2") r.delta = o.solver.delta;
  r.scope = "input";
  r.dtype = points.dtype();
  r.seed = o.source.seed;
  if (o.tokens) r.parameters["tokens"] = true;
  if (o.certificate != "auto") r.parameters["certificate"] = o.certificate;
  return r;
}

// the same of one input
Record at_input(Record r, const Matrix& x, Index sample) {
  const Vector norms = x.rowwise().norm();
  r.n = x.rows();
  r.sample = sample;
  r.radius_max = norms.maxCoeff();
  r.radius_rms = std::sqrt(norms.squaredNorm() / static_cast<double>(r.n));
  return r;
}

// fills in the answer and returns the witness
Vector answer(Record& r, const Measurement& m) {
  r.lower = m.lower;
  r.lower_by = m.lower_by;
  r.upper = m.upper;
  if (m.upper && *m.upper > 0) r.upper_log10 = std::log10(*m.upper);
  r.upper_by = m.upper_by;
  r.upper_whp = m.upper_whp;
  r.residual = m.residual;
  r.steps = m.steps;
  r.converged = m.converged;
  return m.direction;
}

// every row is summed, so the value is the norm itself up to rounding, for
// which the bound from above leaves room
Vector answer(Record& r, const InfNorm& m) {
  r.lower = m.value;
  r.lower_by = r.upper_by = "row-sweep";
  r.upper = m.value * (1 + 1e-9);
  if (m.value > 0) r.upper_log10 = std::log10(*r.upper);
  r.steps = m.rows;
  return m.direction;
}

class Measuring final {
 public:
  explicit Measuring(Options options)
      : o_(std::move(options)),
        subject_(load_subject(o_.source)),
        selection_(select(o_.selection, o_.source, subject_)),
        points_(o_.source, subject_, selection_, o_.solver.threads),
        maps_(subject_, selection_, o_.solver.threads, o_.memory),
        certificates_(subject_, selection_, maps_, o_.certificate,
                      o_.solver.threads),
        records_(o_.output),
        progress_(total(), o_.output.quiet) {
    if (total() > 1 && !(o_.save_direction + o_.save_input).empty())
      throw InputError(
          fmt::format("--save-direction and --save-input take one "
                      "measurement; these are {}",
                      total()));
    if (o_.tokens && selection_.norm != "2")
      throw InputError(fmt::format(
          "--tokens: shares are squares, of the 2-norm; this is norm {}",
          selection_.norm));
    o_.solver.seed = o_.source.seed;
    o_.solver.memory = o_.memory;
    o_.solver.keep_going = [this](int step) {
      progress_.show(done_, fmt::format("{}, step {}", doing_, step));
      return time_left();
    };
  }

  int run() {
    for (const Group& group : points_.groups()) {
      doing_ = fmt::format("n = {}", group.n);
      progress_.show(done_, doing_);
      if (!time_left()) {
        all_converged_ = false;
        break;
      }
      const std::vector<Matrix> inputs = points_.at(group);
      for (std::size_t l = 0; l < inputs.size(); ++l)
        for (const std::optional<Index>& head : selection_.heads)
          measure(group, inputs[l], selection_.layers[l], head);
    }
    finish();
    return o_.strict && !all_converged_ ? 3 : 0;
  }

 private:
  Index total() const {
    Index inputs = 0;
    for (const Group& group : points_.groups()) inputs += group.count;
    return inputs * static_cast<Index>(selection_.layers.size() *
                                       selection_.heads.size());
  }

  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start_)
        .count();
  }
  bool time_left() const { return o_.budget == 0.0 || elapsed() < o_.budget; }

  // All of a group, or nothing of it: where some answers are there already, the
  // others come from the same products as they would have in one run.
  void measure(const Group& group, const Matrix& x, std::optional<Index> layer,
               std::optional<Index> head) {
    std::vector<Record> asked;
    std::vector<bool> known;
    for (Index i = 0; i < group.count; ++i) {
      Record r = question(o_, subject_, selection_, points_);
      r.layer = layer;
      r.head = head;
      asked.push_back(at_input(std::move(r), x.middleRows(i * group.n, group.n),
                               group.first + i));
      const nlohmann::ordered_json* found = records_.find(asked.back());
      known.push_back(found != nullptr);
      if (found)
        note(layer, head,
             {group.n, found->value("lower", 0.0), *asked.back().radius_rms});
    }
    doing_ = fmt::format("n = {}", group.n) +
             (layer ? fmt::format(", layer {}", *layer) : "") +
             (head ? fmt::format(", head {}", *head) : "");
    progress_.show(done_, doing_);
    const bool all_known =
        std::all_of(known.begin(), known.end(), [](bool k) { return k; });
    if (!all_known && !time_left()) all_converged_ = false;
    if (!all_known && time_left()) {
      const double before = elapsed();
      std::vector<Record> answered = asked;
      const std::vector<Vector> directions =
          answers(answered, group, x, layer, head);
      const double measured = elapsed();
      const bool certified =
          time_left() && certificates_.add(answered, x, layer, head);
      const double count = static_cast<double>(group.count);
      for (Index i = 0; i < group.count; ++i) {
        answered[i].seconds = (elapsed() - before) / count;
        if (certified)
          answered[i].details["upper_seconds"] = (elapsed() - measured) / count;
        all_converged_ = all_converged_ && answered[i].converged;
      }
      save(x, directions.front());
      for (Index i = 0; i < group.count; ++i)
        if (!known[i]) {
          records_.add(answered[i]);
          note(layer, head,
               {group.n, *answered[i].lower, *answered[i].radius_rms});
        }
    }
    done_ += group.count;
  }

  std::vector<Vector> answers(std::vector<Record>& records, const Group& group,
                              const Matrix& x, std::optional<Index> layer,
                              std::optional<Index> head) {
    std::vector<Vector> directions;
    if (selection_.norm == "inf") {
      const MapPtr<double> f = maps_.make<double>(layer, head, 1);
      for (Index i = 0; i < group.count; ++i)
        directions.push_back(
            answer(records[i],
                   inf_norm(*f->linearize(x.middleRows(i * group.n, group.n)),
                            {.threads = o_.solver.threads})));
      return directions;
    }
    const MapPtr<float> search = maps_.make<float>(layer, head, group.count);
    const MapPtr<double> witness = maps_.make<double>(layer, head, group.count);
    o_.solver.sequences = group.count;
    const std::vector<Measurement> found =
        measure_norms(*search, *witness, x, o_.solver);
    for (Index i = 0; i < group.count; ++i)
      directions.push_back(answer(records[i], found[i]));
    if (o_.tokens)
      for (Index i = 0; i < group.count; ++i)
        records[i].details.update(
            token_shares(points_.words(group, i), group.n, found[i]));
    return directions;
  }

  // what was asked for beside the record is there when the record is
  void save(const Matrix& x, const Vector& direction) const {
    if (!o_.save_direction.empty())
      write_npy(o_.save_direction, unflatten(direction, x.rows(), x.cols()));
    if (!o_.save_input.empty()) write_npy(o_.save_input, x);
  }

  void note(std::optional<Index> layer, std::optional<Index> head,
            GrowthPoint point) {
    growth_[{layer, head}].push_back(point);
  }

  void finish() {
    for (const auto& [of, points] : growth_) {
      const std::optional<GrowthFit> fit = fit_growth(points);
      if (!fit) continue;
      GrowthRecord g{question(o_, subject_, selection_, points_), *fit};
      g.of.layer = of.first;
      g.of.head = of.second;
      records_.add(g);
    }
    records_.print(measured_table(records_.shown(), records_.quiet()) +
                   growth_table(records_.fits(), records_.quiet()));
  }

  Options o_;
  std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
  Subject subject_;
  Selection selection_;
  Points points_;
  Maps maps_;
  Certificates certificates_;
  Records records_;
  Progress progress_;
  Index done_ = 0;
  std::string doing_;
  bool all_converged_ = true;
  // by layer and head
  std::map<std::pair<std::optional<Index>, std::optional<Index>>,
           std::vector<GrowthPoint>>
      growth_;
};

}  // namespace

Run measure_command(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  declare(app, *options);
  return [options] { return Measuring(*options).run(); };
}

}  // namespace lipscope::cli
