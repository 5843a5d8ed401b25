// lipscope measure: how sharply attention reacts at given inputs.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <compare>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <tuple>

#include "lipscope/cli/answer.h"
#include "lipscope/cli/certificates.h"
#include "lipscope/cli/commands.h"
#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/fingerprint.h"
#include "lipscope/cli/key.h"
#include "lipscope/cli/measured_table.h"
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
#include "lipscope/cli/token_shares.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"
#include "lipscope/io/npy.h"
#include "lipscope/report/findings.h"
#include "lipscope/spectral/estimate.h"
#include "lipscope/spectral/inf_norm.h"
#include "lipscope/spectral/token_norm.h"

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
  declare_solver(app, o.solver, group);
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
      ->transform(positive_number())
      ->group(group);
  declare_effort(app, o.strict, o.source.seed, o.solver.threads, group);

  app.add_option(
         "--memory", o.memory,
         "bytes that attention weights may take in each precision, e.g. "
         "2G; beyond, they are rebuilt at every product. Default: a "
         "quarter of the machine's")
      ->transform(byte_size())
      ->type_name("BYTES")
      ->group(group);

  declare_output(app, o.output);
  app.add_flag("--tokens", o.tokens,
               "say in each record how much of the worst change sits on each "
               "token, going in and coming out, and up to 32 tokens how much "
               "goes from each to each; 'report' shows them in the text")
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
Record question(const Options& o, const Subject& subject, const Selection& s) {
  Record r = question("measure", subject, s, o.source.seed);
  r.scope = "input";
  if (o.tokens) r.parameters["tokens"] = true;
  if (o.certificate != "auto") r.parameters["certificate"] = o.certificate;
  return r;
}

// so many jobs keep all threads busy to the end
constexpr std::size_t jobs_together = 24;
// weights and vectors of a job that leaves room for others beside it
constexpr Index numbers_of_a_small_job = Index{1} << 25;

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
    if (total() > 1 && saves())
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
    for (const Group& group : points_.groups())
      require_weight_memory(group.n, subject_, selection_, o_.memory);
  }

  int run() {
    if (!o_.output.quiet) print_note(points_.note());
    announce();
    std::list<std::vector<Matrix>> inputs;
    std::vector<Job> jobs;
    for (const Group& group : points_.groups()) {
      show(fmt::format("n = {}", group.n));
      std::vector<Job> here = jobs_of(group);
      const bool wanted = std::any_of(here.begin(), here.end(),
                                      [](const Job& j) { return j.wanted; });
      // a list: jobs refer to its members until they are done
      if (wanted && time_left()) inputs.push_back(points_.at(group));
      for (Job& job : here) {
        // the weights of a great model are there a layer at a time
        if (!maps_.keeps_layers() && !jobs.empty() &&
            jobs.back().part.layer != job.part.layer)
          finish_jobs(jobs);
        if (job.wanted && !inputs.empty()) give(job, inputs.back());
        jobs.push_back(std::move(job));
      }
      if (jobs.size() < jobs_together) continue;
      finish_jobs(jobs);
      inputs.clear();
    }
    finish_jobs(jobs);
    finish();
    return o_.strict && !(all_done_ && records_.all_converged()) ? 3 : 0;
  }

 private:
  Index total() const { return inputs(points_, selection_); }

  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start_)
        .count();
  }
  bool time_left() const { return o_.budget == 0.0 || elapsed() < o_.budget; }

  // a layer, or the model; a head, or all of them
  struct Part {
    std::optional<Index> layer, head;
    auto operator<=>(const Part&) const = default;
  };

  // One part at the sequences of a group. All of them are measured, or none:
  // where some answers are there already, the others come from the same
  // products as they would have in one run.
  struct Job {
    Part part;
    std::size_t layer = 0;  // number of the selected layer
    Group group;
    std::vector<Record> records;  // questions, then answers
    std::vector<bool> known;      // what --resume found
    const Matrix* x = nullptr;  // sequences under one another, if they are made
    bool wanted = false, answered = false;
    Vector direction = {};  // of the first sequence
  };

  // how much is done already, before anything is made
  void announce() {
    if (!records_.resumes()) return;
    Index found = 0;
    for (const Group& group : points_.groups())
      for (const Job& job : jobs_of(group))
        found += std::count(job.known.begin(), job.known.end(), true);
    records_.announce(found, total() - found);
  }

  std::vector<Job> jobs_of(const Group& group) const {
    std::vector<Job> jobs;
    for (std::size_t l = 0; l < selection_.layers.size(); ++l)
      for (const std::optional<Index>& head : selection_.heads)
        jobs.push_back(job(group, l, {selection_.layers[l], head}));
    return jobs;
  }

  Job job(const Group& group, std::size_t layer, const Part& part) const {
    Job job{.part = part, .layer = layer, .group = group};
    for (Index i = 0; i < group.count; ++i) {
      Record r =
          points_.question(question(o_, subject_, selection_), group, i, layer);
      r.layer = part.layer;
      r.head = part.head;
      if (selection_.norm == "2") tell_solver(o_.solver, r);
      // they are among the details
      if (o_.tokens && points_.has_words())
        r.parameters["words_sha256"] = fingerprint(points_.words(group, i));
      job.known.push_back(records_.find(r) != nullptr);
      job.records.push_back(std::move(r));
    }
    job.wanted = saves() || std::find(job.known.begin(), job.known.end(),
                                      false) != job.known.end();
    return job;
  }

  // the tokens, of which the question knows the content only
  void give(Job& job, const std::vector<Matrix>& inputs) {
    job.x = &inputs[job.layer];
    for (Index i = 0; i < job.group.count; ++i)
      tell_radii(job.x->middleRows(i * job.group.n, job.group.n),
                 job.records[i]);
    prepare(job);
  }

  // what jobs share is made before they run
  void prepare(const Job& job) {
    if (!maps_.keeps_layers() && job.part.layer != layer_made_) made_.clear();
    layer_made_ = job.part.layer;
    const bool alone = selection_.norm != "2";  // a sequence at a time, in f64
    const Index count = alone ? 1 : job.group.count;
    MadeMaps& made = made_[{job.part, count}];
    if (!made.witness) {
      made.witness = maps_.make<double>(job.part.layer, job.part.head, count);
      if (!alone)
        made.search = maps_.make<float>(job.part.layer, job.part.head, count);
    }
    certificates_.prepare(job.part.layer, job.part.head);
  }

  // Small jobs run side by side, each on one thread; large ones one after
  // another, each on all threads. The numbers are the same. Records are written
  // in the order of the jobs, each as soon as those before it are there.
  void finish_jobs(std::vector<Job>& jobs) {
    const bool small =
        std::all_of(jobs.begin(), jobs.end(), [this](const Job& j) {
          const Index n = j.group.n;
          return j.group.count * n *
                     (n * subject_.heads() + 64 * subject_.features()) <=
                 numbers_of_a_small_job;
        });
    // the largest first, so that threads end together
    std::vector<Index> order(jobs.size());
    std::iota(order.begin(), order.end(), Index{0});
    if (small)
      std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) {
        return jobs[a].group.count * jobs[a].group.n >
               jobs[b].group.count * jobs[b].group.n;
      });
    std::size_t written = 0;
    parallel_for(static_cast<Index>(jobs.size()), small ? o_.solver.threads : 1,
                 [&](Index i) {
                   Job& job = jobs[order[i]];
                   answer_job(job);
                   const std::scoped_lock lock(writing_);
                   job.answered = true;
                   for (; written < jobs.size() && jobs[written].answered;
                        ++written)
                     write(jobs[written]);
                 });
    jobs.clear();
  }

  void answer_job(Job& job) {
    if (!job.x || !time_left()) return;
    const std::string doing =
        fmt::format("n = {}", job.group.n) +
        (job.part.layer ? fmt::format(", layer {}", *job.part.layer) : "") +
        (job.part.head ? fmt::format(", head {}", *job.part.head) : "");
    show(doing);
    const double before = elapsed();
    bool cut = false;
    job.direction = answer(job, doing, cut);
    const double measured = elapsed();
    cut = cut || (!time_left() && certificates_.wanted(job.records));
    const bool certified =
        !cut &&
        certificates_.add(job.records, *job.x, job.part.layer, job.part.head);
    const double count = static_cast<double>(job.group.count);
    for (Record& r : job.records) {
      if (cut) r.cut = "budget";
      r.seconds = (elapsed() - before) / count;
      if (certified)
        r.details["upper_seconds"] = (elapsed() - measured) / count;
    }
  }

  // the direction found at the first sequence; `cut` if there was no more time
  Vector answer(Job& job, const std::string& doing, bool& cut) {
    const Index n = job.group.n, count = job.group.count;
    std::vector<Vector> directions;
    if (selection_.norm != "2") {
      const Map<double>& f = *made_.at({job.part, 1}).witness;
      for (Index i = 0; i < count; ++i) {
        const OperatorPtr<double> j = f.linearize(job.x->middleRows(i * n, n));
        directions.push_back(
            selection_.norm == "inf"
                ? cli::answer(job.records[i],
                              inf_norm(*j, {.threads = o_.solver.threads}))
                : cli::answer(job.records[i],
                              token_norm(*j, n, {.seed = o_.source.seed})));
      }
      return directions.front();
    }
    const MadeMaps& made = made_.at({job.part, count});
    MeasureOptions solver = o_.solver;
    solver.sequences = count;
    solver.keep_going = [&](int step) {
      show(doing, step);
      cut = cut || !time_left();
      return !cut;
    };
    const std::vector<Measurement> found =
        measure_norms(*made.search, *made.witness, *job.x, solver);
    for (Index i = 0; i < count; ++i)
      directions.push_back(cli::answer(job.records[i], found[i]));
    if (o_.tokens) {
      const auto flows = flow_details(*made.witness, *job.x, n, found);
      for (Index i = 0; i < count; ++i) {
        job.records[i].details.update(
            token_shares(points_.words(job.group, i), n, found[i]));
        job.records[i].details.update(flows[i]);
      }
    }
    return directions.front();
  }

  void write(const Job& job) {
    done_ += job.group.count;
    const bool done = job.direction.size() > 0;  // there was time
    if (done) save(*job.x, job.direction);
    for (Index i = 0; i < job.group.count; ++i) {
      all_done_ = all_done_ && (done || job.known[i]);
      if (!done && !job.known[i]) continue;
      records_.add(job.records[i]);
      note(job.part, records_.shown().back());
    }
  }

  void show(const std::string& doing, Index step = 0) {
    const std::scoped_lock lock(showing_);
    if (step == 0)
      progress_.show(done_, doing);
    else
      progress_.show(done_, doing, step, o_.solver.max_steps);
  }

  bool saves() const { return !(o_.save_direction + o_.save_input).empty(); }

  // what was asked for beside the record is there when the record is
  void save(const Matrix& x, const Vector& direction) const {
    if (!o_.save_direction.empty())
      write_npy(o_.save_direction, unflatten(direction, x.rows(), x.cols()));
    if (!o_.save_input.empty()) write_npy(o_.save_input, x);
  }

  void note(const Part& part, const nlohmann::ordered_json& row) {
    Growth& growth = growth_[part];
    growth.points.push_back({row["n"].get<Index>(), row["lower"].get<double>(),
                             row["radius_rms"].get<double>()});
    growth.keys.push_back(key_of(row));
  }

  void finish() {
    for (auto& [part, growth] : growth_) {
      std::vector<GrowthPoint>& points = growth.points;
      // in one order, whether they were measured now or before
      std::sort(points.begin(), points.end(),
                [](const GrowthPoint& a, const GrowthPoint& b) {
                  return std::tie(a.n, a.value, a.radius) <
                         std::tie(b.n, b.value, b.radius);
                });
      const std::optional<GrowthFit> fit = fit_growth(points);
      if (!fit) continue;
      GrowthRecord g{question(o_, subject_, selection_), growth.keys, *fit};
      g.of.dtype = points_.dtype();
      if (selection_.norm == "2") tell_solver(o_.solver, g.of);
      g.of.layer = part.layer;
      g.of.head = part.head;
      records_.add(g);
    }
    progress_.clear();
    conclude(o_.output, records_.shown(),
             {.table =
                  [&](const Rows& rows, const View& view) {
                    return measured_table(rows, view) +
                           growth_table(records_.fits(), view);
                  },
              .answer = measured_finding(records_.shown())});
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
  struct MadeMaps {
    MapPtr<float> search;
    MapPtr<double> witness;
  };
  std::map<std::pair<Part, Index>, MadeMaps> made_;  // by part and sequences
  std::optional<Index> layer_made_;
  std::mutex writing_, showing_;
  std::atomic<Index> done_ = 0;
  bool all_done_ = true;  // the budget left nothing out
  struct Growth {
    std::vector<GrowthPoint> points;
    std::vector<std::string> keys;
  };
  std::map<Part, Growth> growth_;
};

}  // namespace

Run measure_command(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  declare(app, *options);
  return [options] {
    OutputFiles files = files_of(options->source, options->output);
    files.writes(options->save_direction, "--save-direction",
                 OutputKind::matrix);
    files.writes(options->save_input, "--save-input", OutputKind::matrix);
    files.check(options->output.force);
    return Measuring(*options).run();
  };
}

}  // namespace lipscope::cli
