#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

/// Numbers on the command line, read by the strict parsers of
/// core/number_text.h.
///
/// The validators go into CLI::Option::transform, which hands on the number as
/// it was understood here. Their messages name the option, what was given and
/// what is expected.
namespace lipscope::cli {

CLI::Validator whole_number(std::int64_t least, std::int64_t most);
/// 0 to 2^64 - 1.
CLI::Validator seed_number();
CLI::Validator positive_number();
CLI::Validator number_not_negative();
CLI::Validator number_between(double least, double most);
/// The word, or what `number` takes.
CLI::Validator number_or(const std::string& word, CLI::Validator number);
/// A number of bytes, as 500M or 2G: K, M, G and T are powers of 1024, and B or
/// iB may follow.
CLI::Validator byte_size();
/// A text with at least one character.
CLI::Validator not_empty();

}  // namespace lipscope::cli
