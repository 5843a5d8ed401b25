#pragma once

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "lipscope/core/rng.h"
#include "lipscope/io/npy.h"
#include "lipscope/io/safetensors.h"
#include "tests/cli/program.h"
#include "tests/io/test_files.h"
#include "tests/model/folders.h"

/// The files that the table of hostile cases speaks of. What is sound is made
/// by the program itself; what is broken is made from it.
namespace lipscope::test {

namespace hostile {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// a safetensors file of this header and so many bytes behind it
inline std::string safetensors(const std::string& header, std::size_t bytes) {
  return bytes_of(std::uint64_t{header.size()}) + header +
         std::string(bytes, '\0');
}

// a .npy file of version 1.0
inline std::string npy(const std::string& dictionary, std::size_t bytes) {
  return std::string("\x93NUMPY\x01\x00", 8) +
         bytes_of(static_cast<std::uint16_t>(dictionary.size())) + dictionary +
         std::string(bytes, '\0');
}

inline std::string npy_of_shape(const std::string& shape, std::size_t bytes) {
  return npy(
      "{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }\n",
      bytes);
}

inline std::string deep(std::size_t n) {
  return std::string(n, '[') + std::string(n, ']');
}

inline void make_texts(const fs::path& f) {
  std::string text;
  while (text.size() < 4000) text += "the quick brown fox jumps over it. ";
  write_file(f / "text.txt", text);
  write_file(f / "short.txt", "ab");
  write_file(f / "one_letter.txt", std::string(4000, 'a'));
  write_file(f / "empty.txt", "");
  write_file(f / "not_utf8.txt", text + "\xff\xfe" + text);
  write_file(f / "zeros.txt", std::string(4000, '\0'));
  write_file(f / "huge.txt", "x");
  fs::resize_file(f / "huge.txt", std::uintmax_t{1} << 40);
  write_file(f / "ids.txt", "1 2 3 4 5 6 7 8 9 10 11 12");
  write_file(f / "ids_negative.txt", "1 -2 3");
  write_file(f / "ids_beyond.txt", "1 2 99999999");
  write_file(f / "ids_words.txt", "1 two 3");
  write_file(f / "ids_overflow.txt", "1 99999999999999999999");
  mkfifo((f / "pipe").c_str(), 0600);
  fs::create_directory(f / "folder");
  fs::create_symlink("loop", f / "loop");
  fs::create_symlink("text.txt", f / "link_to_text");
  fs::create_symlink("nowhere.npy", f / "dangling");
  fs::create_hard_link(f / "text.txt", f / "hard_text");
  write_file(f / "secret.txt", text);
  fs::permissions(f / "secret.txt", fs::perms::none);
}

inline void make_arrays(const fs::path& f) {
  const Matrix x = gaussian(3, 4, Rng(1));
  write_npy(f / "x.npy", x);
  write_npy(f / "wide.npy", gaussian(3, 5, Rng(1)));
  std::string bytes = read_file(f / "x.npy");
  write_file(f / "cut.npy", bytes.substr(0, bytes.size() - 5));
  write_file(f / "long.npy", bytes + "more");
  for (const auto& [name, value] :
       {std::pair("nan.npy", std::numeric_limits<double>::quiet_NaN()),
        {"inf.npy", std::numeric_limits<double>::infinity()}}) {
    std::string bad = bytes;
    bad.replace(bad.size() - 8, 8, bytes_of(value));
    write_file(f / name, bad);
  }
  write_file(f / "huge_value.npy",
             bytes.substr(0, bytes.size() - 8) + bytes_of(1e308));
  write_file(f / "none.npy", "");
  write_file(f / "text.npy", "precious notes\n");
  write_file(f / "huge.npy", npy_of_shape("(1099511627776, 4)", 96));
  // three gigabytes that take no room on the disk, and would take six
  write_file(f / "sparse.npy",
             npy("{'descr': '<f4', 'fortran_order': False, 'shape': "
                 "(201326592, 4), }\n",
                 0));
  fs::resize_file(f / "sparse.npy",
                  fs::file_size(f / "sparse.npy") + 3221225472);
  write_file(f / "wraps.npy", npy_of_shape("(4611686018427387904, 4)", 0));
  write_file(f / "negative.npy", npy_of_shape("(-3, 4)", 96));
  write_file(f / "one_axis.npy", npy_of_shape("(12,)", 96));
  write_file(f / "no_rows.npy", npy_of_shape("(0, 4)", 0));
  write_file(
      f / "integers.npy",
      npy("{'descr': '<i8', 'fortran_order': False, 'shape': (3, 4)}", 96));
  write_file(
      f / "objects.npy",
      npy("{'descr': '|O', 'fortran_order': False, 'shape': (3, 4)}", 96));
  write_file(f / "header.npy", npy("{{{{{{{{{{{{", 96));
  write_file(f / "version.npy", std::string("\x93NUMPY\x09\x00\x10\x00", 10));
}

inline void make_layers(const fs::path& f) {
  const auto layer = [](Index d, Index tokens) {
    std::map<std::string, Matrix> t;
    for (const char* name : {"q", "k", "v", "o"})
      t[name] = gaussian(d, d, Rng(name[0]));
    t["x"] = gaussian(tokens, d, Rng(5));
    return t;
  };
  const auto good = layer(4, 3);
  write_safetensors(f / "layer.safetensors", good, "F64");
  const std::string bytes = read_file(f / "layer.safetensors");
  write_file(f / "cut.safetensors", bytes.substr(0, bytes.size() / 2));
  write_file(f / "longer.safetensors", bytes + "more");
  write_file(f / "tiny.safetensors", "abc");
  write_file(f / "none.safetensors", "");
  write_file(f / "text.safetensors", "this is no file of tensors at all\n");
  write_file(f / "header.safetensors", bytes_of(~std::uint64_t{0}) + "{}");
  write_file(f / "deep.safetensors", safetensors(deep(100'000), 0));
  write_file(f / "escape.safetensors",
             safetensors(R"({"\u001b[31mred":{"dtype":"F64","shape":[1],)"
                         R"("data_offsets":[0,8]}})",
                         8));
  for (const auto& [name, entry] :
       {std::pair<const char*, const char*>("offsets",
                                            R"({"dtype":"F64","shape":[4,4],)"
                                            R"("data_offsets":[0,99999]})"),
        {"backward", R"({"dtype":"F64","shape":[4,4],"data_offsets":[128,0]})"},
        {"shape", R"({"dtype":"F64","shape":[4,-4],"data_offsets":[0,128]})"},
        {"wraps", R"({"dtype":"F64","shape":[4294967296,4294967296,4],)"
                  R"("data_offsets":[0,128]})"},
        {"dtype", R"({"dtype":"F63","shape":[4,4],"data_offsets":[0,128]})"},
        {"string", R"({"dtype":"F64","shape":"4x4","data_offsets":[0,128]})"},
        {"twice", R"({"dtype":"F64","dtype":"F64","shape":[4,4],)"
                  R"("data_offsets":[0,128]})"}})
    write_file(f / (std::string("q_") + name + ".safetensors"),
               safetensors(std::string(R"({"q":)") + entry + "}", 128));
  write_file(f / "sparse.safetensors",
             safetensors(R"({"q":{"dtype":"F32","shape":[201326592,4],)"
                         R"("data_offsets":[0,3221225472]}})",
                         0));
  fs::resize_file(f / "sparse.safetensors",
                  fs::file_size(f / "sparse.safetensors") + 3221225472);
  auto bad = good;
  bad.erase("v");
  write_safetensors(f / "no_v.safetensors", bad, "F64");
  bad = good;
  bad["k"] = gaussian(4, 3, Rng(1));
  write_safetensors(f / "k_narrow.safetensors", bad, "F64");
  bad = good;
  bad["o"] = gaussian(5, 4, Rng(1));
  write_safetensors(f / "o_tall.safetensors", bad, "F64");
  std::string nan = bytes;
  nan.replace(nan.size() - 8, 8,
              bytes_of(std::numeric_limits<double>::quiet_NaN()));
  write_file(f / "nan.safetensors", nan);
  bad = good;
  for (auto& [name, m] : bad)
    if (name != "x") m *= 1e200;
  write_safetensors(f / "enormous.safetensors", bad, "F64");
}

// a record with one field changed, as the only line of a file
inline void make_journals(const fs::path& f) {
  lipscope(
      "measure --random d=4,heads=1,scale=1 --length 3 --samples 2 --out " +
      (f / "good.jsonl").string());
  const std::string lines = read_file(f / "good.jsonl");
  const std::string first = lines.substr(0, lines.find('\n') + 1);
  const ordered_json record = ordered_json::parse(first);
  const auto with = [&](const char* file, const char* field,
                        const ordered_json& value) {
    ordered_json changed = record;
    changed[field] = value;
    write_file(f / (std::string(file) + ".jsonl"), changed.dump() + "\n");
  };
  with("lower_string", "lower", "x");
  with("lower_list", "lower", {1, 2});
  with("lower_object", "lower", {{"a", 1}});
  with("lower_true", "lower", true);
  with("lower_above", "lower", 1e9);
  with("upper_string", "upper", "y");
  with("n_string", "n", "three");
  with("n_half", "n", 2.5);
  with("n_object", "n", ordered_json::object());
  with("layer_string", "layer", "zero");
  with("head_list", "head", {0});
  with("model_number", "model", 7);
  with("command_number", "command", 7);
  with("command_null", "command", nullptr);
  with("schema_string", "schema", "one");
  with("status_number", "status", 0);
  with("seed_string", "seed", "x");
  with("delta_string", "delta", "x");
  with("details_list", "details", {1});
  with("details_string", "details", "x");
  with("parameters_string", "parameters", "x");
  with("parameters_x", "parameters", {{"x", "a"}});
  with("details_right", "details", {{"right", "yes"}});
  with("details_starts", "details", {{"starts", {1, 2}}});
  with("seconds_string", "seconds", "fast");
  with("steps_string", "steps", "many");
  with("escapes", "model", "\x1b[2J\x1b]0;owned\x07 model");
  ordered_json missing = record;
  missing.erase("lower");
  write_file(f / "lower_missing.jsonl", missing.dump() + "\n");
  missing = record;
  missing.erase("command");
  write_file(f / "command_missing.jsonl", missing.dump() + "\n");
  write_file(f / "deep.jsonl", first + deep(100'000) + "\n");
  write_file(
      f / "deep_record.jsonl",
      R"({"schema":1,"command":"measure","details":)" + deep(100'000) + "}\n");
  write_file(f / "open.jsonl", first + std::string(100'000, '[') + "\n");
  write_file(f / "objects.jsonl", [] {
    std::string line;
    for (int i = 0; i < 100'000; ++i) line += "{\"a\":";
    return line + "\n";
  }());
  write_file(f / "words.jsonl", "once upon a time\nthere was a file\n");
  write_file(f / "middle.jsonl", first + "{broken\n" + first);
  write_file(f / "list.jsonl", "[1, 2]\n");
  write_file(f / "number.jsonl", "7\n");
  write_file(f / "overflow.jsonl",
             "{\"schema\":1,\"command\":\"measure\","
             "\"lower\":1e999}\n" +
                 first);
  write_file(f / "twice.jsonl", "{\"schema\":1,\"schema\":1}\n" + first);
  write_file(f / "not_utf8.jsonl",
             "{\"schema\":1,\"model\":\"\xff\"}\n" + first);
  write_file(f / "zero_byte.jsonl", std::string("{\"a\":1\0}\n", 9) + first);
  write_file(f / "empty_line.jsonl", first + "\n" + first);
  write_file(f / "empty.jsonl", "");
  write_file(f / "torn.jsonl", first + first.substr(0, 40));
  fs::create_symlink("good.jsonl", f / "link.jsonl");
  fs::create_hard_link(f / "good.jsonl", f / "hard.jsonl");
  write_file(f / "notes.html", "<html>notes of mine</html>\n");
  write_file(f / "notes.md", "# Notes\n");
}

// a copy of a folder in which one file is another
inline void copy_with(const fs::path& from, const fs::path& to,
                      const std::string& file, const std::string& content) {
  fs::copy(from, to, fs::copy_options::recursive);
  write_file(to / file, content);
}

inline void make_trained(const fs::path& f) {
  const std::string made =
      " --layers 1 --width 8 --heads 2 --context 8 --steps 2 --eval-every 2 "
      "--batch 2 --measure 0 --quiet";
  lipscope("train " + (f / "text.txt").string() + " --out " +
           (f / "trained").string() + made);
  lipscope("train " + (f / "text.txt").string() + " --out " +
           (f / "lstm").string() + made + " --model lstm");
  const ordered_json config =
      ordered_json::parse(read_file(f / "trained/config.json"));
  const auto with = [&](const std::string& name, const char* key,
                        const ordered_json& value) {
    ordered_json changed = config;
    changed[key] = value;
    copy_with(f / "trained", f / name, "config.json", changed.dump(2));
  };
  with("t_mixer", "mixer", "lstn");
  with("t_width", "width", 1 << 20);
  with("t_layers", "num_layers", 10'000);
  with("t_beyond", "width", std::uint64_t{1} << 63);
  with("t_negative", "width", -8);
  with("t_half", "width", 8.5);
  with("t_string", "width", "8");
  with("t_heads", "num_heads", 3);
  with("t_context", "context", 0);
  with("t_characters", "characters", {97, 97});
  with("t_surrogate", "characters", {0xd800, 97});
  with("t_training", "training", 5);
  with("t_norm", "norm", "both");
  copy_with(f / "trained", f / "t_deep", "config.json", deep(100'000));
  copy_with(f / "trained", f / "t_words", "config.json", "once upon a time");
  copy_with(f / "trained", f / "t_none", "config.json", "");
  copy_with(f / "trained", f / "t_list", "config.json", "[]");
  copy_with(f / "trained", f / "t_cut", "model.safetensors", "abc");
  copy_with(f / "trained", f / "t_other", "model.safetensors",
            read_file(f / "layer.safetensors"));
  copy_with(f / "trained", f / "t_state", "state.json", deep(100'000));
  copy_with(f / "trained", f / "t_state_words", "state.json",
            "{\"step\": \"x\"}");
  copy_with(f / "trained", f / "t_state_step", "state.json",
            "{\"step\":9,\"checkpoint\":\"../../etc\",\"sha256\":\"\","
            "\"best_step\":0}");
  copy_with(f / "trained", f / "t_metrics", "metrics.jsonl",
            "{\"parameters\":{\"x\":\"a\"}}\n{\"a\":1}\n");
  copy_with(f / "trained", f / "t_metrics_deep", "metrics.jsonl",
            deep(100'000) + "\n{}\n");
  fs::create_directory(f / "foreign");
  write_file(f / "foreign/config.json", "{\"model_type\": \"gpt2\"}");
  write_file(f / "foreign/model.safetensors", "weights of somebody else");
  fs::create_directory(f / "notes");
  write_file(f / "notes/metrics.jsonl", "my own measurements\n");
  write_file(f / "notes/config.json.txt", "x");
}

inline void make_models(const fs::path& f) {
  const ModelConfig c = small_config(Architecture::gpt2);
  fs::create_directory(f / "gpt2");
  write_model(f / "gpt2", c, random_tensors(c, 1));
  const ordered_json config =
      ordered_json::parse(read_file(f / "gpt2/config.json"));
  const auto with = [&](const std::string& name, const char* key,
                        const ordered_json& value) {
    ordered_json changed = config;
    changed[key] = value;
    copy_with(f / "gpt2", f / name, "config.json", changed.dump());
  };
  with("m_type", "model_type", "t5\x1b[31m");
  with("m_type_number", "model_type", 5);
  with("m_layers", "n_layer", 10'000);
  with("m_layers_beyond", "n_layer", 1'000'000'000);
  with("m_width", "n_embd", 1 << 20);
  with("m_heads", "n_head", 3);
  with("m_zero", "n_head", 0);
  with("m_negative", "n_layer", -1);
  with("m_epsilon", "layer_norm_epsilon", -1.0);
  with("m_activation", "activation_function", "tanh");
  with("m_nested", "n_layer", {{"a", {1, 2}}});
  with("m_vocabulary", "vocab_size", 2'000'000'000);
  copy_with(f / "gpt2", f / "m_deep", "config.json", deep(100'000));
  copy_with(f / "gpt2", f / "m_words", "config.json", "once");
  copy_with(f / "gpt2", f / "m_twice", "config.json",
            "{\"model_type\":\"gpt2\",\"model_type\":\"bert\"}");
  copy_with(f / "gpt2", f / "m_cut", "model.safetensors", "abc");
  copy_with(f / "gpt2", f / "m_other", "model.safetensors",
            read_file(f / "layer.safetensors"));
  for (const auto& [name, content] :
       {std::pair("m_tokenizer_deep", deep(100'000)),
        {"m_tokenizer_words", std::string("once")},
        {"m_tokenizer_list", std::string("[1]")},
        {"m_tokenizer_type",
         std::string(R"({"model":{"type":"\u001b[31mWords"}})")},
        {"m_tokenizer_vocab",
         std::string(R"({"model":{"type":"BPE","vocab":{"a":-1},)"
                     R"("merges":[]}})")},
        {"m_tokenizer_none", std::string("{}")}})
    copy_with(f / "gpt2", f / name, "tokenizer.json", content);
  fs::create_directory(f / "m_index");
  write_file(f / "m_index/config.json", config.dump());
  write_file(f / "m_index/model.safetensors.index.json",
             R"({"weight_map":{"wte.weight":"../gpt2/model.safetensors"}})");
  fs::create_directory(f / "m_index_deep");
  write_file(f / "m_index_deep/config.json", config.dump());
  write_file(f / "m_index_deep/model.safetensors.index.json", deep(100'000));
  fs::create_directory(f / "m_pickle");
  write_file(f / "m_pickle/config.json", config.dump());
  write_file(f / "m_pickle/pytorch_model.bin", "x");
  fs::create_directory(f / "m_pipe");
  mkfifo((f / "m_pipe/config.json").c_str(), 0600);
  fs::create_directory(f / "m_device");
  fs::create_symlink("/dev/zero", f / "m_device/config.json");
  fs::create_directory(f / "m_weights_pipe");
  write_file(f / "m_weights_pipe/config.json", config.dump());
  mkfifo((f / "m_weights_pipe/model.safetensors").c_str(), 0600);
}

/// What a write would change, of every file: when it was last touched, its size
/// and its kind; and, if asked, what stands in it.
inline std::map<std::string, std::string> state_of(const fs::path& folder,
                                                   bool contents) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).string();
    struct stat status;
    if (lstat(entry.path().c_str(), &status) != 0) continue;
    if (S_ISDIR(status.st_mode)) {
      all[name] = "folder";
      continue;
    }
    all[name] = fmt::format("{} {} {} {}.{}", status.st_mode, status.st_ino,
                            status.st_size, status.st_mtim.tv_sec,
                            status.st_mtim.tv_nsec);
    if (contents && S_ISREG(status.st_mode) && status.st_size < 100'000'000)
      all[name] += lipscope::test::contents(entry.path());
  }
  return all;
}

}  // namespace hostile

/// All of them, in the folder.
inline void make_hostile_files(const std::filesystem::path& folder) {
  hostile::make_texts(folder);
  hostile::make_arrays(folder);
  hostile::make_layers(folder);
  hostile::make_journals(folder);
  hostile::make_trained(folder);
  hostile::make_models(folder);
}

}  // namespace lipscope::test
