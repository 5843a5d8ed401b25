// lipscope merge: journals of several workers as one file.

#include "lipscope/audit/merge.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "lipscope/cli/commands.h"
#include "lipscope/cli/conclusion.h"
#include "lipscope/cli/numbers.h"
#include "lipscope/cli/output_files.h"

namespace lipscope::cli {
namespace {

struct MergeArguments {
  audit::MergeRequest request;
  double tolerance = 0.0;
  bool strict = false, quiet = false, force = false;
};

// audit.jsonl: audit.missing.jsonl
std::string missing_beside(const std::filesystem::path& out) {
  return (out.parent_path() / out.stem()).string() + ".missing.jsonl";
}

std::string answer(const audit::Merged& m, const audit::MergeRequest& o) {
  std::string text =
      fmt::format("Answer: {} of {} questions are answered, by {} records",
                  m.questions - m.missing, m.questions, m.records);
  if (m.fits > 0) text += fmt::format(" and {} fits of growth", m.fits);
  text += fmt::format(", in {}", o.out);
  if (m.duplicates > 0)
    text += fmt::format("; {} records came more than once", m.duplicates);
  if (m.cut > 0)
    text += fmt::format("; {} that --budget cut are no answers", m.cut);
  if (m.missing > 0)
    text += fmt::format("; the {} that are missing are a plan, {}", m.missing,
                        o.missing);
  return text + ".";
}

}  // namespace

Run merge_command(CLI::App& app) {
  app.description(
      "Make one file of the journals that workers wrote for one plan, in the "
      "order of the plan: the\n"
      "file of an undisturbed single run, but for times and machines.\n\n"
      "  lipscope merge --plan plan.jsonl part-*.jsonl --out audit.jsonl\n"
      "  lipscope measure --plan audit.missing.jsonl --out part-again.jsonl\n"
      "  lipscope merge --plan plan.jsonl part-*.jsonl --out audit.jsonl\n\n"
      "  the same answer twice           counts once\n"
      "  two answers of one build and    exit code 1, both are shown, nothing "
      "is written\n"
      "  one kind of CPU\n"
      "  of different ones               the first is kept and the difference "
      "is reported; exit\n"
      "                                  code 1 if it is beyond --tolerance or "
      "if the enclosures\n"
      "                                  contradict each other\n"
      "  changed lines, other audits     exit code 2, with file and line\n"
      "  what is missing                 is written as the next plan");
  const auto o = std::make_shared<MergeArguments>();
  app.add_option("FILE", o->request.files, "journals, as --out wrote them")
      ->required()
      ->expected(1, 100000);
  app.add_option("--plan", o->request.plan, "the plan that they answer")
      ->required()
      ->type_name("FILE");
  app.add_option("--out", o->request.out, "where the records go")
      ->required()
      ->type_name("FILE")
      ->group("Output");
  app.add_option(
         "--missing", o->request.missing,
         "where the questions without an answer go, as a plan [default: "
         "OUT.missing.jsonl, beside --out]")
      ->type_name("FILE")
      ->group("Output");
  CLI::Option* tolerance =
      app.add_option("--tolerance", o->tolerance,
                     "by how much two builds or kinds of CPU may differ, "
                     "relative to the larger number [default: that of the "
                     "measurement, or 1e-6]")
          ->transform(positive_number());
  app.add_flag("--strict", o->strict, "exit code 3 if an answer is missing");
  app.add_flag("--quiet", o->quiet, "do not report differences")
      ->group("Output");
  declare_force(app, o->force);
  return [o, tolerance] {
    audit::MergeRequest& request = o->request;
    if (request.missing.empty()) request.missing = missing_beside(request.out);
    if (tolerance->count() > 0) request.merge.tolerance = o->tolerance;
    OutputFiles files;
    files.reads(request.plan, "--plan");
    for (const std::string& file : request.files) files.reads(file, "FILE");
    files.writes(request.out, "--out", OutputKind::records);
    files.writes(request.missing, "--missing", OutputKind::plan);
    files.check(o->force);
    const audit::Merged merged = audit::merge(request);
    if (!o->quiet)
      for (const std::string& note : merged.notes)
        print_note("lipscope: " + note);
    print_answer(answer(merged, request));
    return o->strict && merged.missing > 0 ? 3 : 0;
  };
}

}  // namespace lipscope::cli
