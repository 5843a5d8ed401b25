"""Small tokenizers in the styles of today's models, trained on a text, and texts
that are hard to cut: for golden/tokenizer_cases.py and python/tests/test_torch_tokenizers.py.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, models, trainers
from tokenizers import normalizers as n
from tokenizers import pre_tokenizers as p

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
            "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+")
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def byte_level_split(regex: str, behavior: str = "isolated", invert: bool = False) -> Any:
    return p.Sequence([p.Split(Regex(regex), behavior, invert=invert),
                       p.ByteLevel(add_prefix_space=False, use_regex=False)])


def byte_pair(texts: list[str], size: int, pre: Any, normalizer: Any = None, **options: Any) -> Tokenizer:
    """Byte-level byte pairs."""
    made = Tokenizer(models.BPE(**options))
    made.pre_tokenizer = pre
    if normalizer:
        made.normalizer = normalizer
    suffix = {"end_of_word_suffix": options["end_of_word_suffix"]} if "end_of_word_suffix" in options else {}
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=["<|endoftext|>"], show_progress=False,
                                  initial_alphabet=p.ByteLevel.alphabet(), **suffix)
    made.train_from_iterator(texts, trainer)
    return made


def fallback_pair(texts: list[str], size: int, pre: Any, normalizer: Any) -> Tokenizer:
    """Byte pairs of characters, with bytes for what is not in the vocabulary."""
    made = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    if pre:
        made.pre_tokenizer = pre
    if normalizer:
        made.normalizer = normalizer
    # whole lines as words would make pieces of several words
    made.train_from_iterator((word for text in texts for word in re.findall(r"\s*\S+", text)), trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<unk>", "<s>", "</s>", *BYTES], show_progress=False))
    return with_bytes_unmatched(made)


def with_bytes_unmatched(made: Tokenizer) -> Tokenizer:
    """Bytes are pieces of the vocabulary, and not tokens that are looked for in a text."""
    file = json.loads(made.to_str())
    file["added_tokens"] = [t for t in file["added_tokens"] if t["content"] not in BYTES]
    return Tokenizer.from_str(json.dumps(file))


def unigram(texts: list[str], size: int, pre: Any, normalizer: Any, byte_fallback: bool = False) -> Tokenizer:
    made = Tokenizer(models.Unigram())
    made.pre_tokenizer = pre
    if normalizer:
        made.normalizer = normalizer
    special = ["<unk>", "<s>", "</s>"] + (BYTES if byte_fallback else [])
    made.train_from_iterator(texts, trainers.UnigramTrainer(
        vocab_size=size + len(special), special_tokens=special, unk_token="<unk>", show_progress=False))
    file = json.loads(made.to_str())
    file["model"]["byte_fallback"] = byte_fallback
    return with_bytes_unmatched(Tokenizer.from_str(json.dumps(file)))


def word_piece(texts: list[str], size: int, pre: Any, normalizer: Any) -> Tokenizer:
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.pre_tokenizer = pre
    if normalizer:
        made.normalizer = normalizer
    made.train_from_iterator(texts, trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    made.add_special_tokens([AddedToken("[MASK]", lstrip=True)])
    return made


def styles(texts: list[str], size: int) -> Iterator[tuple[str, Tokenizer]]:
    """Every style, by the model that is known for it."""
    mark, level = "\u2581", p.ByteLevel(add_prefix_space=False)
    yield "Llama 3", byte_pair(texts, size, byte_level_split(LLAMA3), ignore_merges=True)
    yield "Qwen2", byte_pair(texts, size, byte_level_split(QWEN2), n.NFC())
    yield "GPT-4o", byte_pair(texts, size, byte_level_split(GPT4O, "removed", True))
    yield "SmolLM2", byte_pair(texts, size, p.Sequence([p.Digits(True), level]))
    yield "BLOOM", byte_pair(texts, size, byte_level_split(BLOOM))
    yield "DeepSeek V3", byte_pair(texts, size, p.Sequence([
        p.Split(Regex(r"\p{N}{1,3}"), "isolated"), p.Split(Regex("[一-龥぀-ゟ゠-ヿ]+"), "isolated"),
        p.Split(Regex(DEEPSEEK), "isolated"), p.ByteLevel(add_prefix_space=False, use_regex=False)]))
    neox = byte_pair(texts, size, level, n.NFC())
    neox.add_tokens([AddedToken(" " * k, normalized=True) for k in range(2, 6)] + [AddedToken("\t\t", normalized=True)])
    yield "ModernBERT, OLMo, Phi", neox
    yield "CLIP", byte_pair(
        texts, size, p.Sequence([p.Split(Regex(CLIP), "removed", invert=True), level]),
        n.Sequence([n.NFC(), n.Replace(Regex(r"\s+"), " "), n.Lowercase()]), end_of_word_suffix="</w>", unk_token="<|endoftext|>")
    yield "RoBERTa", byte_pair(texts, size, p.ByteLevel(add_prefix_space=True))
    yield "Llama 2", fallback_pair(texts, size + 256, None, n.Sequence([n.Prepend(mark), n.Replace(" ", mark)]))
    yield "Mistral", fallback_pair(texts, size + 256, p.Metaspace(mark, "first", False), None)
    yield "Gemma", fallback_pair(texts, size + 256, p.Split(" ", "merged_with_previous"), n.Replace(" ", mark))
    yield "T5", unigram(texts, size, p.Metaspace(mark, "always", True), n.NFKC())
    yield "XLM-R", unigram(texts, size, p.Sequence([p.WhitespaceSplit(), p.Metaspace(mark, "always", True)]),
                           n.Sequence([n.NFKC(), n.Replace(Regex(" {2,}"), " "), n.Strip()]))
    yield "ALBERT", unigram(
        texts, size, p.Metaspace(mark, "first", True),
        n.Sequence([n.Replace("``", '"'), n.Replace("''", '"'), n.NFKD(), n.StripAccents(), n.Lowercase()]))
    yield "Unigram with bytes", unigram(texts, size, p.Metaspace(mark, "never", True), n.NFC(), True)
    yield "BERT, uncased", word_piece(texts, size, p.BertPreTokenizer(), n.BertNormalizer())
    yield "BERT, cased", word_piece(texts, size, p.BertPreTokenizer(), n.BertNormalizer(lowercase=False))
    yield "Whitespace", word_piece(texts, size, p.Whitespace(), n.Sequence([n.NFD(), n.StripAccents()]))
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        yield f"Punctuation, {behavior}", word_piece(
            texts, size, p.Sequence([p.Punctuation(behavior), p.Digits(False)]), n.Strip(left=True, right=False))
        yield f"Split, {behavior}", word_piece(
            texts, size, p.Sequence([p.Split(Regex(r"\s|[aeiou]{2}|(?<=t)h"), behavior), p.WhitespaceSplit()]), None)


WORDS = """Hello world it's we'll I'D don't ſ'ſ 'ſ x2y 3.14 1,000,000 12345678 ٣٤٥ ½ ² Ⅷ ① 東京都 中d 𠮷野 ありがとう カタカナ ｶﾀｶﾅ
한국어 \u1112\u1161\u11ab ç c\u0327 é e\u0301 a\u0323\u0307 q\u0307\u0323 \u1e9b\u0323 ﬁ ﬃ Å Å Ω ™ ª º ㍿ ﷺ İstanbul ıI ΟΔΟΣ Straße
ŒUVRE ǅ ﾡ \u0344 \u0fb2\u0f80 <s> </s> <unk> [CLS] [MASK] [SEP] <|endoftext|> <|im_start|> <bos> <0x0A> <mask> ▁ ▁a Ġ Ċ ## ##a
`` '' "x" (a|b) a_b a-b a.b?! … “q” ‘q’ « » — – · • ¿ ¡ € £ $5.00 #tag @me http://x.y/z?a=b&c=d foo@bar.com C++ {} [] <> \\ / ~ ^ |
👨‍👩‍👧‍👦 👍🏽 🇰🇷 🫨 ❤️ ☃ 𝒜𝓑 𝟙 שלום עולם مرحبا नमस्ते क्षि ไทย ខ្មែរ བོད Ελλάδα Москва ქართული አማርኛ the quick brown fox jumps over lazy dog
internationalization antidisestablishmentarianism aaaaaaaaaaaaaaaaaaaa AAAAaaaa camelCaseWord SCREAMING_SNAKE def f(x): return x**2""".split()
BETWEEN = [" ", " ", " ", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "\t\t", "", "", "\u00a0", "\u2003", "\u3000", "\u200b", "\u2028", "\u0085",
           "\u000b", "\ufeff", "\u00ad", "\u200d", "\u202e", "     ", " \n ", "\n \n"]
ODD = "\u0001\u001f\u007f\u0080\u0300\u0301\u0345\u0591\u0e31\u180e\u20dd\u2060\ufe0f\uffff\U000e0001\U0010ffff\ue000\ufffd"


def nasty_texts(count: int, source: str, seed: int = 17) -> list[str]:
    """Texts that are hard to cut: words of many scripts, odd blanks, marks on
    nothing, characters at random, and pieces of a plain text."""
    rng = random.Random(seed)
    texts = ["", " ", "  ", "\n", "a", " a", "a ", *ODD, *WORDS, *BETWEEN]
    while len(texts) < count:
        kind = rng.randrange(5)
        if kind == 0:
            begin = rng.randrange(len(source))
            texts.append(source[begin:begin + rng.randrange(1, 200)])
        elif kind == 1:  # any character of Unicode
            codes = [rng.randrange(1, rng.choice([0x80, 0x250, 0x3000, 0x10000, 0x20000, 0x110000]))
                     for _ in range(rng.randrange(1, 12))]
            texts.append("".join(chr(c) for c in codes if not 0xD800 <= c <= 0xDFFF))
        elif kind == 2:  # few characters in any order
            texts.append("".join(rng.choice("ab c1.'’\n\t ▁<>|s") for _ in range(rng.randrange(1, 30))))
        else:
            parts = []
            for _ in range(rng.randrange(1, 9)):
                parts.append(rng.choice(WORDS) if rng.random() < 0.9 else rng.choice(ODD))
                parts.append(rng.choice(BETWEEN))
            texts.append("".join(parts[rng.randrange(2):]))
    return texts[:count]


def ids_of(made: Tokenizer, text: str) -> list[int]:
    return list(made.encode(text, add_special_tokens=False).ids)
