"""Writes tokenizers.json: small tokenizers in many styles, and the ids that Hugging
Face's `tokenizers` gives to texts that are hard to cut.

    pip install tokenizers==0.23.3
    python3 tokenizer_cases.py > tokenizers.json
"""

import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from tokenizer_styles import ids_of, nasty_texts, styles  # noqa: E402

TRAINED_ON = ["The pieces of a text, end to end, are the text; it's here that we'll see them 123 times.",
              "Blanks  and\nlines, the theory of the thing, then the others: in, on, an, at, it is."] * 3


KEPT = ["Llama 3", "Qwen2", "ModernBERT, OLMo, Phi", "CLIP", "Llama 2", "Gemma", "T5", "ALBERT", "BERT, cased",
        "Whitespace", "Split, removed", "Split, merged_with_previous", "Split, merged_with_next", "Split, contiguous",
        "Punctuation, isolated"]


def main() -> None:
    cases = []
    for name, made in styles(TRAINED_ON, 290):
        if name not in KEPT:
            continue
        texts = random.Random(name).sample(nasty_texts(2000, " ".join(TRAINED_ON)), 12)
        rows = [{"text": text, "ids": ids_of(made, text)} for text in texts if len(text) < 60]
        cases.append({"name": name, "tokenizer": json.loads(made.to_str()), "texts": rows})
    print(json.dumps({"made_by": "tokenizer_cases.py, tokenizers 0.23.3", "cases": cases}, ensure_ascii=True,
                     separators=(",", ":")))


main()
