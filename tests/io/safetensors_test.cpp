#include "lipscope/io/safetensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <type_traits>

#include "lipscope/core/errors.h"
#include "lipscope/core/rng.h"
#include "tests/io/test_files.h"
#include "tests/support/tolerance.h"

namespace lipscope {
namespace safetensors_test {

std::string safetensors(const std::string& header, const std::string& data) {
  return test::bytes_of(static_cast<std::uint64_t>(header.size())) + header +
         data;
}

// one entry of a header: "name":{...}
std::string entry(const std::string& name, const std::string& dtype,
                  const std::string& shape, const std::string& offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})",
                     name, dtype, shape, offsets);
}

std::string object(std::initializer_list<std::string> entries) {
  return fmt::format("{{{}}}", fmt::join(entries, ","));
}

template <class Number>
std::string numbers(std::initializer_list<Number> values) {
  std::string bytes;
  for (const Number value : values) bytes += test::bytes_of(value);
  return bytes;
}

const double inf = std::numeric_limits<double>::infinity();

class Safetensors : public testing::Test {
 protected:
  SafetensorsFile open(const std::string& header,
                       const std::string& data) const {
    test::write_file(path, safetensors(header, data));
    return SafetensorsFile(path);
  }
  std::string refusal_of_file(const std::string& content) const {
    test::write_file(path, content);
    return test::message_of<InputError>([&] { SafetensorsFile file(path); });
  }
  std::string refusal(const std::string& header,
                      const std::string& data) const {
    return refusal_of_file(safetensors(header, data));
  }
  // of a file with one tensor, "w", and 8 bytes of data
  std::string refusal_of_tensor(const std::string& tensor) const {
    return refusal(object({fmt::format("\"w\":{}", tensor)}),
                   std::string(8, '\0'));
  }

  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "m.safetensors";
};

static_assert(!std::is_copy_constructible_v<SafetensorsFile>);
static_assert(std::is_nothrow_move_constructible_v<MappedFile>);

TEST_F(Safetensors, GiveBackWhatWasWritten) {
  const std::map<std::string, Matrix> tensors = {
      {"q", gaussian(4, 3, Rng(1))},
      {"k", gaussian(1, 7, Rng(2))},
      {"\xce\xa3 \"odd\"\n", gaussian(2, 2, Rng(3))}};
  write_safetensors(path, tensors);
  const SafetensorsFile file(path);
  EXPECT_EQ(file.names(),
            (std::vector<std::string>{"k", "q", "\xce\xa3 \"odd\"\n"}));
  for (const auto& [name, m] : tensors) EXPECT_EQ(file.matrix(name), m) << name;
  EXPECT_EQ(file.dtype("q"), "F64");
  EXPECT_EQ(file.shape("q"), (TensorShape{4, 3}));
  EXPECT_EQ(folder.entries(), 1);
}

TEST_F(Safetensors, AreWrittenInF32WithItsRounding) {
  const Matrix m = gaussian(4, 3, Rng(1));
  write_safetensors(path, {{"q", m}}, "F32");
  const SafetensorsFile file(path);
  EXPECT_EQ(file.dtype("q"), "F32");
  EXPECT_EQ(file.matrix_as<float>("q"), m.cast<float>());
  EXPECT_EQ(file.matrix("q"), m.cast<float>().cast<double>());
}

TEST_F(Safetensors, GiveRowsByThemselves) {
  const Matrix m = gaussian(4, 3, Rng(1));
  write_safetensors(path, {{"a", gaussian(2, 2, Rng(2))}, {"q", m}});
  const SafetensorsFile file(path);
  EXPECT_EQ(file.rows_as<double>("q", 1, 2), m.middleRows(1, 2));
  EXPECT_EQ(file.rows_as<float>("q", 3, 1), m.bottomRows(1).cast<float>());
  EXPECT_EQ(file.rows_as<double>("q", 4, 0).rows(), 0);
  EXPECT_THROW(file.rows_as<double>("q", 3, 2), std::invalid_argument);
  EXPECT_THROW(file.rows_as<double>("q", -1, 2), std::invalid_argument);
  EXPECT_THROW(file.rows_as<double>("q", 1, -1), std::invalid_argument);
}

TEST_F(Safetensors, SayWhereInTheTensorARowIsNotFinite) {
  const SafetensorsFile file =
      open(object({entry("bad", "F64", "[3,2]", "[0,48]")}),
           numbers({1.0, 2.0, 3.0, 4.0, 5.0, std::nan("")}));
  EXPECT_EQ(file.rows_as<double>("bad", 0, 2)(1, 1), 4.0);
  EXPECT_TRUE(test::says(
      test::message_of<InputError>([&] { file.rows_as<double>("bad", 1, 2); }),
      {"entry 5 of 6", "row 2, column 1"}));
}

TEST_F(Safetensors, AreWrittenByteForByteAsTheFormatSays) {
  write_safetensors(path, {{"a", Matrix{{1.0, 2.0}}}, {"b", Matrix{{3.0}}}});
  std::string header = object({entry("a", "F64", "[1,2]", "[0,16]"),
                               entry("b", "F64", "[1,1]", "[16,24]")});
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(test::read_file(path),
            safetensors(header, numbers({1.0, 2.0, 3.0})));
}

TEST_F(Safetensors, MayHoldNothing) {
  write_safetensors(path, {});
  EXPECT_TRUE(SafetensorsFile(path).names().empty());
  EXPECT_TRUE(open("{\"__metadata__\":{}}", "").names().empty());
}

TEST_F(Safetensors, EveryFloatDtypeWidensExactly) {
  const SafetensorsFile file =
      open(object({entry("f16", "F16", "[2]", "[0,4]"),
                   entry("bf16", "BF16", "[1,2]", "[4,8]"),
                   entry("f32", "F32", "[2,1]", "[8,16]"),
                   entry("f64", "F64", "[1]", "[16,24]"),
                   R"("__metadata__":{"format":"pt"})"}) +
               "  ",
           numbers<std::uint16_t>({0x3555, 0xc000, 0x3f80, 0xc049}) +
               numbers({0.1f, -2.0f}) + numbers({0.1}));
  EXPECT_EQ(file.matrix("f16"), (Matrix{{0.333251953125, -2.0}}));
  EXPECT_EQ(file.matrix("bf16"), (Matrix{{1.0, -3.140625}}));
  EXPECT_EQ(file.matrix("f32"), (Matrix{{double{0.1f}}, {-2.0}}));
  EXPECT_EQ(file.matrix("f64"), (Matrix{{0.1}}));
  EXPECT_FALSE(file.contains("__metadata__"));
}

TEST_F(Safetensors, StayReadableWhenMoved) {
  SafetensorsFile first =
      open(object({entry("w", "F64", "[1]", "[0,8]")}), numbers({5.0}));
  const SafetensorsFile second = std::move(first);
  EXPECT_EQ(second.matrix("w")(0, 0), 5.0);
}

TEST_F(Safetensors, OtherDtypesAreListedButNotRead) {
  const SafetensorsFile file =
      open(object({entry("ids", "I64", "[1]", "[0,8]"),
                   entry("f8", "F8_E4M3", "[2]", "[8,10]"),
                   entry("f4", "F4", "[4]", "[10,12]"),
                   entry("of tomorrow", "Q7", "[3]", "[12,13]")}),
           std::string(13, '\0'));
  EXPECT_EQ(file.shape("ids"), (TensorShape{1}));
  for (const std::string name : {"ids", "f8", "f4", "of tomorrow"})
    EXPECT_TRUE(test::says(
        test::message_of<InputError>([&] { file.matrix(name); }),
        {"m.safetensors", name, file.dtype(name), "F16, BF16, F32 and F64"}));
}

TEST_F(Safetensors, EmptyTensorsAreAllowedAnywhere) {
  const SafetensorsFile file = open(object({entry("x", "F64", "[0,3]", "[0,0]"),
                                            entry("w", "F64", "[1]", "[0,8]"),
                                            entry("z", "F64", "[0]", "[8,8]")}),
                                    numbers({5.0}));
  EXPECT_EQ(file.matrix("x").rows(), 0);
  EXPECT_EQ(file.matrix("x").cols(), 3);
  EXPECT_EQ(file.matrix("z").cols(), 0);
}

TEST_F(Safetensors, EmptyTensorsOfHugeLengthCostNothing) {
  const SafetensorsFile file =
      open(object({entry("wide", "F64", "[0,1000000000000000000]", "[0,0]"),
                   entry("high", "F64", "[1000000000000000000,0]", "[0,0]")}),
           "");
  EXPECT_EQ(file.matrix("wide").cols(), 1'000'000'000'000'000'000);
  EXPECT_EQ(file.matrix("high").rows(), 1'000'000'000'000'000'000);
}

TEST_F(Safetensors, MissingTensorIsRefusedWithTheNamesThereAre) {
  const SafetensorsFile file =
      open(object({entry("w", "F64", "[1]", "[0,8]")}), numbers({5.0}));
  for (const std::string& message :
       {test::message_of<InputError>([&] { file.matrix("q"); }),
        test::message_of<InputError>([&] { file.shape("q"); }),
        test::message_of<InputError>([&] { file.dtype("q"); })})
    EXPECT_TRUE(test::says(message, {"m.safetensors", "\"q\"", "\"w\""}));
}

TEST_F(Safetensors, AtMostTwelveNamesAreListed) {
  std::map<std::string, Matrix> tensors;
  for (int i = 10; i < 30; ++i) tensors[std::to_string(i)] = Matrix{{1.0}};
  write_safetensors(path, tensors);
  const SafetensorsFile file(path);
  const std::string message =
      test::message_of<InputError>([&] { file.matrix("q"); });
  EXPECT_TRUE(test::says(message, {"\"10\"", "\"21\"", "and 8 more"}));
  EXPECT_FALSE(test::says(message, {"\"22\""}));
}

TEST_F(Safetensors, OnlyOneOrTwoAxesMakeAMatrix) {
  const SafetensorsFile file =
      open(object({entry("scalar", "F64", "[]", "[0,8]"),
                   entry("cube", "F64", "[1,1,1]", "[8,16]")}),
           numbers({1.0, 2.0}));
  EXPECT_TRUE(
      test::says(test::message_of<InputError>([&] { file.matrix("scalar"); }),
                 {"\"scalar\"", "[]"}));
  EXPECT_TRUE(
      test::says(test::message_of<InputError>([&] { file.matrix("cube"); }),
                 {"\"cube\"", "[1, 1, 1]"}));
}

TEST_F(Safetensors, RefuseWhatIsNotFiniteAtItsPlace) {
  const SafetensorsFile file =
      open(object({entry("good", "F64", "[1]", "[0,8]"),
                   entry("bad", "F64", "[2,3]", "[8,56]"),
                   entry("half", "F16", "[2]", "[56,60]")}),
           numbers({1.0, 1.0, 2.0, 3.0, 4.0, -inf, 6.0}) +
               numbers<std::uint16_t>({0x3c00, 0x7e00}));
  EXPECT_TRUE(test::says(
      test::message_of<InputError>([&] { file.matrix("bad"); }),
      {"m.safetensors", "\"bad\"", "entry 4 of 6", "row 1, column 1", "-inf"}));
  EXPECT_TRUE(
      test::says(test::message_of<InputError>([&] { file.matrix("half"); }),
                 {"\"half\"", "row 0, column 1", "nan"}));
  EXPECT_EQ(file.matrix("good")(0, 0), 1.0);
}

TEST_F(Safetensors, RefuseAsFloatWhatOnlyADoubleCanHold) {
  write_safetensors(path, {{"w", Matrix{{1.0, 1e300}}}});
  const SafetensorsFile file(path);
  EXPECT_EQ(file.matrix("w")(0, 1), 1e300);
  EXPECT_TRUE(test::says(
      test::message_of<InputError>([&] { file.matrix_as<float>("w"); }),
      {"\"w\"", "column 1", "1e+300", "float"}));
}

TEST_F(Safetensors, RefuseAFileTooShortForItsHeader) {
  EXPECT_TRUE(test::says(refusal_of_file(""), {"m.safetensors", "0 bytes"}));
  EXPECT_TRUE(test::says(refusal_of_file("1234567"), {"7 bytes"}));
  EXPECT_TRUE(
      test::says(refusal_of_file(test::bytes_of(std::uint64_t{3}) + "{}"),
                 {"header of 3 bytes", "only 2"}));
}

TEST_F(Safetensors, RefuseAHeaderLengthBeyondAllMeasure) {
  for (const std::uint64_t length :
       {std::uint64_t{100'000'001}, std::uint64_t{1} << 63,
        std::numeric_limits<std::uint64_t>::max(),
        std::numeric_limits<std::uint64_t>::max() - 7})
    EXPECT_TRUE(test::says(refusal_of_file(test::bytes_of(length) + "{}"),
                           {std::to_string(length), "100000000"}));
}

TEST_F(Safetensors, TellAGitLfsPointerForWhatItIs) {
  EXPECT_TRUE(test::says(
      refusal_of_file("version https://git-lfs.github.com/spec/v1\n"),
      {"Git LFS"}));
}

TEST_F(Safetensors, RefuseAHeaderThatIsNotJson) {
  for (const std::string header :
       {"", "x", "[]", "null", " {}", "{", "{}x", "{\"w\":}", "{'w':1}",
        "{\"w\":1e999}", "\xef\xbb\xbf{}"})
    EXPECT_TRUE(test::says(refusal(header, ""), {"m.safetensors: header: "}))
        << header;
  // not UTF-8: a stray byte, an overlong slash, half a surrogate pair
  for (const std::string name : {"\xff", "\xc0\xaf", "\xed\xa0\x80"})
    EXPECT_TRUE(test::says(
        refusal(object({entry(name, "U8", "[0]", "[0,0]")}), ""), {"UTF-8"}));
  // the parser would stop at the zero and never see the rest
  EXPECT_TRUE(test::says(refusal("{}" + std::string(1, '\0') + "junk", ""),
                         {"byte 2 of 7 is zero"}));
}

TEST_F(Safetensors, RefuseAKeyThatStandsTwice) {
  const std::string w = entry("w", "F64", "[1]", "[0,8]");
  EXPECT_TRUE(
      test::says(refusal(object({w, w}), numbers({1.0})), {"\"w\"", "twice"}));
  EXPECT_TRUE(test::says(
      refusal_of_tensor("{\"dtype\":\"F64\",\"shape\":[1],\"shape\":[1],"
                        "\"data_offsets\":[0,8]}"),
      {"\"shape\"", "twice"}));
  // the same name in two objects is no repetition, an escaped one is
  EXPECT_NO_THROW(
      open(object({R"("__metadata__":{"w":""})", w}), numbers({1.0})));
  EXPECT_TRUE(
      test::says(refusal(object({w, entry("\\u0077", "F64", "[1]", "[0,8]")}),
                         numbers({1.0})),
                 {"twice"}));
}

TEST_F(Safetensors, RefuseAHeaderNestedVeryDeep) {
  EXPECT_TRUE(test::says(refusal("{\"w\":" + std::string(1'000'000, '['), ""),
                         {"deep"}));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_TRUE(test::says(refusal(objects, ""), {"deep"}));
}

TEST_F(Safetensors, RefuseATensorThatIsNotDescribed) {
  for (const std::string tensor :
       {"1", "[]", "{}", "{\"dtype\":\"F64\"}",
        "{\"dtype\":\"F64\",\"shape\":[1]}",
        "{\"dtype\":\"F64\",\"data_offsets\":[0,8]}",
        "{\"shape\":[1],\"data_offsets\":[0,8]}",
        "{\"dtype\":64,\"shape\":[1],\"data_offsets\":[0,8]}"})
    EXPECT_TRUE(test::says(refusal_of_tensor(tensor),
                           {"m.safetensors", "tensor \"w\""}))
        << tensor;
}

TEST_F(Safetensors, RefuseLengthsThatAreNotCounts) {
  for (const std::string shape :
       {"[-1]", "[-0]", "[1.0]", "[1e0]", "[\"1\"]", "[null]", "[[1]]", "1",
        "{}", "[9223372036854775808]", "[18446744073709551616]",
        "[99999999999999999999999999]"})
    EXPECT_TRUE(test::says(
        refusal(object({entry("w", "F64", shape, "[0,8]")}), numbers({1.0})),
        {"\"w\"", "shape is ", "list of integers"}))
        << shape;
  for (const std::string offsets : {"[-8,0]", "[0,8.0]", "\"0\"", "[0,null]"})
    EXPECT_TRUE(test::says(
        refusal(object({entry("w", "F64", "[1]", offsets)}), numbers({1.0})),
        {"\"w\"", "data_offsets is "}))
        << offsets;
}

TEST_F(Safetensors, RefuseOffsetsThatAreNotAnInterval) {
  for (const std::string offsets : {"[]", "[8]", "[0,4,8]", "[8,0]"})
    EXPECT_TRUE(test::says(
        refusal(object({entry("w", "F64", "[1]", offsets)}), numbers({1.0})),
        {"\"w\"", "data_offsets is ", "begin <= end"}))
        << offsets;
}

TEST_F(Safetensors, RefuseAShapeWhoseProductWrapsAround) {
  // 2^32 · 2^32 entries are none in 64 bits, which the offsets would confirm
  EXPECT_TRUE(test::says(
      refusal(object({entry("w", "F64", "[4294967296,4294967296]", "[0,0]")}),
              ""),
      {"\"w\"", "[4294967296, 4294967296]"}));
  // 2^61 entries fit, their 2^64 bytes do not
  EXPECT_TRUE(test::says(
      refusal(object({entry("w", "F64", "[2305843009213693952]", "[0,0]")}),
              ""),
      {"\"w\"", "[2305843009213693952]"}));
}

TEST_F(Safetensors, RefuseASizeThatDoesNotFollowFromTheShape) {
  EXPECT_TRUE(test::says(
      refusal(object({entry("w", "F32", "[3]", "[0,8]")}), numbers({1.0})),
      {"\"w\"", "[3]", "F32", "[0, 8]", "96 bits", "8 bytes"}));
  // three entries of four bits do not fill bytes
  EXPECT_TRUE(test::says(
      refusal(object({entry("w", "F4", "[3]", "[0,1]")}), "x"), {"\"w\""}));
}

TEST_F(Safetensors, RefuseOverlappingTensors) {
  EXPECT_TRUE(test::says(refusal(object({entry("a", "F32", "[2]", "[0,8]"),
                                         entry("b", "F32", "[2]", "[4,12]")}),
                                 std::string(12, '\0')),
                         {"\"b\"", "byte 4", "\"a\"", "ends at 8"}));
  EXPECT_TRUE(test::says(refusal(object({entry("a", "F32", "[2]", "[0,8]"),
                                         entry("b", "F32", "[2]", "[0,8]")}),
                                 std::string(8, '\0')),
                         {"\"b\"", "byte 0", "\"a\""}));
  EXPECT_TRUE(
      test::says(refusal(object({entry("a", "F32", "[2]", "[0,8]"),
                                 entry("empty", "F32", "[0]", "[4,4]")}),
                         std::string(8, '\0')),
                 {"\"empty\"", "byte 4"}));
}

TEST_F(Safetensors, RefuseHolesAndBytesLeftOver) {
  EXPECT_TRUE(test::says(refusal(object({entry("a", "F32", "[1]", "[0,4]"),
                                         entry("b", "F32", "[1]", "[8,12]")}),
                                 std::string(12, '\0')),
                         {"\"b\"", "bytes 4 to 8"}));
  EXPECT_TRUE(test::says(refusal(object({entry("a", "F32", "[1]", "[4,8]")}),
                                 std::string(8, '\0')),
                         {"\"a\"", "bytes 0 to 4"}));
  EXPECT_TRUE(test::says(refusal(object({entry("a", "F32", "[1]", "[0,4]")}),
                                 std::string(7, '\0')),
                         {"7 bytes", "take 4", "3 bytes too many"}));
  EXPECT_TRUE(test::says(refusal("{}", "x"), {"1 bytes too many"}));
}

TEST_F(Safetensors, RefuseDataCutShort) {
  EXPECT_TRUE(test::says(refusal(object({entry("a", "F32", "[1]", "[0,4]"),
                                         entry("b", "F32", "[2]", "[4,12]")}),
                                 std::string(11, '\0')),
                         {"\"b\"", "12", "11", "cut short"}));
}

TEST_F(Safetensors, RefuseMetadataThatIsNotStrings) {
  for (const std::string metadata : {"1", "[]", "{\"a\":1}", "{\"a\":{}}"})
    EXPECT_TRUE(test::says(
        refusal(object({fmt::format("\"__metadata__\":{}", metadata)}), ""),
        {"__metadata__"}))
        << metadata;
}

TEST_F(Safetensors, MessagesAreShortAndAsciiWhateverTheNames) {
  // \x1b would reach the terminal
  const std::string name = "\\u001b[31m\xce\xa3" + std::string(10000, 'x');
  const std::string message =
      refusal(object({entry(name, "F32", "[3]", "[0,8]")}), "");
  EXPECT_TRUE(test::says(message, {"\\u001b", "\\u03a3", "..."}));
  EXPECT_LT(message.size(), 500u);
}

TEST_F(Safetensors, RefuseWhatIsNotAFile) {
  EXPECT_TRUE(test::says(
      test::message_of<InputError>([&] { SafetensorsFile(folder / "absent"); }),
      {"absent", "No such file"}));
  EXPECT_THROW(SafetensorsFile(folder.path()), InputError);
}

TEST_F(Safetensors, WriteNothingThatWouldBeRefused) {
  const auto refused = [&](double number, std::string_view dtype) {
    return test::message_of<RunError>([&] {
      write_safetensors(path, {{"w", Matrix{{1.0}, {number}}}}, dtype);
    });
  };
  EXPECT_TRUE(test::says(refused(inf, "F64"),
                         {"m.safetensors", "\"w\"", "row 1, column 0", "inf"}));
  EXPECT_TRUE(test::says(refused(1e300, "F32"), {"\"w\"", "1e+300", "F32"}));
  EXPECT_EQ(folder.entries(), 0);
}

TEST_F(Safetensors, WriterHoldsItsCallerToNamesAndDtypes) {
  const Matrix one{{1.0}};
  EXPECT_THROW(write_safetensors(path, {{"w", one}}, "F16"),
               std::invalid_argument);
  EXPECT_THROW(write_safetensors(path, {{"__metadata__", one}}),
               std::invalid_argument);
  EXPECT_THROW(write_safetensors(path, {{"\xff", one}}), std::invalid_argument);
  EXPECT_THROW(write_safetensors(folder / "absent/m", {{"w", one}}),
               InputError);
}

TEST_F(Safetensors, LeaveNothingBehindOnAFullDisk) {
  const test::FileSizeLimit limit(100);
  EXPECT_THROW(write_safetensors(path, {{"w", gaussian(9, 9, Rng(1))}}),
               RunError);
  EXPECT_EQ(folder.entries(), 0);
}

TEST_F(Safetensors, EveryTruncationIsRefused) {
  const std::string good = safetensors(
      object({entry("a", "F32", "[2,1]", "[0,8]")}), numbers({1.0f, 2.0f}));
  for (std::size_t size = 0; size < good.size(); ++size)
    refusal_of_file(good.substr(0, size));
}

TEST_F(Safetensors, NoDamagedByteDoesMoreThanChangeAValueOrBeRefused) {
  const std::string good =
      safetensors(object({entry("a", "F32", "[2,1]", "[0,8]"),
                          entry("b", "F16", "[3]", "[8,14]"),
                          R"("__metadata__":{"format":"pt"})"}),
                  numbers({1.0f, 2.0f}) + numbers<std::uint16_t>({0, 1, 2}));
  for (std::size_t at = 0; at < good.size(); ++at)
    for (int byte = 0; byte < 256; byte += 37) {
      std::string damaged = good;
      damaged[at] = static_cast<char>(byte);
      test::write_file(path, damaged);
      try {
        const SafetensorsFile file(path);
        for (const std::string& name : file.names()) file.matrix(name);
      } catch (const InputError&) {
      }
    }
}

TEST_F(Safetensors, OfRealModelsAreRead) {
  const char* named = std::getenv("LIPSCOPE_MODELS");
  const std::filesystem::path models =
      named ? std::filesystem::path(named)
            : std::filesystem::path(__FILE__).parent_path() /
                  "../../../shared/models";
  if (!std::filesystem::exists(models / "minilm-l6-v2-fp16"))
    GTEST_SKIP() << "no models in " << models;
  const SafetensorsFile file(models /
                             "minilm-l6-v2-fp16/model.fp16.safetensors");
  for (const std::string& name : file.names())
    if (file.dtype(name) == "F16") {
      EXPECT_EQ(file.matrix(name).cols(), file.shape(name).back()) << name;
    }
  // read with Python's struct module, and summed exactly
  const Matrix query =
      file.matrix("encoder.layer.0.attention.self.query.weight");
  EXPECT_EQ(query(0, 0), -0.1485595703125);
  EXPECT_EQ(query(1, 0), 0.035980224609375);
  EXPECT_EQ(query(383, 383), -0.08526611328125);
  EXPECT_NEAR(query.sum(), 13.536164045333862,
              query.norm() * test::rounding<double>(query.size()));
}

}  // namespace safetensors_test
}  // namespace lipscope
