// lipscope doctor: what this machine is, how fast, and whether the identities
// hold on it.

#include <dnnl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "lipscope/attention/dense.h"
#include "lipscope/attention/kinds.h"
#include "lipscope/attention/multi_head.h"
#include "lipscope/cli/commands.h"
#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/cli/terminal.h"
#include "lipscope/core/gemm_peak.h"
#include "lipscope/core/machine.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rng.h"
#include "lipscope/core/version.h"
#include "lipscope/operators/check.h"
#include "lipscope/report/wrap.h"
#include "lipscope/spectral/dense.h"
#include "lipscope/spectral/golub_kahan.h"

namespace lipscope::cli {
namespace {

struct DoctorArguments {
  int threads = 0;
  bool json = false;
};

// the instruction set that this program itself was compiled for
const char* compiled_for() {
#if defined(__AVX512F__)
  return "avx512f";
#elif defined(__AVX2__) && defined(__FMA__)
  return "avx2 fma";
#elif defined(__AVX__)
  return "avx";
#else
  return "baseline";
#endif
}

struct Identity {
  std::string claim;
  double worst = 0.0, allowed = 0.0;
  bool holds() const { return worst <= allowed; }
};

// every kind and mask: the identities that make the numbers believable
std::vector<Identity> self_test() {
  Identity derivative{"J dx is the derivative (central differences)", 0, 1e-8};
  Identity adjoint{"<u, J v> = <J'u, v>", 0, 1e-12};
  Identity oracle{"J is the closed form, entry by entry", 0, 1e-12};
  Identity single{"f32 agrees with f64", 0, 1e-4};
  Identity lanczos{"Golub-Kahan finds the dense SVD's norm", 0, 1e-6};
  for (const Kind kind : all_kinds)
    for (const Mask mask : {Mask::none, Mask::causal}) {
      const Rng rng = Rng(7).split(static_cast<int>(kind));
      const Index n = 7, d = 12;
      AttentionWeights w;
      w.heads = 3;
      w.query = 0.3 * gaussian(d, d, rng.split(0));
      w.query_bias = flatten(gaussian(1, d, rng.split(4)));
      if (!kind_of(kind).tied) w.key = 0.3 * gaussian(d, d, rng.split(1));
      w.value = 0.3 * gaussian(d, d, rng.split(2));
      w.output = 0.3 * gaussian(d, d, rng.split(3));
      const Matrix x = gaussian(n, d, rng.split(5));

      const AttentionOptions options{.kind = kind, .mask = mask};
      const MultiHeadAttention<double> f(w, options);
      const auto J = f.linearize(x);
      const Matrix dense = dense_jacobian(w, options, x);
      const Matrix rounded =
          materialize(
              *MultiHeadAttention<float>(w, options).linearize(x.cast<float>()))
              .cast<double>();
      const double norm = dense_norm(dense).value;
      const double found =
          golub_kahan(*J, {.tolerance = 1e-7, .max_steps = 84}).value;

      const auto worse = [](Identity& id, double seen) {
        id.worst = std::max(id.worst, seen);
      };
      worse(derivative, check_derivative(f, x, rng.split(6)).error);
      worse(adjoint, adjoint_defect(*J, rng.split(7)));
      worse(oracle, (materialize(*J) - dense).norm() / dense.norm());
      worse(single, (rounded - dense).norm() / dense.norm());
      worse(lanczos, std::abs(found - norm) / norm);
    }
  return {derivative, adjoint, oracle, single, lanczos};
}

int run_doctor(const DoctorArguments& o) {
  const int threads = thread_count(o.threads);
  const dnnl_version_t* dnnl = dnnl_version();
  const std::vector<Identity> identities = self_test();
  const bool sound = std::all_of(identities.begin(), identities.end(),
                                 [](const Identity& id) { return id.holds(); });
  nlohmann::ordered_json facts = {
      {"version", version()},
      {"commit", commit()},
      {"build", build_flags()},
      {"compiled for", compiled_for()},
      {"cpu", cpu_field("model name")},
      {"instruction sets", instruction_sets()},
      {"cores", std::thread::hardware_concurrency()},
      {"threads", threads},
      {"oneDNN",
       fmt::format("{}.{}.{}", dnnl->major, dnnl->minor, dnnl->patch)},
      {"Eigen", fmt::format("{}.{}.{}", EIGEN_WORLD_VERSION,
                            EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION)},
      {"fmt", FMT_VERSION},
      {"CLI11", CLI11_VERSION},
      {"f32 GEMM, one thread (GFLOP/s)", gemm_peak<float>(1024, 1)},
      {"f32 GEMM, all threads (GFLOP/s)", gemm_peak<float>(2048, threads)},
      {"f64 GEMM, all threads (GFLOP/s)", gemm_peak<double>(512, threads)}};

  if (o.json) {
    for (const Identity& id : identities)
      facts["self-test"].push_back({{"claim", id.claim},
                                    {"worst", id.worst},
                                    {"allowed", id.allowed},
                                    {"holds", id.holds()}});
    fmt::print("{}\n", facts.dump());
  } else {
    std::vector<Meaning> lines;
    for (const auto& [name, value] : facts.items())
      lines.push_back({name, value.is_number_float()
                                 ? fmt::format("{:.1f}", value.get<double>())
                             : value.is_string() ? value.get<std::string>()
                                                 : value.dump()});
    print_text(legend(lines, screen_width(STDOUT_FILENO)) + "\n");
    for (const Identity& id : identities)
      fmt::print("{:<46}{:<6}worst {:.1e}, allowed {:.0e}\n", id.claim,
                 id.holds() ? "holds" : "FAILS", id.worst, id.allowed);
    fmt::print("\n");
    const auto failing =
        std::count_if(identities.begin(), identities.end(),
                      [](const Identity& id) { return !id.holds(); });
    print_answer(
        sound ? fmt::format("Answer: all is well: the {} identities hold on "
                            "this machine.",
                            identities.size())
              : fmt::format("Answer: {} of {} identities FAIL on this machine; "
                            "do not trust its numbers.",
                            failing, identities.size()));
  }
  return sound ? 0 : 1;
}

}  // namespace

Run doctor_command(CLI::App& app) {
  const auto options = std::make_shared<DoctorArguments>();
  app.description(
      "Show this machine, the libraries and the speed of its matrix products, "
      "and test\nthe identities that every number rests on. Takes a few "
      "seconds; exit code 1 if\nan identity fails.");
  app.add_option("--threads", options->threads,
                 "number of threads; 0: all cores")
      ->transform(whole_number(0, 4096))
      ->capture_default_str();
  app.add_flag("--json", options->json, "print one JSON object");
  return [options] { return run_doctor(*options); };
}

}  // namespace lipscope::cli
