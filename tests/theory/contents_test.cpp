// ARCHITECTURE.md lists the files of theory/ as a table of contents.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "lipscope/theory/bounds.h"
#include "lipscope/theory/certificates.h"

namespace lipscope {
namespace contents_test {

std::string contents() {
  std::ifstream file(std::string(LIPSCOPE_SOURCE) + "/ARCHITECTURE.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  const std::size_t begin = all.find("## The theory, file by file");
  const std::size_t end = all.find("\n## ", begin + 1);
  EXPECT_NE(begin, all.npos);
  return begin == all.npos ? "" : all.substr(begin, end - begin);
}

TEST(TheoryContents, NameEveryFile) {
  const std::string text = contents();
  for (const auto& file : std::filesystem::directory_iterator(
           std::string(LIPSCOPE_SOURCE) + "/lipscope/theory")) {
    if (file.path().extension() != ".h") continue;
    const std::string name = file.path().stem();
    EXPECT_NE(text.find("`" + name + "`"), text.npos) << name;
  }
}

TEST(TheoryContents, NameEveryBound) {
  const std::string text = contents();
  const AttentionWeights w{.query = Matrix::Identity(2, 2),
                           .key = Matrix::Identity(2, 2),
                           .value = Matrix::Identity(2, 2),
                           .output = Matrix::Identity(2, 2)};
  int found = 0;
  for (const Kind kind : all_kinds) {
    AttentionWeights read = w;
    if (kind == Kind::l2) read.key = Matrix();  // tied to the queries
    for (const Mask& mask : {Mask::none, Mask::causal, Mask{.window = 2}})
      for (const Bound& b :
           bounds(read, {.kind = kind, .mask = mask, .n = 3, .radius = 1.0})) {
        EXPECT_NE(text.find("`" + b.name + "`"), text.npos) << b.name;
        ++found;
      }
  }
  EXPECT_GT(found, 12);
  for (const Certificate which : all_certificates)
    EXPECT_NE(text.find("`" + name_of(which) + "`"), text.npos)
        << name_of(which);
}

}  // namespace contents_test
}  // namespace lipscope
