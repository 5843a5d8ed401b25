// campaign: adversarial cases for every bound, by number, until so many are
// done. Killed, it goes on from its journal.
//
//   campaign --cases 1000000 --out campaign.jsonl
//   campaign --case 123456            one case again, alone
//
// Exit code 0: no bound was violated; 4: one was, and the case is named.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "lipscope/core/errors.h"
#include "lipscope/io/journal.h"
#include "tests/campaign/tally.h"

namespace lipscope::campaign {
namespace {

constexpr int violated = 4;

struct Options {
  std::uint64_t seed = 1, cases = 1000000, chunk = 2000;
  std::optional<std::uint64_t> one;
  std::string out = "campaign.jsonl", weakened;
  double factor = 1.0;
};

// what goes wrong says in which case
std::vector<Claim> examined(const Options& o, std::uint64_t number) {
  try {
    return examine(o.seed, number, {o.weakened, o.factor});
  } catch (const std::exception& e) {
    throw RunError(
        fmt::format("seed {}, case {}: {}", o.seed, number, e.what()));
  }
}

int show_one(const Options& o) {
  for (const Case& c : draw_cases(o.seed, *o.one))
    fmt::print("seed {}, case {}: {}\n", o.seed, *o.one, c.what);
  Tally tally;
  const std::vector<Claim> claims = examined(o, *o.one);
  for (const Claim& c : claims)
    fmt::print("  {:40} {:<22.16g} of {:<22.16g} ratio {:.9f}\n", c.name,
               c.reached, c.allowed, c.ratio());
  tally.add(claims, *o.one);
  return tally.violations().empty() ? 0 : violated;
}

void report(const Options& o, const Tally& tally) {
  for (const Tally::Violation& v : tally.violations())
    fmt::print(stderr,
               "campaign: {} is violated: measured/bound {:.12g}; again: "
               "campaign --seed {} --case {}\n",
               v.name, v.seen.most, o.seed, v.seen.where);
}

int run(const Options& o) {
  Journal journal(o.out, Journal::Mode::resume);
  Tally total;
  std::uint64_t done = 0;
  double seconds = 0.0;
  for (const nlohmann::ordered_json& r : journal.records()) {
    if (r.value("seed", o.seed) != o.seed || r.value("from", done) != done)
      throw InputError(fmt::format(
          "{}: holds another campaign (seed {}, from case {}; expected seed {} "
          "from case {})",
          o.out, r.value("seed", o.seed), r.value("from", done), o.seed, done));
    done = r.at("to").get<std::uint64_t>();
    seconds += r.at("seconds").get<double>();
    total.add(tally_of(r.at("seen")));
  }
  while (done < o.cases && total.violations().empty()) {
    const auto start = std::chrono::steady_clock::now();
    const std::uint64_t to = std::min(o.cases, done + o.chunk);
    Tally chunk;
    for (std::uint64_t number = done; number < to; ++number)
      chunk.add(examined(o, number), number);
    const double took =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    journal.append({{"seed", o.seed},
                    {"from", done},
                    {"to", to},
                    {"seconds", took},
                    {"seen", to_json(chunk)}});
    done = to;
    seconds += took;
    total.add(chunk);
    fmt::print(stderr, "\r{} of {} cases, {:.0f} a second ", done, o.cases,
               static_cast<double>(done) / seconds);
    std::fflush(stderr);
  }
  fmt::print(stderr, "\n");
  fmt::print("seed {}: {} cases in {:.0f} seconds\n\n{}", o.seed, done, seconds,
             total.table());
  report(o, total);
  return total.violations().empty() ? 0 : violated;
}

}  // namespace
}  // namespace lipscope::campaign

int main(int argc, char** argv) {
  using namespace lipscope;
  campaign::Options o;
  CLI::App app("Adversarial cases for every bound from above.");
  app.add_option("--seed", o.seed, "of the campaign")->capture_default_str();
  app.add_option("--cases", o.cases, "how many in all")->capture_default_str();
  app.add_option("--out", o.out, "the journal, which a later run goes on from")
      ->capture_default_str();
  app.add_option("--chunk", o.chunk, "cases for each line of the journal")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--case", o.one, "this case alone, with all its numbers");
  app.add_option("--weaken", o.weakened,
                 "a bound that is made wrong, to see that it is noticed")
      ->group("");
  app.add_option("--factor", o.factor)->group("");
  CLI11_PARSE(app, argc, argv);
  try {
    return o.one ? campaign::show_one(o) : campaign::run(o);
  } catch (const InputError& e) {
    fmt::print(stderr, "campaign: {}\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    fmt::print(stderr, "campaign: {}\n", e.what());
    return 1;
  }
}
