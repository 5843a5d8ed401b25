#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "lipscope/core/errors.h"
#include "lipscope/text/tokenizer.h"
#include "lipscope/text/words.h"

namespace lipscope::fuzz {

/// A file that lives in memory, for readers that want a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view content)
      : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    const auto size = static_cast<ssize_t>(content.size());
    if (fd_ < 0 || ::write(fd_, content.data(), content.size()) != size) {
      std::perror("memfd");
      std::abort();
    }
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::filesystem::path path() const {
    return "/proc/self/fd/" + std::to_string(fd_);
  }

 private:
  int fd_;
};

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Ends the program, which is how libFuzzer is told of a find.
inline void hold(bool claim, const char* what) {
  if (claim) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

/// Calls the reader. It may refuse what it is given, by InputError; any other
/// exception goes through, and is a find.
template <class Read>
void may_refuse(Read&& read) {
  try {
    read();
  } catch (const InputError&) {
  }
}

/// What holds of the tokens of every text, whatever the vocabulary.
inline void check_tokens(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<Token> tokens = tokenizer.encode(text);
  std::string rebuilt;
  for (const std::string& word : words_of(text, tokens)) rebuilt += word;
  hold(tokens.empty() || rebuilt == text, "its pieces end to end are the text");
  for (const Token& token : tokens) {
    hold(token.id >= 0 && token.id < tokenizer.vocabulary_size(),
         "an id is in the vocabulary");
    hold(token.begin <= token.end && token.end <= text.size(),
         "a token stands within the text");
  }
}

}  // namespace lipscope::fuzz
