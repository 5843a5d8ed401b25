"""Writes lipscope/text/unicode_versions.cpp: the classes into which Hugging Face's
`tokenizers` puts characters. Its parts follow Unicode 8 to 17.

    pip install tokenizers==0.23.3
    python3.11 unicode_versions.py > lipscope/text/unicode_versions.cpp
    clang-format -i lipscope/text/unicode_versions.cpp
"""

import unicodedata

from tokenizers import Regex
from tokenizers import normalizers as N
from tokenizers import pre_tokenizers as P

assert unicodedata.unidata_version == "14.0.0"
ALL = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
CATEGORY = {c: unicodedata.category(chr(c)) for c in ALL}
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()


def vanishes(step):
    if hasattr(step, "normalize_str"):
        return {c for c in ALL if step.normalize_str(chr(c)) == ""}
    return {c for c in ALL if not step.pre_tokenize_str(chr(c))}


def ranges(values):
    """[first, last, value], of neighbours with one value."""
    found = []
    for c in sorted(values):
        if found and found[-1][1] == c - 1 and found[-1][2] == values[c]:
            found[-1][1] = c
        else:
            found.append([c, c, values[c]])
    return found


def bert(**flags):
    return N.BertNormalizer(**{"clean_text": False, "handle_chinese_chars": False, "strip_accents": False,
                               "lowercase": False, **flags})


def normalized():
    """Characters that normal forms take apart or put in order; as Unicode 14 has it wherever they do."""
    found = set()
    for form in ("NFD", "NFKD"):
        step = getattr(N, form)()
        for before, after in (("", ""), ("a", "\u0334"), ("a\u0345", "")):
            for c in ALL:
                text = before + chr(c) + after
                if (normal := step.normalize_str(text)) != text:
                    assert normal == unicodedata.normalize(form, text)
                    found.add(c)
    return found


def classes():
    digits = P.Digits(True)
    words = P.Whitespace()
    yield "bert_punctuation", vanishes(P.Punctuation("removed"))
    yield "bert_control", vanishes(bert(clean_text=True))
    yield "bert_accent", vanishes(bert(strip_accents=True))
    yield "combining_mark", vanishes(N.StripAccents())
    yield "normalized", normalized()
    yield "numeric", {c for c in ALL if len(digits.pre_tokenize_str(f"a{chr(c)}a")) == 3}
    yield "word", {c for c in ALL if len(words.pre_tokenize_str(f"a{chr(c)}a")) == 1}


def main():
    print('#include "lipscope/text/unicode_versions.h"\n')
    print("// Written by tests/text/golden/unicode_versions.py with tokenizers 0.23.3.\n")
    print("namespace lipscope {\nnamespace {\n")
    names = []
    for name, members in classes():
        names.append(name)
        print(f"constexpr CharacterRange {name}[] = {{")
        print("".join(f"{{0x{a:x}, 0x{b:x}}}," for a, b, _ in ranges(dict.fromkeys(members, 0))), "};\n")
    unknown = P.Split(Regex(r"\p{Cn}"), "removed")
    unassigned = [c for c in ALL if CATEGORY[c] == "Cn" and unknown.pre_tokenize_str(chr(c))]
    new = {}
    for name in CATEGORIES:
        category = P.Split(Regex(rf"\p{{{name}}}"), "removed")
        new.update((c, name) for c in unassigned if not category.pre_tokenize_str(chr(c)))
    print("constexpr NewCharacters assigned_since_14[] = {")
    print("".join(f'{{0x{a:x}, 0x{b:x}, "{name}"}},' for a, b, name in ranges(new)), "};\n")
    lower = N.Lowercase()
    changed = {c: ord(small) - c for c in ALL
               if (small := lower.normalize_str(chr(c))) != chr(c).lower()}
    print("constexpr NewLowerCase lower_since_14[] = {")
    print("".join(f"{{0x{a:x}, 0x{b:x}, {offset}}}," for a, b, offset in ranges(changed)), "};\n")
    print("}  // namespace\n")
    print("std::span<const CharacterRange> characters_of(CharacterClass which) {\n  switch (which) {")
    for name in names:
        print(f"case CharacterClass::{name}: return {name};")
    print("}\n  return {};\n}\n")
    print("std::span<const NewCharacters> new_characters() { return assigned_since_14; }\n")
    print("std::span<const NewLowerCase> new_lower_case() { return lower_since_14; }\n")
    print("}  // namespace lipscope")


main()
