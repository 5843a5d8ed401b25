#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lipscope/search/region.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/certificates.h"
#include "tests/campaign/case.h"

/// An attention layer, and all bounds that speak of it.
namespace lipscope::campaign {

/// What has to be measured for a claim.
enum class MeasuredNorm { two, inf, token, row };

struct Spoken {
  std::string name;
  MeasuredNorm measured = MeasuredNorm::two;
  double allowed = 0.0;                      ///< over the set, or
  std::optional<Certificate> at_input = {};  ///< made at each input
};

struct AttentionProblem {
  AttentionWeights weights;
  AttentionOptions options;
  std::vector<Spoken> spoken;
  std::optional<LocalCertificates> certificates;
  Rng rng{0};

  /// Dense, by the closed form where there is one. TokensTooLarge where the
  /// library would not measure.
  Matrix jacobian(const Matrix& x) const;
  std::vector<Claim> claims(const Matrix& x,
                            std::optional<std::size_t> only) const;
  Matrix ascended(const Matrix& x, const std::string& name,
                  const Region& region) const;

 private:
  double measured(MeasuredNorm what, const Matrix& J, Index n,
                  bool quick) const;
  Claim claim(const Spoken& s, const Matrix& x, double reached) const;
};

/// All bounds that `bounds` has for the question.
void speak_of(AttentionProblem& p, const BoundSetting& question,
              const std::string& suffix);
/// All certificates that are offered at an input.
void speak_at_input(AttentionProblem& p, const std::string& suffix);

/// What the draw leaves, now and then an input that theory names.
void maybe_constructed(const AttentionProblem& p, const Region& region,
                       Matrix& x, Dice& dice);

std::string described(const AttentionProblem& p, const Matrix& x);

Case attention_case_of(std::shared_ptr<AttentionProblem> p, std::string what,
                       Matrix x, const Region& region);

}  // namespace lipscope::campaign
