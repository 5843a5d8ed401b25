// campaign: adversarial cases for every bound, by number, until so many are
// done. Killed, it goes on from its journal.
//
//   campaign --cases 1000000 --out campaign.jsonl
//   campaign --families attention,many,many --cases 1000000 --out many.jsonl
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
  std::string out = "campaign.jsonl", weakened, names;
  double factor = 1.0;
  Families families;  // of these names
};

// what goes wrong says in which case
Examined examined(const Options& o, std::uint64_t number) {
  try {
    return examine(o.seed, number, o.families, {o.weakened, o.factor});
  } catch (const std::exception& e) {
    throw RunError(
        fmt::format("seed {}, case {}: {}", o.seed, number, e.what()));
  }
}

int show_one(const Options& o) {
  for (const Case& c : draw_cases(o.seed, *o.one, o.families))
    fmt::print("seed {}, case {}: {}\n", o.seed, *o.one, c.what);
  Tally tally;
  const Examined found = examined(o, *o.one);
  for (const Claim& c : found.claims)
    fmt::print("  {:40} {:<22.16g} of {:<22.16g} ratio {:.9f}\n", c.name,
               c.reached, c.allowed, c.ratio());
  if (found.refused > 0)
    fmt::print("  inputs whose scores rounding leaves unknown: {}\n",
               found.refused);
  tally.add(found.claims, *o.one);
  return tally.violations().empty() ? 0 : violated;
}

std::string again(const Options& o) {
  return fmt::format("campaign --seed {}{}", o.seed,
                     o.names.empty() ? "" : " --families " + o.names);
}

void report(const Options& o, const Tally& tally) {
  for (const Tally::Violation& v : tally.violations())
    fmt::print(stderr,
               "campaign: {} is violated: measured/bound {:.12g}; again: "
               "{} --case {}\n",
               v.name, v.seen.most, again(o), v.seen.where);
}

// what a line of the journal must agree with
void require_same(const Options& o, const nlohmann::ordered_json& line,
                  std::uint64_t done) {
  const auto seed = line.value("seed", o.seed);
  const auto from = line.value("from", done);
  const std::string names = line.value("families", std::string());
  const auto quoted = [](const std::string& of) {
    return of.empty() ? "the usual families" : "families " + of;
  };
  if (seed != o.seed || from != done || names != o.names)
    throw InputError(fmt::format(
        "{}: holds another campaign (seed {}, {}, from case {}; expected seed "
        "{}, {}, from case {})",
        o.out, seed, quoted(names), from, o.seed, quoted(o.names), done));
}

int run(const Options& o) {
  Journal journal(o.out, Journal::Mode::resume);
  Tally total;
  std::uint64_t done = 0, refused = 0;
  double seconds = 0.0;
  for (const nlohmann::ordered_json& r : journal.records()) {
    require_same(o, r, done);
    done = r.at("to").get<std::uint64_t>();
    seconds += r.at("seconds").get<double>();
    refused += r.value("refused", std::uint64_t{0});
    total.add(tally_of(r.at("seen")));
  }
  while (done < o.cases && total.violations().empty()) {
    const auto start = std::chrono::steady_clock::now();
    const std::uint64_t to = std::min(o.cases, done + o.chunk);
    Tally chunk;
    std::uint64_t refused_here = 0;
    for (std::uint64_t number = done; number < to; ++number) {
      const Examined found = examined(o, number);
      chunk.add(found.claims, number);
      refused_here += found.refused;
    }
    const double took =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    nlohmann::ordered_json line{{"seed", o.seed}};
    if (!o.names.empty()) line["families"] = o.names;
    line.update({{"from", done},
                 {"to", to},
                 {"seconds", took},
                 {"refused", refused_here},
                 {"seen", to_json(chunk)}});
    journal.append(line);
    done = to;
    refused += refused_here;
    seconds += took;
    total.add(chunk);
    fmt::print(stderr, "\r{} of {} cases, {:.0f} a second ", done, o.cases,
               static_cast<double>(done) / seconds);
    std::fflush(stderr);
  }
  fmt::print(stderr, "\n");
  fmt::print(
      "seed {}: {} cases in {:.0f} seconds; not compared, as rounding leaves "
      "their scores unknown: {} inputs\n\n{}",
      o.seed, done, seconds, refused, total.table());
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
  app.add_option("--families", o.names,
                 "only these, in turn: attention,masked,many,…; a name that is "
                 "there twice has twice the cases");
  app.add_option("--case", o.one, "this case alone, with all its numbers");
  app.add_option("--weaken", o.weakened,
                 "a bound that is made wrong, to see that it is noticed")
      ->group("");
  app.add_option("--factor", o.factor)->group("");
  CLI11_PARSE(app, argc, argv);
  try {
    o.families = campaign::families_named(o.names);
    return o.one ? campaign::show_one(o) : campaign::run(o);
  } catch (const InputError& e) {
    fmt::print(stderr, "campaign: {}\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    fmt::print(stderr, "campaign: {}\n", e.what());
    return 1;
  }
}
