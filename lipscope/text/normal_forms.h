#pragma once

#include "lipscope/text/sourced_text.h"

namespace lipscope {

/// Unicode's normal forms: characters taken apart (D), and put together again
/// (C); K: and compatibility characters replaced by plain ones.
enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// The text in a normal form, by the Unicode version that Hugging Face's
/// tokenizers follow. A character that was taken apart or put together has the
/// source of all that went into it.
SourcedText normal_form(const SourcedText& text, NormalForm form);

}  // namespace lipscope
