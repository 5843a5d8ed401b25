// Audit a model: measure every head at windows of a text, from below with a
// witness and from above with a proof; go on after a crash; draw the page.
//
//   example_3_audit_a_folder MODEL_DIR TEXT
//
// Without a folder a small random layer is audited.

#include <fmt/core.h>
#include <lipscope/lipscope.h>

using namespace lipscope;

int main(int argc, char** argv) {
  audit::MeasureRequest request;
  if (argc == 3) {
    request.source.model = argv[1];
    request.source.text = argv[2];
  } else {
    request.source.random = "d=32,heads=4,scale=0.3";
  }
  request.source.lengths = "8,16,32";
  request.source.samples = 2;
  request.selection.heads = "each";

  // what the file has already is not measured again
  Records records({.file = "audit.jsonl", .resume = true});
  const audit::Outcome outcome = audit::measure(request, records);
  const audit::WrittenPage page =
      audit::write_page({.files = {"audit.jsonl"}, .out = "audit.html"});

  double most = 0.0;
  for (const auto& row : records.rows())
    most = std::max(most, row["lower"].get<double>());
  fmt::print(
      "{} measurements, the largest constant {:.6g}; audit.html: {} bytes\n",
      records.rows().size(), most, page.bytes);
  return outcome.converged && page.contradictions == 0 ? 0 : 1;
}
