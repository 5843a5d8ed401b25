// Reads a NumPy file.

#include "lipscope/io/npy.h"

#include "fuzz/fuzzing.h"

using namespace lipscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const fuzz::MemoryFile file(fuzz::text_of(data, size));
  fuzz::may_refuse([&] {
    const Matrix m = read_npy(file.path());
    fuzz::hold(m.allFinite(), "what is read is finite");
    fuzz::hold(static_cast<std::size_t>(m.size()) <= size,
               "no more numbers than bytes");
  });
  return 0;
}
