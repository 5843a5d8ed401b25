// Models whose tensors somebody else has in memory.

#include <gtest/gtest.h>

#include <limits>

#include "lipscope/core/errors.h"
#include "lipscope/model/pass.h"
#include "tests/model/folders.h"

namespace lipscope {
namespace tensors_in_memory_test {

using test::TemporaryFolder;

// the bytes of tensors, and views of them
struct Memory {
  std::map<std::string, std::string> bytes;
  std::shared_ptr<TensorsInMemory> tensors =
      std::make_shared<TensorsInMemory>();

  Memory(const test::Tensors& all, const std::string& dtype,
         NumberFormat format, const std::string& prefix = "") {
    for (const auto& [name, t] : all) {
      bytes[name] = test::encoded(t.values, dtype);
      tensors->tensors[prefix + name] = {
          .format = format,
          .shape = t.shape,
          .bytes = std::as_bytes(std::span(bytes[name])),
          .place = "in memory: tensor " + name};
    }
    tensors->sha256 = "abc";
  }
};

TEST(TensorsInMemory, AreTheModelOfAFolder) {
  for (const Architecture architecture :
       {Architecture::gpt2, Architecture::bert, Architecture::llama}) {
    const ModelConfig config = test::small_config(architecture);
    const test::Tensors all = test::random_tensors(config, 1);
    const TemporaryFolder folder;
    test::write_model(folder.path(), config, all);
    const Model stored = load_model(folder.path());
    const std::vector<Index> ids = {3, 1, 4, 1, 5};
    const Matrix expected = ForwardPass<double>(stored, {})(ids).last;
    for (const auto& [dtype, format] : {std::pair("F16", NumberFormat::f16),
                                        {"BF16", NumberFormat::bf16},
                                        {"F32", NumberFormat::f32},
                                        {"F64", NumberFormat::f64}})
      for (const std::string prefix : {"", "of the class"}) {
        const Memory memory(all, dtype, format,
                            prefix.empty() ? ""
                            : architecture == Architecture::gpt2
                                ? "transformer."
                            : architecture == Architecture::bert ? "bert."
                                                                 : "model.");
        const Model model = load_model({config, memory.tensors});
        EXPECT_TRUE(missing_tensors(model).empty());
        EXPECT_EQ(model.parameters.sha256(), "abc");
        EXPECT_EQ(ForwardPass<double>(model, {})(ids).last, expected);
      }
  }
}

TEST(TensorsInMemory, AreReadWhenTheyAreAskedFor) {
  const ModelConfig config = test::small_config(Architecture::gpt2);
  Memory memory(test::random_tensors(config, 1), "F32", NumberFormat::f32);
  const Model model = load_model({config, memory.tensors});
  const TensorSpec positions{"wpe.weight", {10, 8}};
  const float seven = 7;
  std::memcpy(memory.bytes["wpe.weight"].data() + 4 * 8 * 2, &seven, 4);
  EXPECT_EQ(model.parameters.rows<float>(positions, 2, 1)(0, 0), 7);
}

TEST(TensorsInMemory, AreRefusedWithTheirNames) {
  const ModelConfig config = test::small_config(Architecture::gpt2);
  Memory memory(test::random_tensors(config, 1), "F32", NumberFormat::f32);
  const Model model = load_model({config, memory.tensors});
  const auto said = [&](const TensorSpec& tensor) {
    return test::message_of<InputError>(
        [&] { model.parameters.matrix(tensor); });
  };
  EXPECT_EQ(said({"wpe.bias", {8}}),
            "in memory: no tensor is called \"wpe.bias\"");
  EXPECT_EQ(said({"wpe.weight", {10, 9}}),
            "in memory: tensor wpe.weight: has shape [10, 8], the "
            "configuration makes it [10, 9]");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(memory.bytes["wpe.weight"].data() + 4 * 9, &nan, 4);
  EXPECT_EQ(said({"wpe.weight", {10, 8}}),
            "in memory: tensor wpe.weight: entry 9 of 80 (row 1, column 1, "
            "counted from 0) is nan, expected a finite number");
}

}  // namespace tensors_in_memory_test
}  // namespace lipscope
