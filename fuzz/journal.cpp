// Resumes a journal, adds a record, and resumes it again.

#include "lipscope/io/journal.h"

#include "fuzz/fuzzing.h"

using namespace lipscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const fuzz::MemoryFile file(fuzz::text_of(data, size));
  fuzz::may_refuse([&] {
    std::size_t before = 0;
    {
      Journal journal(file.path(), Journal::Mode::resume);
      before = journal.records().size();
      journal.append({{"n", 1}});
    }
    const auto reopened = [&] {
      try {
        return Journal(file.path(), Journal::Mode::resume).records();
      } catch (const InputError& error) {
        fuzz::hold(false, error.what());
        throw;
      }
    }();
    fuzz::hold(reopened.size() == before + 1, "a record was added");
    fuzz::hold(reopened.back().at("n") == 1, "it is the last");
  });
  return 0;
}
