#include "lipscope/core/thread_scratch.h"

#include <array>
#include <cstdlib>
#include <memory>
#include <new>

namespace lipscope {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t uses = 4;  // of the enum

struct Kept {
  std::unique_ptr<void, decltype(&std::free)> data{nullptr, &std::free};
  std::size_t bytes = 0;
};

}  // namespace

void* thread_scratch(Scratch use, std::size_t bytes) {
  thread_local std::array<Kept, uses> all;
  Kept& kept = all.at(static_cast<std::size_t>(use));
  if (bytes > kept.bytes) {
    kept.data.reset();  // not both side by side
    kept.bytes = 0;
    const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
    kept.data.reset(std::aligned_alloc(alignment, whole));
    if (!kept.data) throw std::bad_alloc();
    kept.bytes = bytes;
  }
  return kept.data.get();
}

}  // namespace lipscope
