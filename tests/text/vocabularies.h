#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "lipscope/text/token.h"
#include "lipscope/text/utf8.h"
#include "tests/io/test_files.h"

namespace lipscope {

/// So that a failing test shows tokens and not their bytes.
inline void PrintTo(const Token& token, std::ostream* out) {
  *out << fmt::format("{}[{},{})", token.id, token.begin, token.end);
}

namespace test {

/// GPT-2's spelling of a byte, from the description in [Radford19]'s code.
inline std::string spelled_byte(int byte) {
  std::vector<int> hidden;
  for (int b = 0; b < 256; ++b)
    if (b <= 32 || (b >= 127 && b <= 160) || b == 173) hidden.push_back(b);
  for (std::size_t i = 0; i < hidden.size(); ++i)
    if (hidden[i] == byte) return utf8_of(static_cast<char32_t>(256 + i));
  return utf8_of(static_cast<char32_t>(byte));
}

inline std::string spelled(const std::string& bytes) {
  std::string all;
  for (const char b : bytes) all += spelled_byte(static_cast<unsigned char>(b));
  return all;
}

/// {piece: id} of all bytes, with their values as ids, and of `more` after it.
inline nlohmann::json byte_vocabulary(const std::vector<std::string>& more) {
  nlohmann::json vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary[spelled_byte(byte)] = byte;
  int id = 256;
  for (const std::string& piece : more) vocabulary[spelled(piece)] = id++;
  return vocabulary;
}

/// A tokenizer.json of the BPE kind.
inline nlohmann::json byte_pair_json(const nlohmann::json& vocabulary,
                                     const nlohmann::json& merges) {
  return {
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}};
}

/// A tokenizer.json of the WordPiece kind, ids in the order of the pieces.
inline nlohmann::json word_piece_json(const std::vector<std::string>& pieces) {
  nlohmann::json vocabulary;
  for (const std::string& piece : pieces) {
    const std::size_t id = vocabulary.size();
    vocabulary[piece] = id;
  }
  return {{"normalizer",
           {{"type", "BertNormalizer"},
            {"clean_text", true},
            {"handle_chinese_chars", true},
            {"strip_accents", nullptr},
            {"lowercase", true}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", "[UNK]"},
            {"continuing_subword_prefix", "##"},
            {"max_input_chars_per_word", 100},
            {"vocab", vocabulary}}}};
}

struct Scored {
  std::string piece;
  float score;
};

/// A tokenizer.bin: the three special pieces, the bytes, and `more` from 259.
inline std::string llama_file(const std::vector<Scored>& more) {
  std::vector<Scored> all = {{"<unk>", 0}, {"<s>", 0}, {"</s>", 0}};
  for (int byte = 0; byte < 256; ++byte)
    all.push_back({fmt::format("<0x{:02X}>", byte), 0});
  all.insert(all.end(), more.begin(), more.end());
  std::string content;
  std::int32_t longest = 0;
  for (const Scored& s : all) {
    const auto length = static_cast<std::int32_t>(s.piece.size());
    longest = std::max(longest, length);
    content += bytes_of(s.score) + bytes_of(length) + s.piece;
  }
  return bytes_of(longest) + content;
}

}  // namespace test
}  // namespace lipscope
