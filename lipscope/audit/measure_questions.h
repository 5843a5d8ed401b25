#pragma once

#include <string>
#include <vector>

#include "lipscope/audit/inputs.h"
#include "lipscope/audit/maps.h"
#include "lipscope/audit/measure.h"
#include "lipscope/audit/subject.h"

namespace lipscope::audit {

/// What a request to measure asks: one question for each layer, head and
/// sequence, numbered in the order of an undisturbed run. Keeps references to
/// all that it is made of.
class MeasureQuestions {
 public:
  MeasureQuestions(const MeasureRequest& request, const Subject& subject,
                   const Selection& selection, const Inputs& inputs);

  /// All of them, and the fits of growth that follow from their answers.
  Plan plan(const std::vector<std::string>& arguments) const;

  /// About sequence i of a group, or of a part of one; `layer` is the number of
  /// the selected layer that `part` names.
  Record question(const Group& group, std::size_t layer, const Part& part,
                  Index i) const;
  /// What the fits of growth have in common.
  Record fitted() const;

  /// Of a question, by the numbers of the selected layer and head.
  Index number_of(const Group& group, std::size_t layer, std::size_t head,
                  Index i) const;

  /// The groups, or of a share the parts of them whose sequences it asks about:
  /// others need not go through the model. What goes beside a sequence does not
  /// change its numbers.
  std::vector<Group> groups_of_share(const Records& records) const;

 private:
  // every group at every selected layer, in the order of an undisturbed run
  template <class Do>
  void for_each_block(const Do& act) const;
  std::vector<std::vector<Index>> first_numbers() const;
  bool any_taken(const Records& records, const Group& group, Index i) const;

  const MeasureRequest& request_;
  const Subject& subject_;
  const Selection& selection_;
  const Inputs& inputs_;
  Record common_;  // what is asked of every input
  // of the first question of each group at each layer
  std::vector<std::vector<Index>> numbers_;
};

}  // namespace lipscope::audit
