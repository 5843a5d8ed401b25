#include "lipscope/train/ngrams.h"

#include <cmath>
#include <memory>

#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

std::uint64_t key_of(std::uint32_t group, int character) {
  return (std::uint64_t{group} << 32) | static_cast<std::uint32_t>(character);
}

}  // namespace

NGrams::NGrams(std::span<const int> text, Index characters, Index longest)
    : characters_(characters), longest_(longest) {
  require(characters >= 1 && longest >= 1 && !text.empty(),
          "n-grams: of up to {}, {} characters in the vocabulary, {} in the "
          "text",
          longest, characters, text.size());
  groups_.resize(1);
  std::vector<Number> ends = {0};  // groups that end here, the empty one first
  for (const int c : text) {
    require(c >= 0 && c < characters, "n-grams: character {} of {}", c,
            characters);
    std::vector<Number> next = {0};
    for (std::size_t length = 0; length < ends.size(); ++length) {
      Group& group = groups_[ends[length]];
      ++group.seen;
      auto known = group.counts.begin();
      while (known != group.counts.end() && known->first != c) ++known;
      if (known != group.counts.end())
        ++known->second;
      else
        group.counts.emplace_back(c, 1);
      // what follows groups of `longest` characters is not counted
      if (static_cast<Index>(length) + 1 >= longest) continue;
      require(groups_.size() < never, "n-grams: too many different groups");
      const auto [at, is_new] = longer_.try_emplace(
          key_of(ends[length], c), static_cast<Number>(groups_.size()));
      if (is_new) groups_.emplace_back();
      next.push_back(at->second);
    }
    ends = std::move(next);
  }
}

NGrams::Number NGrams::longer(Number group, int character) const {
  if (group == never) return never;
  const auto found = longer_.find(key_of(group, character));
  return found == longer_.end() ? never : found->second;
}

void NGrams::read(std::vector<Number>& groups, int character) const {
  std::vector<Number> next = {0};
  for (const Number group : groups)
    if (static_cast<Index>(next.size()) < longest_)
      next.push_back(longer(group, character));
  groups = std::move(next);
}

void NGrams::refine(Number number, Vector& p) const {
  if (number == never) return;
  const Group& group = groups_[number];
  if (group.seen == 0) return;  // nothing followed the end of the text
  const auto different = static_cast<double>(group.counts.size());
  const double all = static_cast<double>(group.seen) + different;
  p *= different / all;
  for (const auto& [c, count] : group.counts)
    p[c] += static_cast<double>(count) / all;
}

std::vector<TextScore> NGrams::scores(std::span<const int> text) const {
  require(text.size() >= 2, "n-grams: a text of {} characters", text.size());
  std::vector<TextScore> scores(static_cast<std::size_t>(longest_));
  std::vector<Number> groups = {0};
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    read(groups, text[i]);
    const int target = text[i + 1];
    Vector p = Vector::Constant(characters_, 1.0 / characters_);
    for (std::size_t n = 0; n < scores.size(); ++n) {
      if (n < groups.size()) refine(groups[n], p);
      Index likeliest = 0;
      p.maxCoeff(&likeliest);
      scores[n].nll -= std::log(p[target]);
      scores[n].accuracy += likeliest == target ? 1.0 : 0.0;
    }
  }
  const auto predicted = static_cast<double>(text.size() - 1);
  for (TextScore& s : scores) {
    s.nll /= predicted;
    s.accuracy /= predicted;
  }
  return scores;
}

NextToken NGrams::next(Index n) const {
  require(n >= 1 && n <= longest_, "n-grams: {} of up to {}", n, longest_);
  const auto logits = std::make_shared<MatrixOf<float>>();
  return [this, n, logits](std::span<const int> tokens,
                           const Pass& pass) -> const MatrixOf<float>& {
    logits->resize(pass.rows(), characters_);
    for (Index s = 0; s < pass.sequences; ++s) {
      std::vector<Number> groups = {0};
      for (Index i = 0; i < pass.length; ++i) {
        const Index row = s * pass.length + i;
        read(groups, tokens[static_cast<std::size_t>(row)]);
        Vector p = Vector::Constant(characters_, 1.0 / characters_);
        for (std::size_t k = 0;
             k < groups.size() && k < static_cast<std::size_t>(n); ++k)
          refine(groups[k], p);
        logits->row(row) = p.array().log().matrix().transpose().cast<float>();
      }
    }
    return *logits;
  };
}

}  // namespace lipscope
