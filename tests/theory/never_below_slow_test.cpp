// Every bound against more than 100,000 inputs, most of them climbed to, half
// with a query bias, masked and unmasked.

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>

#include "lipscope/core/parallel.h"
#include "lipscope/theory/certificates.h"
#include "tests/theory/cases.h"

namespace lipscope {
namespace never_below_slow_test {

// the largest measured/bound seen for each name, over all threads
class Ratios {
 public:
  void add(const std::string& name, double ratio) {
    const std::lock_guard lock(mutex_);
    double& most = most_[name];
    most = std::max(most, ratio);
    ++count_[name];
  }
  void print_and_check() const {
    for (const auto& [name, ratio] : most_) {
      std::printf("%-22s %8td cases, measured/bound at most %.6f\n",
                  name.c_str(), static_cast<std::ptrdiff_t>(count_.at(name)),
                  ratio);
      EXPECT_LE(ratio, 1.0 + 1e-9) << name;
    }
  }

 private:
  std::mutex mutex_;
  std::map<std::string, double> most_;
  std::map<std::string, Index> count_;
};

// trials first … first + count: three of five climb, and are looked at where
// they start and where they end
void try_bounds(Kind kind, std::uint64_t first, Index count, Ratios& ratios,
                std::atomic<Index>& climbed) {
  parallel_for(count, 0, [&](Index c) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(c);
    test::Trial t = test::trial(kind, seed);
    const double R = test::radius(t.x);
    if (seed % 5 < 3) {
      t.x = test::climb(t, R, 10, Rng(seed).split(50));
      ++climbed;
    }
    const Matrix J = test::jacobian(t);
    const Index n = t.x.rows();
    for (const Bound& b : bounds(t.weights, test::setting_of(t, R)))
      ratios.add(b.name, test::measured(J, b.norm, n, Rng(seed)) / b.value);
    const std::string of = kind == Kind::dot ? "" : " (" + name_of(kind) + ")";
    const double reached = test::norm2(J);
    const LocalCertificates certificates(t.weights, t.options);
    for (const Certificate which : all_certificates)
      if (certificates.offers(which))
        ratios.add("at X: " + name_of(which) + of,
                   reached / certificates.at(t.x, which).value);
  });
}

TEST(Bounds, AreNeverBelowAHundredThousandInputs) {
  const struct {
    Kind kind;
    Index count;
  } kinds[] = {{Kind::dot, 60000},
               {Kind::l2, 20000},
               {Kind::cosine, 12000},
               {Kind::sigmoid, 12000}};
  Ratios ratios;
  std::atomic<Index> climbed = 0;
  Index cases = 0;
  for (const auto& [kind, count] : kinds) {
    try_bounds(kind, 1000000, count, ratios, climbed);
    cases += count;
  }
  ratios.print_and_check();
  std::printf("%td inputs, %td of them climbed to\n", cases, climbed.load());
  EXPECT_GE(cases, 100000);
  EXPECT_GE(2 * climbed.load(), cases);
}

TEST(SplitCertificate, IsNeverBelowLongInputs) {
  Ratios ratios;
  parallel_for(600, 0, [&](Index c) {
    const Rng rng(static_cast<std::uint64_t>(c) + 77);
    Rng dice = rng.split(9);
    test::Trial t;
    const Index H = 1 + c % 4, d = 2 + c % 3, k = 1 + c % 2, n = 24 + c % 9;
    t.weights.heads = H;
    t.weights.query = gaussian(d, H * k, rng.split(0));
    t.weights.key = gaussian(d, H * k, rng.split(1));
    t.weights.value = gaussian(d, H * k, rng.split(2));
    if (c % 5 != 0) t.weights.output = gaussian(H * k, d, rng.split(3));
    if (c % 2 == 0)
      t.weights.query_bias =
          std::exp(dice.normal()) * flatten(gaussian(1, H * k, rng.split(4)));
    t.options.mask = c % 3 == 0 ? Mask::causal : Mask::none;
    t.options.threads = 1;
    t.x = std::exp(1.5 * dice.normal()) * gaussian(n, d, rng.split(5));
    if (c % 4 == 1)
      for (Index i = 1; i < n; ++i) t.x.row(i) = t.x.row(i % 2);
    if (c % 10 < 5) t.x = test::climb(t, test::radius(t.x), 6, rng.split(6));
    const double reached = test::norm2(test::jacobian(t));
    const LocalCertificates certificates(t.weights, t.options);
    for (const Certificate which :
         {Certificate::split_paths, Certificate::token_pairs})
      ratios.add(name_of(which), reached / certificates.at(t.x, which).value);
  });
  ratios.print_and_check();
}

}  // namespace never_below_slow_test
}  // namespace lipscope
