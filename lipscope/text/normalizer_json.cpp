#include "lipscope/text/normalizer_json.h"

#include "lipscope/text/pattern_json.h"

namespace lipscope {
namespace {

Normalizer parse_normalizers(const JsonSection& step) {
  std::vector<Normalizer> steps;
  for (const JsonSection& one : step.sections("normalizers"))
    steps.push_back(parse_normalizer(one));
  return in_sequence(std::move(steps));
}

Normalizer parse_bert(const JsonSection& step) {
  BertNormalization how;
  how.clean_text = step.flag("clean_text", true);
  how.split_ideographs = step.flag("handle_chinese_chars", true);
  how.lowercase = step.flag("lowercase", true);
  // null: accents go where case goes
  how.strip_accents = step.flag("strip_accents", how.lowercase);
  return as_bert(how);
}

}  // namespace

Normalizer parse_normalizer(const JsonSection& step) {
  const std::string type = step.text("type");
  if (type == "Sequence") return parse_normalizers(step);
  if (type == "BertNormalizer") return parse_bert(step);
  if (type == "NFC") return to_normal_form(NormalForm::nfc);
  if (type == "NFD") return to_normal_form(NormalForm::nfd);
  if (type == "NFKC") return to_normal_form(NormalForm::nfkc);
  if (type == "NFKD") return to_normal_form(NormalForm::nfkd);
  if (type == "Lowercase") return to_lower_case();
  if (type == "StripAccents") return without_marks();
  if (type == "Strip") {
    const bool left = step.flag("strip_left");
    return stripped(left, step.flag("strip_right"));
  }
  if (type == "Prepend") return prepending(step.text("prepend"));
  if (type == "Replace")
    return replacing(parse_pattern(step), step.text("content"));
  if (type == "Precompiled")
    return precompiled(
        Precompiled(step.place(), step.text("precompiled_charsmap")));
  if (type == "ByteLevel") return to_byte_alphabet();
  step.refuse("type",
              "Sequence, BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, "
              "StripAccents, Strip, Prepend, Replace, Precompiled or "
              "ByteLevel");
}

}  // namespace lipscope
