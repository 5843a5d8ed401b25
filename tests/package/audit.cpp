// The program of docs/cpp.md: audits a folder and a text, or without them a
// random layer, and goes on where it was when it is started again.
#include <lipscope/lipscope.h>

#include <cstdio>

int main(int argc, char** argv) {
  using namespace lipscope;
  audit::MeasureRequest request;
  request.source.model = argc == 3 ? argv[1] : "";
  request.source.text = argc == 3 ? argv[2] : "";
  request.source.random = argc == 3 ? "" : "d=64,heads=4,scale=0.3";
  request.source.lengths = "8,16,32,64";
  request.selection.heads = "each";
  Index found = 0;
  Records records({.file = "audit.jsonl",
                   .resume = true,
                   .counted = [&](Index known, Index) { found = known; }});
  audit::measure(request, records);
  audit::write_page({.files = {"audit.jsonl"}, .out = "report.html"});
  std::printf("%zu rows, %td of them from before\n", records.rows().size(),
              found);
}
