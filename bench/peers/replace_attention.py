#!/usr/bin/env python3
"""What a model of transformers loses by lipscope.torch.replace_attention, and what fine-tuning recovers.

A small GPT-2 (next byte) or BERT (masked bytes, 15 %) learns a text from random weights. Then its attention is
replaced, with new weights and with kept ones, its loss is measured, and it learns on; beside it the model as it was
learns on for as many steps, and a model whose attention was replaced before the first step learns for as many steps as
both together. All losses are in nats a byte on the last 10 % of the text, at fixed windows (and fixed masks).

    peers-venv/bin/python bench/peers/replace_attention.py TEXT --model gpt2
    peers-venv/bin/python bench/peers/replace_attention.py TEXT --model bert --context 32 --lr 1e-3 \\
      --first-steps 1200 --steps 600

needs lipscope's Python package, installed or by PYTHONPATH=build/release/python, and transformers.
"""

import argparse
import copy
import json
import time

import torch
import transformers

import lipscope.torch

BYTES, MASK = 256, 256  # the byte values, and the token that hides one


def make(model, context):
    shape = dict(vocab_size=BYTES + 1, bos_token_id=0, eos_token_id=0)
    if model == "gpt2":
        config = transformers.GPT2Config(
            **shape, n_positions=context, n_embd=64, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0,
            attn_pdrop=0.0,
        )  # fmt: skip
        return transformers.GPT2LMHeadModel(config)
    config = transformers.BertConfig(
        **shape, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256, pad_token_id=0,
        max_position_embeddings=context, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        initializer_range=0.1,  # with 0.02 this small model predicts by the frequencies of bytes for a thousand steps
    )  # fmt: skip
    return transformers.BertForMaskedLM(config)


def batch_of(text, context, size, model, numbers):
    begin = torch.randint(len(text) - context, (size, 1), generator=numbers)
    ids = text[begin + torch.arange(context)]
    if model == "gpt2":
        return {"input_ids": ids, "labels": ids}
    hidden = torch.rand(ids.shape, generator=numbers) < 0.15
    return {"input_ids": ids.masked_fill(hidden, MASK), "labels": ids.masked_fill(~hidden, -100)}


def loss_of(model, batches):
    model.eval()
    with torch.no_grad():
        return sum(float(model(**b).loss) for b in batches) / len(batches)


def learn(model, name, train, valid, options, steps, seed, say):
    numbers = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=options.lr)
    losses = [loss_of(model, valid)]
    for step in range(1, steps + 1):
        model.train()
        for group in optimiser.param_groups:
            group["lr"] = options.lr * min(1.0, step / 50)
        optimiser.zero_grad()
        model(**batch_of(train, options.context, options.batch, name, numbers)).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step % options.every == 0 or step == steps:
            losses.append(loss_of(model, valid))
    print(json.dumps({"run": say, "valid": [round(x, 4) for x in losses]}), flush=True)
    return losses


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("text")
    p.add_argument("--model", choices=["gpt2", "bert"], default="gpt2")
    p.add_argument("--kind", default="l2")
    p.add_argument("--context", type=int, default=64)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--first-steps", type=int, default=300, help="before attention is replaced")
    p.add_argument("--steps", type=int, default=300, help="after it")
    p.add_argument("--every", type=int, default=50)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--seed", type=int, default=0)
    options = p.parse_args()
    begin = time.time()
    text = torch.frombuffer(bytearray(open(options.text, "rb").read()), dtype=torch.uint8).long()
    cut = len(text) * 9 // 10
    train, valid_text = text[:cut], text[cut:]
    numbers = torch.Generator().manual_seed(123)
    valid = [batch_of(valid_text, options.context, 64, options.model, numbers) for _ in range(4)]

    torch.manual_seed(options.seed)
    model = make(options.model, options.context)
    fresh = copy.deepcopy(model)
    learn(model, options.model, train, valid, options, options.first_steps, 1, "dot-product")
    for weights in ("kept", "new"):
        replaced = copy.deepcopy(model)
        print(lipscope.torch.replace_attention(replaced, options.kind, weights=weights), flush=True)
        say = f"{options.kind}, {weights} weights, on"
        learn(replaced, options.model, train, valid, options, options.steps, 2, say)
    learn(model, options.model, train, valid, options, options.steps, 2, "dot-product, on")
    lipscope.torch.replace_attention(fresh, options.kind, weights="new")
    say = f"{options.kind} from the first step"
    learn(fresh, options.model, train, valid, options, options.first_steps + options.steps, 1, say)
    print(json.dumps({"seconds": round(time.time() - begin)}))


if __name__ == "__main__":
    main()
