#include "lipscope/audit/measure.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>

#include "lipscope/attention/common_mode.h"
#include "lipscope/audit/certificates.h"
#include "lipscope/audit/inputs.h"
#include "lipscope/audit/maps.h"
#include "lipscope/audit/measure_questions.h"
#include "lipscope/audit/measured_growth.h"
#include "lipscope/audit/subject.h"
#include "lipscope/audit/time_left.h"
#include "lipscope/audit/token_memory.h"
#include "lipscope/audit/token_shares.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"
#include "lipscope/io/npy.h"
#include "lipscope/record/evidence.h"
#include "lipscope/spectral/shift_direction.h"

namespace lipscope::audit {
namespace {

// enough jobs to keep all threads busy to the end
constexpr std::size_t jobs_together = 24;
// weights and vectors of a job that leaves room for others beside it
constexpr Index numbers_of_a_small_job = Index{1} << 25;

}  // namespace

class MeasureWorker::Measuring final {
 public:
  Measuring(MeasureRequest options, const Watch& watch)
      : o_(std::move(options)),
        subject_(load_subject(o_.source, watch)),
        selection_(select(o_.selection, o_.source, subject_)),
        inputs_(o_.source, subject_, selection_, o_.solver.threads),
        maps_(subject_, selection_, o_.solver.threads, o_.memory),
        certificates_(subject_, selection_, maps_, o_.certificate,
                      o_.solver.threads),
        watch_(watch),
        questions_(o_, subject_, selection_, inputs_) {
    if (total() > 1 && saves())
      throw InputError(
          fmt::format("--save-direction and --save-input take one "
                      "measurement; these are {}",
                      total()));
    if (o_.tokens && selection_.norm != Norm::two)
      throw InputError(fmt::format(
          "--tokens: shares are squares, of the 2-norm; this is norm {}",
          name_of(selection_.norm)));
    o_.solver.seed = o_.source.seed;
    o_.solver.memory = o_.memory;
    for (const Group& group : inputs_.groups())
      require_weight_memory(group.n, subject_, selection_, o_.memory);
  }

  Plan plan(const std::vector<std::string>& arguments) const {
    return questions_.plan(arguments);
  }

  bool keeps_layers() const { return subject_.keeps_layers; }

  Outcome run(Records& records) {
    records_ = &records;
    records_->open();
    // the first run has to load what later ones find
    if (progress_) start_ = std::chrono::steady_clock::now();
    done_ = 0;
    all_done_ = true;
    growth_ = {};
    time_left_ = {};
    input_seconds_ = 0.0;
    progress_.emplace(watch_, records_->count_of(total()));
    progress_->note(inputs_.note());
    groups_ = questions_.groups_of_share(*records_);
    announce();
    noted_ = elapsed();
    if (subject_.keeps_layers)
      run_by_length();
    else
      run_by_layer();
    // a fit is over all points: who merges the shares makes it
    if (!records_->shares())
      growth_.write(questions_.fitted(), selection_, *records_);
    return {.converged = all_done_ && records_->all_converged(),
            .input_seconds = input_seconds_};
  }

 private:
  Index total() const { return measurements(inputs_, selection_); }

  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start_)
        .count();
  }
  bool time_left() const { return o_.budget == 0.0 || elapsed() < o_.budget; }

  // One part at the sequences of a group.
  struct Job {
    Part part;
    std::size_t layer = 0;  // number of the selected layer
    Group group;
    std::vector<Record> records;      // questions, then answers
    std::vector<bool> taken;          // this run's to answer
    std::vector<bool> known;          // what --resume found
    std::vector<Index> sequences;     // of the group, those to be measured
    std::shared_ptr<const Matrix> x;  // these under one another, once made
    double input_seconds = 0.0;       // of the pass that made them
    bool answered = false;
    std::vector<Vector> directions = {};  // of these

    Index count() const { return static_cast<Index>(sequences.size()); }
    Index asked() const { return std::count(taken.begin(), taken.end(), true); }
  };

  static bool any_wanted(const std::vector<Job>& jobs) {
    return std::any_of(jobs.begin(), jobs.end(),
                       [](const Job& j) { return !j.sequences.empty(); });
  }

  void run_by_length() {
    std::vector<Job> jobs;
    for (const Group& group : groups_) {
      show({.doing = fmt::format("n = {}", group.n)});
      std::vector<Job> here = jobs_of(group);
      std::shared_ptr<const std::vector<Matrix>> inputs;
      const double before = elapsed();
      if (any_wanted(here) && time_left()) {
        inputs = std::make_shared<const std::vector<Matrix>>(inputs_.at(group));
        note_done(TimeLeft::Kind::pass, last_layer() * pass_work({group}));
      }
      const double passed = elapsed() - before;
      if (inputs && inputs_.need_pass()) input_seconds_ += passed;
      for (Job& job : here) {
        job.input_seconds = passed;
        if (inputs && !job.sequences.empty())
          give(job, {inputs, &(*inputs)[job.layer]});
        jobs.push_back(std::move(job));
      }
      if (jobs.size() >= jobs_together) finish_jobs(jobs);
    }
    finish_jobs(jobs);
  }

  // Of a large model one layer is in memory at a time. So all groups that there
  // is room for go through the model together, and all that is asked of a layer
  // is measured before the next one is read.
  void run_by_layer() {
    for (const std::vector<Group>& groups : inputs_.portions(groups_)) {
      std::vector<std::vector<Job>> jobs;  // of each group
      std::vector<Group> wanted;
      for (const Group& group : groups) {
        jobs.push_back(jobs_of(group));
        if (any_wanted(jobs.back())) wanted.push_back(group);
      }
      const auto after_layer = [&](Index l) {
        note_done(TimeLeft::Kind::pass, pass_work(wanted));
        show({.doing = fmt::format("forward pass, layer {}", l)});
      };
      std::optional<InputWalk> walk;
      double passed = 0.0;  // seconds
      for (const std::size_t layer : ascending_layers(selection_)) {
        std::vector<std::vector<Job>> here;
        bool any = false;
        for (const std::vector<Job>& of_group : jobs) {
          here.emplace_back();
          for (const Job& job : of_group)
            if (job.layer == layer) here.back().push_back(job);
          any = any || any_wanted(here.back());
        }
        std::vector<Matrix> inputs;
        if (any && time_left()) {
          const double before = elapsed();
          // those of the layer before: others are read on the way
          if (selection_.layers[layer]) maps_.forget();
          if (!walk) walk.emplace(inputs_, wanted, after_layer);
          inputs = walk->at(layer);
          passed += elapsed() - before;
        }
        // one input for each group that has something to be measured anywhere
        auto next = inputs.begin();
        for (std::size_t g = 0; g < here.size(); ++g) {
          std::shared_ptr<const Matrix> x;
          if (!inputs.empty() && any_wanted(jobs[g]))
            x = std::make_shared<const Matrix>(std::move(*next++));
          for (Job& job : here[g]) job.input_seconds = passed;
          measure_group(here[g], x);
        }
      }
      if (inputs_.need_pass()) input_seconds_ += passed;
    }
  }

  void measure_group(std::vector<Job>& jobs,
                     const std::shared_ptr<const Matrix>& x) {
    for (Job& job : jobs)
      if (x && !job.sequences.empty()) give(job, x);
    finish_jobs(jobs);
  }

  // how much is done already, and how much work is left, before anything is
  // made
  void announce() {
    Index found = 0;
    for (const Group& group : groups_) {
      const Index parts = static_cast<Index>(selection_.layers.size() *
                                             selection_.heads.size());
      Index wanted = parts * group.count;
      if (records_->resumes() || records_->shares()) {
        wanted = 0;
        for (const Job& job : jobs_of(group)) {
          found += std::count(job.known.begin(), job.known.end(), true);
          wanted += job.count();
        }
      }
      if (wanted == 0) continue;
      time_left_.expect(TimeLeft::Kind::measurement,
                        static_cast<double>(wanted) * measured_work(group.n));
      time_left_.expect(TimeLeft::Kind::pass,
                        last_layer() * pass_work({group}));
    }
    if (records_->resumes())
      records_->count(found, records_->count_of(total()) - found);
  }

  // ---- work, about in products of numbers: for the time that is left

  double last_layer() const {
    if (!inputs_.need_pass()) return 0.0;
    Index last = 0;
    for (const std::optional<Index>& layer : selection_.layers)
      last = std::max(last, layer.value_or(0));
    return static_cast<double>(last);
  }

  // of a layer, for n tokens
  double layer_work(Index n, bool whole) const {
    const double tokens = static_cast<double>(n),
                 d = static_cast<double>(subject_.features());
    const double numbers = whole && subject_.model
                               ? numbers_of_a_layer(subject_.model->config)
                               : 4.0 * d * d;
    return tokens * (numbers + tokens * d);
  }

  // of one layer, for all sequences of these groups
  double pass_work(const std::vector<Group>& groups) const {
    double work = 0.0;
    for (const Group& group : groups)
      work += static_cast<double>(group.count) * layer_work(group.n, true);
    return work;
  }

  // of one part at one sequence
  double measured_work(Index n) const {
    constexpr double products = 100;  // usual, in both precisions
    const bool whole =
        selection_.map == MapName::block || selection_.map == MapName::model;
    const double heads =
        selection_.heads.front() ? static_cast<double>(subject_.heads()) : 1.0;
    return products * layer_work(n, whole) / heads;
  }

  void note_done(TimeLeft::Kind kind, double work) {
    const std::scoped_lock lock(showing_);
    time_left_.done(kind, work, elapsed() - noted_);
    noted_ = elapsed();
  }

  std::vector<Job> jobs_of(const Group& group) const {
    std::vector<Job> jobs;
    for (std::size_t l = 0; l < selection_.layers.size(); ++l)
      for (std::size_t h = 0; h < selection_.heads.size(); ++h)
        jobs.push_back(job(group, l, h));
    return jobs;
  }

  Job job(const Group& group, std::size_t layer, std::size_t head) const {
    const Part part{selection_.layers[layer], selection_.heads[head]};
    Job job{.part = part, .layer = layer, .group = group};
    for (Index i = 0; i < group.count; ++i) {
      const Index number = questions_.number_of(group, layer, head, i);
      const bool taken = records_->takes(number);
      Record r = taken ? questions_.question(group, layer, part, i) : Record();
      if (taken) records_->check(number, r);
      job.taken.push_back(taken);
      job.known.push_back(taken && records_->find(r) != nullptr);
      job.records.push_back(std::move(r));
    }
    // what is measured beside a sequence does not change its numbers
    for (Index k = 0; k < group.count; ++k)
      if (job.taken[k] && (saves() || o_.witness || !job.known[k]))
        job.sequences.push_back(k);
    return job;
  }

  // the tokens of all sequences, of which the question knows the content only
  void give(Job& job, const std::shared_ptr<const Matrix>& x) {
    const Matrix& all = *x;
    const Index n = job.group.n;
    if (job.count() == job.group.count) {
      job.x = x;
    } else {
      Matrix some(job.count() * n, all.cols());
      for (Index k = 0; k < job.count(); ++k)
        some.middleRows(k * n, n) = all.middleRows(job.sequences[k] * n, n);
      job.x = std::make_shared<const Matrix>(std::move(some));
    }
    for (const Index i : job.sequences)
      set_radii(all.middleRows(i * n, n), job.records[i]);
    prepare(job);
  }

  // what jobs share is made before they run
  void prepare(const Job& job) {
    if (selection_.norm == Norm::two)
      maps_.prepare(job.part, job.count(), true);
    else
      maps_.prepare(job.part, 1, false);  // a sequence at a time, in f64
    certificates_.prepare(job.part, job.group.n);
  }

  // Small jobs run side by side, each on one thread; large ones one after
  // another, each on all threads. The numbers are the same. Records are written
  // in the order of the jobs, each as soon as those before it are there.
  void finish_jobs(std::vector<Job>& jobs) {
    const bool small =
        !certificates_.large() &&
        std::all_of(jobs.begin(), jobs.end(), [this](const Job& j) {
          const Index n = j.group.n;
          return j.count() * n *
                     (n * subject_.heads() + 64 * subject_.features()) <=
                 numbers_of_a_small_job;
        });
    // the largest first, so that threads end together
    std::vector<Index> order(jobs.size());
    std::iota(order.begin(), order.end(), Index{0});
    if (small)
      std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) {
        return jobs[a].count() * jobs[a].group.n >
               jobs[b].count() * jobs[b].group.n;
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
    const double before = elapsed();
    show({.doing = doing});
    bool cut = false;
    std::vector<Record> records;
    for (const Index i : job.sequences) records.push_back(job.records[i]);
    job.directions = answer(job, records, doing, cut);
    const double measured = elapsed();
    cut = cut || (!time_left() && certificates_.wanted(records));
    const bool certified = !cut && certificates_.add(records, *job.x, job.part);
    const double count = static_cast<double>(job.count());
    for (Index k = 0; k < job.count(); ++k) {
      Record& r = records[k];
      if (cut) r.cut = "budget";
      r.seconds = (elapsed() - before) / count;
      if (certified)
        r.details["upper_seconds"] = (elapsed() - measured) / count;
      if (inputs_.need_pass()) r.details["input_seconds"] = job.input_seconds;
      job.records[job.sequences[k]] = std::move(r);
    }
  }

  // the directions found; `cut` if there was no more time
  std::vector<Vector> answer(const Job& job, std::vector<Record>& records,
                             const std::string& doing, bool& cut) {
    const Index n = job.group.n, count = job.count();
    std::vector<Vector> directions;
    if (selection_.norm != Norm::two) {
      const Map<double>& f = *maps_.pair(job.part, 1).witness;
      for (Index i = 0; i < count; ++i) {
        const Matrix x = job.x->middleRows(i * n, n);
        const OperatorPtr<double> j = f.linearize(x);
        directions.push_back(
            selection_.norm == Norm::inf
                ? set_measured(records[i],
                               inf_norm(*j, {.threads = o_.solver.threads}))
                : set_measured(
                      records[i],
                      token_norm(*j, n,
                                 {.seed = o_.source.seed,
                                  .likely = shift_direction(common_shift_of(f),
                                                            *j, x, 1)})));
      }
      return directions;
    }
    const Maps::Pair& made = maps_.pair(job.part, count);
    const double before = elapsed();
    MeasureOptions solver = o_.solver;
    solver.sequences = count;
    solver.common_shift = common_shift_of(*made.search);
    solver.keep_going = [&](int step) {
      const double share = static_cast<double>(step) /
                           static_cast<double>(o_.solver.max_steps + 1);
      show({.doing = doing, .step = step},
           {.work = share * static_cast<double>(count) * measured_work(n),
            .seconds = elapsed() - before});
      cut = cut || !time_left();
      return !cut;
    };
    const std::vector<Measurement> found =
        measure_norms(*made.search, *made.witness, *job.x, solver);
    for (Index i = 0; i < count; ++i)
      directions.push_back(set_measured(records[i], found[i]));
    if (o_.tokens) {
      const auto flows = flow_details(*made.witness, *job.x, n, found);
      for (Index i = 0; i < count; ++i) {
        records[i].details.update(token_shares(
            inputs_.words(job.group, job.sequences[i]), n, found[i]));
        records[i].details.update(flows[i]);
      }
    }
    return directions;
  }

  void write(Job& job) {
    done_ += job.asked();
    note_done(TimeLeft::Kind::measurement,
              static_cast<double>(job.count()) * measured_work(job.group.n));
    const bool done = !job.directions.empty();  // there was time
    if (done) save(*job.x, job.directions.front());
    Index measured = 0;
    for (Index i = 0; i < job.group.count; ++i) {
      if (!job.taken[i]) continue;
      all_done_ = all_done_ && (done || job.known[i]);
      if (!done && !job.known[i]) continue;
      records_->add(job.records[i]);
      growth_.note({job.part.layer, job.part.head}, records_->rows().back());
      if (measured < job.count() && job.sequences[measured] == i)
        show_witness(job, measured++);
    }
    job.directions = {};
  }

  // of sequence k of those that were measured, whose row is the last one
  void show_witness(const Job& job, Index k) const {
    if (!o_.witness || job.directions.empty()) return;
    const Index n = job.group.n;
    o_.witness({.row = records_->rows().size() - 1,
                .direction = unflatten(job.directions[k], n, job.x->cols()),
                .input = job.x->middleRows(k * n, n)});
  }

  // `part`: what the steps of the job so far are
  void show(Work now, const TimeLeft::Now& part = {}) {
    const std::scoped_lock lock(showing_);
    constexpr auto measurement = TimeLeft::Kind::measurement;
    now.done = done_;
    now.most = o_.solver.max_steps;
    now.seconds_left = time_left_.seconds(part);
    // a measurement may end long before its last step
    now.at_most = !time_left_.knows(measurement) && now.step > 0;
    if (now.seconds_left && o_.budget > 0.0)
      now.seconds_left =
          std::min(*now.seconds_left, std::max(0.0, o_.budget - elapsed()));
    progress_->show(std::move(now));
  }

  bool saves() const { return !(o_.save_direction + o_.save_input).empty(); }

  // what was asked for beside the record is there when the record is
  void save(const Matrix& x, const Vector& direction) const {
    if (!o_.save_direction.empty())
      write_npy(o_.save_direction, unflatten(direction, x.rows(), x.cols()));
    if (!o_.save_input.empty()) write_npy(o_.save_input, x);
  }

  MeasureRequest o_;
  std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
  Subject subject_;
  Selection selection_;
  Inputs inputs_;
  Maps maps_;
  Certificates certificates_;
  Watch watch_;
  MeasureQuestions questions_;

  // of one run
  Records* records_ = nullptr;
  std::vector<Group> groups_;
  std::optional<Progress> progress_;
  std::mutex writing_, showing_;
  std::atomic<Index> done_ = 0;
  bool all_done_ = true;  // the budget left nothing out
  MeasuredGrowth growth_;
  TimeLeft time_left_;
  double noted_ = 0.0;  // when work was last noted as done
  double input_seconds_ = 0.0;
};

MeasureWorker::MeasureWorker(const MeasureRequest& request, const Watch& watch)
    : measuring_(std::make_unique<Measuring>(request, watch)) {}

MeasureWorker::~MeasureWorker() = default;

Plan MeasureWorker::plan(const std::vector<std::string>& arguments) const {
  return measuring_->plan(arguments);
}

bool MeasureWorker::keeps_layers() const { return measuring_->keeps_layers(); }

Outcome MeasureWorker::run(Records& records) {
  return measuring_->run(records);
}

Outcome measure(const MeasureRequest& request, Records& records,
                const Watch& watch) {
  return MeasureWorker(request, watch).run(records);
}

}  // namespace lipscope::audit
