#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lipscope/audit/selection.h"
#include "lipscope/model/pass.h"
#include "lipscope/record/record.h"

namespace lipscope::audit {

/// A text as a model counts its tokens.
struct TextTokens {
  std::vector<Index> ids;
  std::vector<std::string> words;  ///< empty, or one for each id
};

/// The text, or the list of ids, that the options name. InputError for what
/// cannot be read or does not fit the model.
TextTokens read_tokens(const SourceOptions& options, const Model& model);

/// Sequences of one length that are measured together: samples
/// [first, first + count) of it.
struct Group {
  Index n = 0;
  Index first = 0, count = 1;
  Index offset = 0;  ///< of a text: where its first token stands
  Index number = 0;  ///< among the groups of these inputs

  /// Its sequences [begin, begin + size) alone.
  Group part(Index begin, Index size) const {
    return {n, first + begin, size, offset + begin * n, number};
  }
};

/// The inputs at which something is measured. Nothing is made before it is
/// asked for, so that a long sweep needs little memory. The groups depend on
/// what is asked and on nothing else: a run that was cut and resumed measures
/// the same ones.
class Inputs {
  // by the number of sequences
  template <class Real>
  using Passes = std::map<Index, ForwardPass<Real>>;

 public:
  /// Borrows subject and selection, which must outlive this.
  Inputs(const SourceOptions& options, const Subject& subject,
         const Selection& selection, int threads);

  const std::vector<Group>& groups() const { return groups_; }

  /// The input of each selected layer's map, sequences under one another.
  std::vector<Matrix> at(const Group& group);

  /// These groups, or parts of them, in portions for an InputWalk each: as many
  /// together as there is room for in half a gigabyte.
  std::vector<std::vector<Group>> portions(
      const std::vector<Group>& groups) const;

  /// Whether they come out of a pass through a model.
  bool need_pass() const { return !ids_.empty() || embedded_.size() > 0; }

  /// The record with n, d and the tokens of sample `first + i` of the group, by
  /// their content, at the input of the selected layer number `layer`. The
  /// tokens are not made for it.
  Record with_tokens(Record of, const Group& group, Index i,
                     std::size_t layer) const;

  /// The tokens of sample `first + i` of the group as a person reads them: as
  /// they stand in the text, with what stands between them and the one before,
  /// or as ids where there is no text. Nothing where tokens are mere numbers.
  std::vector<std::string> words(const Group& group, Index i) const;

  bool has_words() const { return !ids_.empty(); }

  /// What was chosen because the text is short, for people; or nothing.
  const std::string& note() const { return note_; }

  /// How the inputs were made: f64 as they are, or by a pass in f32 or f64.
  NumberFormat dtype() const { return dtype_; }

 private:
  void use_given(Matrix x, const std::string& where);
  std::string gaussian_recipe(const Group& group, Index i,
                              std::size_t layer) const;
  void use_ids(const SourceOptions& options);
  void use_embedded(const SourceOptions& options);
  void use_gaussian(const SourceOptions& options);
  void require_sound_pass() const;
  void make_groups(const std::vector<Index>& lengths, Index samples,
                   Index offset);
  template <class Real>
  std::vector<Matrix> through_model(const Group& group, Passes<Real>& passes);
  template <class Real>
  MatrixOf<Real> input_of_layer_0(const Group& group) const;
  template <class Real>
  LayerWalk<Real> walk_of(const std::vector<Group>& groups) const;
  Matrix made_up(const Group& group, std::size_t layer) const;
  bool of_attention() const;
  template <class Real>
  Matrix checked(const MatrixOf<Real>& x, Index layer) const;

  friend class InputWalk;

  const Subject& subject_;
  const Selection& selection_;
  int threads_;
  std::uint64_t seed_;
  RecordInput input_;  // what all sequences have in common
  NumberFormat dtype_ = NumberFormat::f64;
  std::string note_;
  std::vector<Group> groups_;

  // one of these four
  Matrix given_;
  Matrix embedded_;  // goes through the model
  std::vector<Index> ids_;
  std::vector<std::string> words_;  // of a text, one for each id
  bool gaussian_ = false;
  std::vector<std::optional<double>> radii_;  // of each selected layer

  Passes<float> passes_f32_;
  Passes<double> passes_f64_;
};

/// The inputs of several groups, one layer after the other: all of them go
/// through a large model together, so that each layer is read once, and none
/// after the last that is asked for. Memory does not grow with the number of
/// layers.
class InputWalk {
 public:
  /// Borrows the inputs, which must outlive this. `passed` is called after each
  /// layer that is run, with its number; it may be empty.
  InputWalk(const Inputs& inputs, std::vector<Group> groups,
            std::function<void(Index layer)> passed = {});

  /// For each group the input of the map of the selected layer number `layer`.
  /// Layers are asked for in the order of `ascending_layers`.
  std::vector<Matrix> at(std::size_t layer);

 private:
  template <class Real>
  std::vector<Matrix> at(std::size_t layer, LayerWalk<Real>& walk) const;

  const Inputs& inputs_;
  std::vector<Group> groups_;
  std::function<void(Index layer)> passed_;
  std::variant<std::monostate, LayerWalk<float>, LayerWalk<double>> walk_;
};

/// The numbers of the selected layers, those of the first layers of the model
/// first.
std::vector<std::size_t> ascending_layers(const Selection& selection);

/// How many measurements there are: inputs times layers times heads.
Index measurements(const Inputs& inputs, const Selection& selection);

}  // namespace lipscope::audit
