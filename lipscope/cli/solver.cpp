#include "lipscope/cli/solver.h"

#include "lipscope/cli/numbers.h"

namespace lipscope::cli {

void declare_solver(CLI::App& app, MeasureOptions& o,
                    const std::string& group) {
  app.add_option("--tolerance", o.tolerance,
                 "done when the relative residual is below this")
      ->transform(positive_number())
      ->capture_default_str()
      ->group(group);
  app.add_option("--max-steps", o.max_steps,
                 "Golub-Kahan steps before giving up")
      ->transform(whole_number(1, 100000))
      ->capture_default_str()
      ->group(group);
  app.add_option("--enclose", o.enclose,
                 "go on until 'upper (whp)' is within this factor of 'lower', "
                 "e.g. 1.05")
      ->transform(number_between(1.0 + 1e-6, 1e6))
      ->group(group);
  app.add_option("--delta", o.delta, "chance with which 'upper (whp)' may fail")
      ->transform(number_between(1e-300, 0.5))
      ->capture_default_str()
      ->group(group);
}

void tell_solver(const MeasureOptions& o, Record& r) {
  r.delta = o.delta;
  r.parameters["tolerance"] = o.tolerance;
  r.parameters["max_steps"] = o.max_steps;
  if (o.enclose > 1.0) r.parameters["enclose"] = o.enclose;
  // what --memory decides: for a fit over many lengths, its points say it
  if (r.n == 0) return;
  if (const MemoryPlan plan = memory_plan(r.n * r.d, o); plan != MemoryPlan{})
    r.parameters["restart_after"] = {plan.steps_f32, plan.steps_f64};
}

void declare_effort(CLI::App& app, bool& strict, std::uint64_t& seed,
                    int& threads, const std::string& group) {
  app.add_flag("--strict", strict, "exit code 3 if anything did not converge")
      ->group(group);
  app.add_option("--seed", seed,
                 "of random weights, tokens and starting vectors")
      ->transform(seed_number())
      ->capture_default_str()
      ->group(group);
  app.add_option("--threads", threads, "0: all cores")
      ->transform(whole_number(0, 4096))
      ->capture_default_str()
      ->group(group);
}

}  // namespace lipscope::cli
