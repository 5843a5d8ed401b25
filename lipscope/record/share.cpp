#include "lipscope/record/share.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "lipscope/core/errors.h"
#include "lipscope/core/version.h"
#include "lipscope/record/key.h"

namespace lipscope {

Shard parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  Shard shard;
  const auto whole = [&](const std::string& part, Index& into) {
    if (part.empty() || part.size() > 9 ||
        part.find_first_not_of("0123456789") != part.npos)
      return false;
    into = std::stoll(part);
    return true;
  };
  if (slash == text.npos || !whole(text.substr(0, slash), shard.number) ||
      !whole(text.substr(slash + 1), shard.count) || shard.number < 1 ||
      shard.number > shard.count)
    throw InputError(fmt::format(
        "--shard {}: expected I/K, part I of K, from 1/K to K/K", text));
  return shard;
}

namespace {

using Places = std::vector<std::size_t>;

// `list` in so many neighbouring pieces, whose sizes differ by one at most
std::vector<Places> pieces(const Places& list, std::size_t count) {
  std::vector<Places> cut(count);
  for (std::size_t i = 0; i < count; ++i)
    cut[i].assign(
        list.begin() + static_cast<std::ptrdiff_t>(i * list.size() / count),
        list.begin() +
            static_cast<std::ptrdiff_t>((i + 1) * list.size() / count));
  return cut;
}

}  // namespace

std::vector<Places> parts_of(const std::vector<const Question*>& questions,
                             std::size_t count, const std::string& command) {
  require(count > 0, "parts_of: no parts");
  // by length the windows, and of each its questions
  std::map<Index, std::map<Index, Places>> windows;
  std::size_t number_of_windows = 0;
  if (command == "measure")
    for (std::size_t q = 0; q < questions.size(); ++q) {
      Places& of = windows[questions[q]->n][questions[q]->sample];
      if (of.empty()) ++number_of_windows;
      of.push_back(q);
    }
  if (number_of_windows < count) {
    Places list(questions.size());
    std::iota(list.begin(), list.end(), std::size_t{0});
    std::stable_sort(list.begin(), list.end(),
                     [&](std::size_t a, std::size_t b) {
                       return questions[a]->layer < questions[b]->layer;
                     });
    return pieces(list, count);
  }
  std::vector<Places> parts(count);
  std::size_t next = 0;  // where lengths with few windows begin: not always 0
  for (const auto& [n, samples] : windows) {
    std::vector<const Places*> in_order;
    for (const auto& [sample, of] : samples) in_order.push_back(&of);
    Places list(in_order.size());
    std::iota(list.begin(), list.end(), std::size_t{0});
    const std::size_t used = std::min(count, list.size());
    for (const Places& piece : pieces(list, used)) {
      Places& part = parts[next++ % count];
      for (const std::size_t w : piece)
        part.insert(part.end(), in_order[w]->begin(), in_order[w]->end());
    }
  }
  for (Places& part : parts) std::sort(part.begin(), part.end());
  return parts;
}

Share::Share(const Plan& plan, const Shard& shard) : plan_(plan.name()) {
  std::vector<const Question*> all;
  for (const Question& q : plan.questions()) all.push_back(&q);
  const auto parts =
      parts_of(all, static_cast<std::size_t>(shard.count), plan.command());
  for (const std::size_t q : parts[static_cast<std::size_t>(shard.number - 1)])
    lines_[all[q]->number] = {all[q]->key, all[q]->line_number};
}

Share::Share(const std::vector<Index>& numbers) : plan_("the plan") {
  for (const Index number : numbers) lines_[number] = {};
}

void Share::check(Index number, const nlohmann::ordered_json& question) const {
  const Line& line = lines_.at(number);
  if (line.key.empty() || line.key == question_key(question)) return;
  throw InputError(fmt::format(
      "{}: line {}: question {} is another one now: the model, the text or the "
      "version of lipscope (now {}) is not the one that was planned",
      plan_, line.line_number, number, version()));
}

void Share::check_total(Index total) const {
  for (const auto& [number, line] : lines_)
    if (number < 0 || number >= total)
      throw InputError(fmt::format(
          "{}: line {}: question {} is not asked any more, of {} in all: the "
          "model or the text is not the one that was planned",
          plan_, line.line_number, number, total));
}

}  // namespace lipscope
