#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lipscope/record/record.h"

/// The figures and tables of the papers, made again. An experiment asks
/// questions one by one, each a record without its answer; who runs it answers
/// those it wants answered, and keeps the records.
namespace lipscope {

struct Model;

/// What points are drawn in.
struct Figure {
  std::string name;  ///< of the experiment; of a part of it after a comma
  std::string title, explanation;
  std::string x_name, y_name;
  bool log_x = false, log_y = false;
};

/// A place on a curve of a figure.
struct Point {
  std::string series;  ///< the curve
  double x = 0.0;
};

/// Attention with these weights, as most experiments ask about it: dot-product,
/// no mask, after the output projection, 2-norm, at an input, tokens in f64.
/// `radius_max` of a question is chosen, not measured, and belongs to it.
Record attention_question(const std::string& model);

/// Puts what is found into the record of its question.
using Answer = std::function<void(Record& record)>;

/// What an experiment writes into.
struct Notebook {
  /// The points that follow belong to this figure; one that was opened before
  /// goes on.
  std::function<void(const Figure&)> open;
  /// A question with what would answer it. Whether that is called, and when, is
  /// for the notebook to say: it may know the answer, or count the questions.
  /// Returns what is known from below then.
  std::function<std::optional<double>(const Point& at, const Record& question,
                                      const Answer& answer)>
      ask;
  /// How the answers from below to a series grow.
  std::function<void(const Point& at, const Record& of, const GrowthFit& fit)>
      fit;
  /// What is being done within an answer, for a progress bar.
  std::function<void(const std::string& doing)> tell;
};

struct ExperimentOptions {
  bool full = false;  ///< the whole size of the paper: minutes to hours
  std::uint64_t seed = 0;
  int threads = 0;  ///< 0: all cores
  /// For experiments that read one; borrowed, and must outlive the run.
  const Model* model = nullptr;
  std::string model_name = {};
  std::vector<Index> ids = {};  ///< a text, as the model counts its tokens
  /// A text for models that learn, and its name; empty: a generated one.
  std::string text = {}, text_name = {};
  Index steps = 0;  ///< that these learn; 0: as many as the size says
  /// Folders of models that `lipscope train` made, which some experiments show
  /// in place of models that they train.
  std::vector<std::string> runs = {};
};

struct Experiment {
  std::string name;
  std::string sentence;  ///< what it shows, and whose it is
  bool reads_model = false;
  bool reads_text = false;
  bool learns = false;      ///< trains models, on the text if there is one
  bool shows_runs = false;  ///< reads folders of trained models
  std::function<void(const ExperimentOptions&, const Notebook&)> run;
};

/// All of them, in the order of the documentation.
const std::vector<Experiment>& experiments();

/// Tied L2 attention in the inf-norm: bound, closed form and search against the
/// length [Kim21].
void kim_tightness(const ExperimentOptions& options, const Notebook& notebook);

/// Residual attention inverted by fixed point: tied L2 and Contractive-L2
/// attention against dot-product [Kim21].
void kim_inversion(const ExperimentOptions& options, const Notebook& notebook);

/// Models of characters that learn a text, an LSTM and transformers with
/// dot-product, L2 and Contractive-L2 attention, against their depth [Kim21].
void kim_charlm(const ExperimentOptions& options, const Notebook& notebook);

/// The transformers of these at a fixed learning rate without warm-up: from
/// which depth on they do not learn [Kim21].
void kim_stability(const ExperimentOptions& options, const Notebook& notebook);

/// X = (0, t, −t): dot-product attention has no Lipschitz constant, tied L2
/// attention has one [Kim21].
void dot_product_unbounded(const ExperimentOptions& options,
                           const Notebook& notebook);

/// √n and its end at n ~ e^{2γR²}, masked and unmasked [Castin24].
void castin_adversarial(const ExperimentOptions& options,
                        const Notebook& notebook);

/// Local constants at the inputs that a text leads a BERT or GPT-2 to, and at
/// those of the same architecture with random weights [Castin24].
void castin_real(const ExperimentOptions& options, const Notebook& notebook);

/// Two atoms of unequal masses at ±R, against both mean-field bounds, as R
/// grows [Castin24].
void castin_meanfield(const ExperimentOptions& options,
                      const Notebook& notebook);

/// ‖J(RX)‖ for one X as R grows: a limit that counts tokens, and what comes
/// before it [Castin24].
void large_radius(const ExperimentOptions& options, const Notebook& notebook);

/// The same heads with and without the norm layer ahead of them, at inputs of
/// growing size [Castin24].
void layer_norm_experiment(const ExperimentOptions& options,
                           const Notebook& notebook);

/// Tokens that may be cut react more than tokens that move whole [Castin23].
void mass_splitting(const ExperimentOptions& options, const Notebook& notebook);

/// Loss against the proved constant: models whose constant is promised, the
/// architecture of Newhouse25 trained here, what Newhouse25 published, and
/// counted n-grams.
void newhouse_shakespeare(const ExperimentOptions& options,
                          const Notebook& notebook);

/// Models of characters that learn a text, ordinary ones and ones whose
/// constant is limited: the share of their predictions that no change of a
/// given size can change, from below by proof and from above by attack.
void robustness_histogram(const ExperimentOptions& options,
                          const Notebook& notebook);

}  // namespace lipscope
