// Opens a safetensors file and reads every tensor in it.

#include "lipscope/io/safetensors.h"

#include "fuzz/fuzzing.h"

using namespace lipscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const fuzz::MemoryFile file(fuzz::text_of(data, size));
  fuzz::may_refuse([&] {
    const SafetensorsFile tensors(file.path());
    for (const std::string& name : tensors.names()) {
      fuzz::may_refuse([&] {
        const Matrix m = tensors.matrix(name);
        fuzz::hold(m.allFinite(), "what is read is finite");
        fuzz::hold(static_cast<std::size_t>(m.size()) <= size,
                   "no more numbers than bytes");
      });
      fuzz::may_refuse([&] { tensors.matrix_as<float>(name); });
    }
  });
  return 0;
}
