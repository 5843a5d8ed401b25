#include "lipscope/audit/token_memory.h"

#include <algorithm>

#include "lipscope/core/errors.h"
#include "lipscope/core/memory.h"

namespace lipscope::audit {
namespace {

double real(Index n) { return static_cast<double>(n); }

}  // namespace

void require_token_memory(const std::vector<Index>& lengths, Index samples,
                          const Subject& subject, const Selection& selection) {
  const Index longest = *std::max_element(lengths.begin(), lengths.end());
  double tokens = 0.0;
  for (const Index n : lengths) tokens += real(n) * real(samples);
  // of a model an id for each token; of everything a record for each layer and
  // head at each sequence, which the table at the end is made of
  constexpr double bytes_a_record = 2000;
  const double sequences = real(samples) * real(lengths.size());
  const double records =
      sequences * real(selection.layers.size()) * real(selection.heads.size());
  require_memory(
      bytes_a_record * records + (subject.model ? 8.0 * tokens : 0.0),
      fmt::format("--lengths, --samples: to measure {:.6g} times, with {:.6g} "
                  "tokens in {:.6g} sequences,",
                  records, tokens, sequences));

  // an input in f64 for each layer, and of one layer beside it what its map
  // makes on the way: queries, keys, values and their mixture
  const double d = real(subject.features());
  require_memory(
      8.0 * real(longest) * d * (real(selection.layers.size()) + 4.0),
      fmt::format("--length {}: a sequence of this many tokens of {} features",
                  longest, subject.features()));
}

void require_weight_memory(Index n, const Subject& subject,
                           const Selection& selection, std::uint64_t memory) {
  const bool later =
      std::any_of(selection.masks.begin(), selection.masks.end(),
                  [](const Mask& mask) { return !mask.hides_later; });
  const double share = later ? 1.0 : 0.5;
  const double numbers = share * real(subject.heads()) * real(n) * real(n);
  const double most =
      memory > 0 ? static_cast<double>(memory) : machine_memory() / 4;
  // in f32, and then in f64: what does not fit in f64 may still fit in f32
  for (const double size : {sizeof(double), sizeof(float)})
    if (size * numbers <= most)
      require_memory(
          size * numbers,
          fmt::format("--length {}: to keep the weights of {} heads (--memory "
                      "1M does not keep them)",
                      n, subject.heads()));
}

void require_pair_memory(Index n, double bytes_a_pair,
                         const std::string& what) {
  require_memory(bytes_a_pair * real(n) * real(n),
                 fmt::format("{} {} tokens, with a number for every two of "
                             "them,",
                             what, n));
}

}  // namespace lipscope::audit
