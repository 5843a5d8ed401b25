#include "lipscope/text/pair_merges.h"

#include <cstddef>
#include <queue>
#include <tuple>

namespace lipscope {
namespace {

constexpr std::size_t none = static_cast<std::size_t>(-1);

std::uint64_t key(TokenId left, TokenId right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

// A token in a list from which its right neighbour can be taken.
struct Link {
  Token token;
  std::size_t before = none, after = none;
  bool gone = false;
};

// Two neighbours that could be merged when this was written down. Whether they
// still can is looked up when it is their turn.
struct Candidate {
  double order;
  std::size_t place;  // of the left one
  TokenId left, right, merged;

  bool operator>(const Candidate& other) const {
    return std::tie(order, place) > std::tie(other.order, other.place);
  }
};

}  // namespace

bool PairMerges::add(TokenId left, TokenId right, TokenId merged,
                     double order) {
  return merges_.emplace(key(left, right), Merge{order, merged}).second;
}

const PairMerges::Merge* PairMerges::find(TokenId left, TokenId right) const {
  const auto found = merges_.find(key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

std::vector<Token> PairMerges::apply(std::vector<Token> tokens) const {
  if (tokens.size() < 2) return tokens;
  std::vector<Link> links(tokens.size());
  for (std::size_t i = 0; i < links.size(); ++i)
    links[i] = {.token = tokens[i],
                .before = i == 0 ? none : i - 1,
                .after = i + 1 == links.size() ? none : i + 1};

  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto consider = [&](std::size_t place) {
    if (place == none || links[place].after == none) return;
    const TokenId left = links[place].token.id;
    const TokenId right = links[links[place].after].token.id;
    if (const Merge* merge = find(left, right))
      queue.push({merge->order, place, left, right, merge->merged});
  };
  for (std::size_t i = 0; i + 1 < links.size(); ++i) consider(i);

  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Link& link = links[best.place];
    if (link.gone || link.token.id != best.left || link.after == none ||
        links[link.after].token.id != best.right)
      continue;
    Link& taken = links[link.after];
    link.token = {best.merged, link.token.begin, taken.token.end};
    link.after = taken.after;
    taken.gone = true;
    if (link.after != none) links[link.after].before = best.place;
    consider(link.before);
    consider(best.place);
  }

  tokens.clear();
  for (const Link& link : links)
    if (!link.gone) tokens.push_back(link.token);
  return tokens;
}

}  // namespace lipscope
