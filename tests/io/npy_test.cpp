#include "lipscope/io/npy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"
#include "tests/io/test_files.h"

namespace lipscope {
namespace npy_test {

// A file as NumPy lays it out, header as given.
std::string npy(int version, const std::string& header,
                const std::string& data) {
  const std::string length =
      version == 1 ? test::bytes_of(static_cast<std::uint16_t>(header.size()))
                   : test::bytes_of(static_cast<std::uint32_t>(header.size()));
  return std::string("\x93NUMPY") + static_cast<char>(version) + '\0' + length +
         header + data;
}

std::string dictionary(const std::string& descr, const std::string& order,
                       const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + order +
         ", 'shape': " + shape + ", }     \n";
}

template <class Number>
std::string numbers(std::initializer_list<Number> values) {
  std::string bytes;
  for (const Number value : values) bytes += test::bytes_of(value);
  return bytes;
}

const std::string six = numbers({1.0, 2.0, 3.0, 4.0, 5.0, 6.0});
const std::string good = npy(1, dictionary("<f8", "False", "(2, 3)"), six);

class Npy : public testing::Test {
 protected:
  Matrix read(const std::string& content) const {
    test::write_file(path, content);
    return read_npy(path);
  }
  std::string refusal(const std::string& content) const {
    return test::message_of<InputError>([&] { read(content); });
  }

  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "x.npy";
  const Matrix counted{{1, 2, 3}, {4, 5, 6}};
};

TEST_F(Npy, GivesBackWhatWasWritten) {
  const Matrix m = gaussian(7, 5, Rng(1));
  write_npy(path, m);
  EXPECT_EQ(read_npy(path), m);
  EXPECT_EQ(folder.entries(), 1);
}

TEST_F(Npy, IsWrittenAsNumPyWritesIt) {
  write_npy(path, counted);
  std::string header =
      "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
  header.resize(128 - 10 - 1, ' ');
  EXPECT_EQ(test::read_file(path), npy(1, header + "\n", six));
}

TEST_F(Npy, DataIsAlignedForEveryLengthOfTheHeader) {
  for (const Index cols : {Index{1}, Index{10'000'000}, Index{1} << 55}) {
    write_npy(path, Matrix(0, cols));
    EXPECT_EQ(std::filesystem::file_size(path) % 64, 0u) << cols;
    EXPECT_EQ(read_npy(path).cols(), cols);
  }
}

TEST_F(Npy, IsReadInEveryVersion) {
  for (const int version : {1, 2, 3})
    EXPECT_EQ(read(npy(version, dictionary("<f8", "False", "(2, 3)"), six)),
              counted)
        << version;
}

TEST_F(Npy, IsReadInFortranOrder) {
  EXPECT_EQ(read(npy(1, dictionary("<f8", "True", "(3, 2)"), six)),
            counted.transpose());
}

TEST_F(Npy, EmptyMatricesOfHugeLengthCostNothing) {
  for (const std::string order : {"False", "True"})
    for (const std::string shape :
         {"(0, 1000000000000000000)", "(1000000000000000000, 0)"})
      EXPECT_EQ(read(npy(1, dictionary("<f8", order, shape), "")).size(), 0);
}

TEST_F(Npy, NarrowNumbersWidenExactly) {
  EXPECT_EQ(read(npy(1, dictionary("<f4", "False", "(1, 2)"),
                     numbers({0.1f, -2.0f}))),
            (Matrix{{double{0.1f}, -2.0}}));
  EXPECT_EQ(read(npy(1, dictionary("<f2", "False", "(1, 2)"),
                     numbers<std::uint16_t>({0x3555, 0xc000}))),
            (Matrix{{0.333251953125, -2.0}}));
}

TEST_F(Npy, HeaderMayStandInAnyOrderAndQuotes) {
  EXPECT_EQ(read(npy(1,
                     "{\"shape\":(2,3,),'fortran_order' :False\n,"
                     "\"descr\" : \"<f8\"}",
                     six)),
            counted);
}

TEST_F(Npy, RefusesHeadersThatAreNotTheDictionary) {
  const std::string f8 = "'descr': '<f8', ";
  const std::string order = "'fortran_order': False, ";
  const std::string shape = "'shape': (2, 3), ";
  EXPECT_EQ(read(npy(1, "{" + f8 + order + shape + "}", six)), counted);
  for (const std::string& bad : {
           std::string(),
           std::string("{"),
           std::string("{}"),
           "{" + f8 + order + "}",
           "{" + f8 + order + shape + f8 + "}",
           "{" + f8 + order + shape + "'more': 1}",
           "{" + f8 + order + shape + "} x",
           "{" + f8 + order + shape + "}" + std::string(1, '\0'),
           "{" + f8 + order + shape,
           "{" + f8 + order + "'shape': (2 3)}",
           "{" + f8 + order + "'shape': (2, 3}",
           "{" + f8 + order + "'shape': [2, 3]}",
           "{" + f8 + order + "'shape': (2,, 3)}",
           "{" + f8 + order + "'shape': (-2, -3)}",
           "{" + f8 + order + "'shape': (2.0, 3)}",
           "{" + f8 + order + "'shape': (0x2, 3)}",
           "{" + f8 + order + "'shape': (6)}",
           "{" + f8 + order + "'shape': (2, 9223372036854775808)}",
           "{" + f8 + "'fortran_order': 0, " + shape + "}",
           "{'descr': [('a', '<f8')], " + order + shape + "}",
           "{'descr': '<f8, " + order + shape + "}",
           "{'descr': '<f\\x38', " + order + shape + "}",
           "{'descr': None, " + order + shape + "}",
       })
    EXPECT_TRUE(test::says(refusal(npy(1, bad, six)),
                           {"x.npy", "header, byte ", "expected "}))
        << bad;
}

TEST_F(Npy, RefusesOtherNumbersByName) {
  EXPECT_TRUE(
      test::says(refusal(npy(1, dictionary(">f8", "False", "(2, 3)"), six)),
                 {"'>f8'", "little-endian"}));
  EXPECT_TRUE(test::says(
      refusal(npy(1, dictionary("<i8", "False", "(2, 3)"), six)), {"'<i8'"}));
}

TEST_F(Npy, RefusesOtherThanTwoAxesAndSaysTheShape) {
  EXPECT_TRUE(test::says(
      refusal(npy(1, dictionary("<f8", "False", "(6,)"), six)), {"[6]"}));
  EXPECT_TRUE(test::says(
      refusal(npy(1, dictionary("<f8", "False", "()"), numbers({1.0}))),
      {"[]"}));
  EXPECT_TRUE(
      test::says(refusal(npy(1, dictionary("<f8", "False", "(1, 2, 3)"), six)),
                 {"[1, 2, 3]", "3 axes"}));
}

TEST_F(Npy, RefusesBytesMissingOrLeftOver) {
  EXPECT_TRUE(test::says(refusal(good + "x"), {"x.npy", "48 bytes", "49"}));
  EXPECT_TRUE(test::says(refusal(good.substr(0, good.size() - 1)),
                         {"[2, 3]", "48 bytes", "47"}));
}

TEST_F(Npy, RefusesAShapeWhoseProductWrapsAround) {
  // 2^32 · 2^32 · 8 is 0 in 64 bits, and there is no data
  EXPECT_TRUE(test::says(
      refusal(
          npy(1, dictionary("<f8", "False", "(4294967296, 4294967296)"), "")),
      {"2^64"}));
}

TEST_F(Npy, RefusesOtherFilesAndVersions) {
  EXPECT_TRUE(test::says(refusal(""), {"x.npy", "0 bytes"}));
  EXPECT_TRUE(test::says(refusal("PK\x03\x04 an npz"), {"NUMPY"}));
  EXPECT_TRUE(test::says(
      refusal(npy(4, dictionary("<f8", "False", "(2, 3)"), six)), {"4.0"}));
  EXPECT_THROW(read_npy(folder / "absent.npy"), InputError);
  EXPECT_THROW(read_npy(folder.path()), InputError);
}

TEST_F(Npy, RefusesWhatIsNotFiniteAtItsRowAndColumn) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::string data = numbers({1.0, 2.0, 3.0, inf, 5.0, 6.0});
  EXPECT_TRUE(
      test::says(refusal(npy(1, dictionary("<f8", "False", "(2, 3)"), data)),
                 {"x.npy", "row 1, column 0", "inf"}));
  EXPECT_TRUE(
      test::says(refusal(npy(1, dictionary("<f8", "True", "(2, 3)"), data)),
                 {"row 1, column 1", "inf"}));
}

TEST_F(Npy, WritesNothingThatItWouldRefuse) {
  Matrix m = counted;
  m(1, 2) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(
      test::says(test::message_of<RunError>([&] { write_npy(path, m); }),
                 {"x.npy", "row 1, column 2", "nan"}));
  EXPECT_EQ(folder.entries(), 0);
}

TEST_F(Npy, LeavesNothingBehindOnAFullDisk) {
  const test::FileSizeLimit limit(140);
  EXPECT_THROW(write_npy(path, counted), RunError);
  EXPECT_EQ(folder.entries(), 0);
}

TEST_F(Npy, EveryTruncationIsRefused) {
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_THROW(read(good.substr(0, size)), InputError) << size;
}

TEST_F(Npy, NoDamagedByteDoesMoreThanChangeANumberOrBeRefused) {
  for (std::size_t at = 0; at < good.size(); ++at)
    for (const int flip : {1, 4, 16, 128}) {
      std::string damaged = good;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      try {
        EXPECT_EQ(read(damaged).size(), 6) << at;
      } catch (const InputError&) {
      }
    }
}

}  // namespace npy_test
}  // namespace lipscope
