#include "lipscope/io/sha256.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <vector>

#include "lipscope/core/errors.h"
#include "lipscope/io/file_descriptor.h"

namespace lipscope {
namespace {

std::string hexadecimal(const unsigned char* digest, unsigned int size) {
  std::string hex;
  for (unsigned int i = 0; i < size; ++i)
    hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

[[noreturn]] void refuse() { throw RunError("OpenSSL offers no SHA-256"); }

}  // namespace

std::string sha256_file(const std::filesystem::path& path,
                        const std::function<void(std::uint64_t)>& read) {
  const FileDescriptor file = open_regular_file(path);
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> hash(
      EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (!hash || EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr) != 1)
    refuse();
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  std::vector<unsigned char> piece(std::size_t{1} << 22);
  while (true) {
    const ssize_t count = ::read(file.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_open_error(path, errno);
    if (count == 0) break;
    const auto size = static_cast<std::size_t>(count);
    if (EVP_DigestUpdate(hash.get(), piece.data(), size) != 1) refuse();
    if (read) read(size);
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  if (EVP_DigestFinal_ex(hash.get(), digest.data(), &size) != 1) refuse();
  return hexadecimal(digest.data(), size);
}

std::string sha256_text(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(),
                 nullptr) != 1)
    refuse();
  return hexadecimal(digest.data(), size);
}

}  // namespace lipscope
