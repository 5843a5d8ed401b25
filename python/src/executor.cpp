// The two sides of a measurement on many workers: what a worker holds, and what
// collects their answers. Who runs where is decided in Python (executor.py).

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "bindings.h"
#include "collection.h"
#include "lipscope/audit/measure.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/stop.h"
#include "lipscope/io/json_text.h"
#include "lipscope/record/provenance.h"
#include "lipscope/record/share.h"
#include "lipscope/report/findings.h"
#include "requests.h"
#include "watched_run.h"

namespace lipscope::python {
namespace {

audit::MeasureRequest request_of(nb::dict given) {
  audit::MeasureRequest request;
  read_request(Options(std::move(given)), request);
  return request;
}

// ---- of a worker

// Weights and text of a request, for one part of its questions after another.
class Worker {
 public:
  explicit Worker(nb::dict options) {
    const audit::MeasureRequest request = request_of(std::move(options));
    const nb::gil_scoped_release free;
    worker_ = std::make_unique<audit::MeasureWorker>(request);
  }

  // lines of JSON, each with its hash
  std::vector<std::string> answer(const std::vector<Index>& numbers) {
    Records records({.share = std::make_shared<const Share>(numbers)});
    watched_run(nb::none(),
                [&](const audit::Watch&, const std::atomic<bool>& stop) {
                  const StopWhen told(&stop);
                  worker_->run(records);
                });
    std::vector<std::string> lines;
    for (const nlohmann::ordered_json& row : records.rows())
      lines.push_back(json_line(sealed(with_provenance(row))));
    return lines;
  }

 private:
  std::unique_ptr<audit::MeasureWorker> worker_;
};

// ---- of who collects

class Collected {
 public:
  Collected(nb::dict options, const std::string& out, bool resume) {
    const audit::MeasureRequest request = request_of(std::move(options));
    const nb::gil_scoped_release free;
    const audit::MeasureWorker worker(request);
    keeps_layers_ = worker.keeps_layers();
    collection_ = std::make_unique<Collection>(worker.plan({}), out, resume);
  }

  bool keeps_layers() const { return keeps_layers_; }
  Index total() const {
    return static_cast<Index>(collection_->plan().questions().size());
  }

  std::vector<Index> missing() const {
    std::vector<Index> numbers;
    for (const Question* q : collection_->missing())
      numbers.push_back(q->number);
    return numbers;
  }

  // these questions in so many parts of about the same work
  std::vector<std::vector<Index>> parts(const std::vector<Index>& numbers,
                                        std::size_t count) const {
    std::vector<const Question*> questions;
    for (const Index number : numbers) questions.push_back(&question(number));
    std::vector<std::vector<Index>> parts;
    for (const auto& places : parts_of(questions, count, "measure")) {
      if (places.empty()) continue;
      parts.emplace_back();
      for (const std::size_t q : places)
        parts.back().push_back(questions[q]->number);
    }
    return parts;
  }

  // layer, head, length, sample and key of a question, for people
  std::string words(Index number) const {
    const Question& q = question(number);
    return fmt::format("{} (key {})", words_of(q), q.key.substr(0, 12));
  }

  void take(const std::vector<std::string>& lines, const std::string& worker) {
    const nb::gil_scoped_release free;
    for (const std::string& line : lines) collection_->take(line, worker);
  }

  void close() { collection_->close(); }

  nb::dict finish() {
    std::vector<nlohmann::ordered_json> rows, fits;
    std::string finding;
    {
      const nb::gil_scoped_release free;
      collection_->finish();
      rows = collection_->rows();
      fits = collection_->fits();
      if (!rows.empty()) finding = measured_finding(rows);
    }
    return found_in(rows, fits, finding);
  }

 private:
  const Question& question(Index number) const {
    // the plan has all questions of the request, in order
    const auto& all = collection_->plan().questions();
    require(number >= 0 && number < static_cast<Index>(all.size()),
            "question {} of {}", number, all.size());
    return all[static_cast<std::size_t>(number)];
  }

  std::unique_ptr<Collection> collection_;
  bool keeps_layers_ = true;
};

}  // namespace

void bind_executor(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<Worker>(m, "MeasureWorker")
      .def(nb::init<nb::dict>(), "options"_a)
      .def("answer", &Worker::answer, "questions"_a);
  nb::class_<Collected>(m, "Collection")
      .def(nb::init<nb::dict, std::string, bool>(), "options"_a, "out"_a,
           "resume"_a)
      .def_prop_ro("keeps_layers", &Collected::keeps_layers)
      .def_prop_ro("total", &Collected::total)
      .def("missing", &Collected::missing)
      .def("parts", &Collected::parts, "questions"_a, "count"_a)
      .def("words", &Collected::words, "question"_a)
      .def("take", &Collected::take, "lines"_a, "worker"_a)
      .def("close", &Collected::close)
      .def("finish", &Collected::finish);
}

}  // namespace lipscope::python
