#pragma once

#include "tests/model/folders.h"
#include "tests/text/vocabularies.h"

namespace lipscope::test {

/// A small pretrained model whose tokens are bytes.
inline void write_byte_model(const std::filesystem::path& folder,
                             Architecture architecture) {
  ModelConfig config = small_config(architecture);
  config.vocabulary = 256;
  write_model(folder, config, random_tensors(config, 3));
  write_file(
      folder / "tokenizer.json",
      byte_pair_json(byte_vocabulary({}), nlohmann::json::array()).dump());
}

}  // namespace lipscope::test
