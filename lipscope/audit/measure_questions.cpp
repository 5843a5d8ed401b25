#include "lipscope/audit/measure_questions.h"

#include <optional>

#include "lipscope/audit/measured_growth.h"
#include "lipscope/audit/new_record.h"
#include "lipscope/record/fingerprint.h"

namespace lipscope::audit {
namespace {

Record asked_of_every_input(const MeasureRequest& o, const Subject& subject,
                            const Selection& s) {
  Record r = new_record("measure", subject, s, o.source.seed);
  r.scope = Scope::input;
  if (o.tokens) r.parameters["tokens"] = true;
  if (o.certificate != "auto") r.parameters["certificate"] = o.certificate;
  return r;
}

}  // namespace

MeasureQuestions::MeasureQuestions(const MeasureRequest& request,
                                   const Subject& subject,
                                   const Selection& selection,
                                   const Inputs& inputs)
    : request_(request),
      subject_(subject),
      selection_(selection),
      inputs_(inputs),
      common_(asked_of_every_input(request, subject, selection)),
      numbers_(first_numbers()) {}

template <class Do>
void MeasureQuestions::for_each_block(const Do& act) const {
  if (subject_.keeps_layers) {
    for (const Group& group : inputs_.groups())
      for (std::size_t l = 0; l < selection_.layers.size(); ++l) act(group, l);
    return;
  }
  for (const std::vector<Group>& portion : inputs_.portions(inputs_.groups()))
    for (const std::size_t l : ascending_layers(selection_))
      for (const Group& group : portion) act(group, l);
}

std::vector<std::vector<Index>> MeasureQuestions::first_numbers() const {
  std::vector<std::vector<Index>> first(
      inputs_.groups().size(), std::vector<Index>(selection_.layers.size()));
  Index next = 0;
  for_each_block([&](const Group& group, std::size_t layer) {
    first[group.number][layer] = next;
    next += static_cast<Index>(selection_.heads.size()) * group.count;
  });
  return first;
}

Plan MeasureQuestions::plan(const std::vector<std::string>& arguments) const {
  Plan plan("measure", arguments);
  MeasuredGrowth growth;
  for_each_block([&](const Group& group, std::size_t layer) {
    for (const std::optional<Index>& head : selection_.heads)
      for (Index i = 0; i < group.count; ++i) {
        const Record r =
            question(group, layer, {selection_.layers[layer], head}, i);
        plan.add(r);
        growth.expect({r.layer, r.head}, r.n, to_json(r));
      }
  });
  growth.plan(fitted(), selection_, plan);
  return plan;
}

Record MeasureQuestions::question(const Group& group, std::size_t layer,
                                  const Part& part, Index i) const {
  Record r = inputs_.with_tokens(common_, group, i, layer);
  r.layer = part.layer;
  r.head = part.head;
  set_mask(selection_, r);
  if (selection_.norm == Norm::two) set_solver(request_.solver, r);
  // they are among the details
  if (request_.tokens && inputs_.has_words())
    r.parameters["words_sha256"] = fingerprint(inputs_.words(group, i));
  return r;
}

Record MeasureQuestions::fitted() const {
  Record of = common_;
  of.dtype = inputs_.dtype();
  if (selection_.norm == Norm::two) set_solver(request_.solver, of);
  return of;
}

Index MeasureQuestions::number_of(const Group& group, std::size_t layer,
                                  std::size_t head, Index i) const {
  const Group& whole = inputs_.groups()[group.number];
  return numbers_[group.number][layer] +
         static_cast<Index>(head) * whole.count + group.first - whole.first + i;
}

bool MeasureQuestions::any_taken(const Records& records, const Group& group,
                                 Index i) const {
  for (std::size_t l = 0; l < selection_.layers.size(); ++l)
    for (std::size_t h = 0; h < selection_.heads.size(); ++h)
      if (records.takes(number_of(group, l, h, i))) return true;
  return false;
}

std::vector<Group> MeasureQuestions::groups_of_share(
    const Records& records) const {
  if (!records.shares()) return inputs_.groups();
  std::vector<Group> parts;
  for (const Group& group : inputs_.groups())
    for (Index i = 0; i < group.count;) {
      const Index begin = i;
      while (i < group.count && any_taken(records, group, i)) ++i;
      if (i > begin)
        parts.push_back(group.part(begin, i - begin));
      else
        ++i;
    }
  return parts;
}

}  // namespace lipscope::audit
