#include "lipscope/io/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "lipscope/core/errors.h"
#include "lipscope/io/mapped_file.h"

namespace lipscope {

std::string sha256_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  return sha256_text({reinterpret_cast<const char*>(file.bytes().data()),
                      file.bytes().size()});
}

std::string sha256_text(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(),
                 nullptr) != 1)
    throw RunError("OpenSSL offers no SHA-256");

  std::string hex;
  for (unsigned int i = 0; i < size; ++i)
    hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

}  // namespace lipscope
