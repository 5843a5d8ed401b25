#!/usr/bin/env python3
"""PyTorch: the real-model protocol of Castin et al. on a BERT folder, as a user would write it.

For each length n the next samples*n tokens of a text make `samples` sequences; the model runs
on them, and at the input of every attention module the norm of the Jacobian of attention (with
its output projection) is found by power iteration, on the peer in torch_peer.py. A measurement
stops by lipscope's own rule, when the relative residual |J'Jv - s v|/s is below --tolerance; or,
with --told RECORDS, at the first iteration within --accuracy of the value that lipscope recorded,
which nobody who measures could do. Reading files and tokenising are not timed, the passes are.
"""

import argparse
import json
import math
import time

import common

common.use_fast_allocator()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

from torch_peer import TorchPeer  # noqa: E402


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", help="a BERT folder: config.json, one *.safetensors, tokenizer.json")
    p.add_argument("--text", required=True)
    p.add_argument("--tolerance", type=float, default=1e-5, help="of the relative residual (1e-5)")
    p.add_argument("--told", metavar="RECORDS", help="stop near what lipscope measured, as JSON lines")
    p.add_argument("--lengths", default="2:100:2", help="a:b:s or a,b,c (2:100:2)")
    p.add_argument("--samples", type=int, default=10)
    p.add_argument("--accuracy", type=float, default=1e-6, help="with --told: how near to the record a value must come (1e-6)")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--most", type=int, default=20000, help="iterations after which a measurement is given up (20000)")
    p.add_argument("--only", help="measure these lengths alone, the others are skipped but counted in the text")
    return p.parse_args()


def lengths_of(text):
    if ":" in text:
        return list(range(*map(int, text.split(":"))))
    return list(map(int, text.split(",")))


class Bert:
    def __init__(self, folder):
        import pathlib

        folder = pathlib.Path(folder)
        self.config = json.loads((folder / "config.json").read_text())
        (path,) = folder.glob("*.safetensors")
        tensors = load_file(path)
        self.t = {name.removeprefix("bert."): np.asarray(a, np.float32) for name, a in tensors.items()}
        self.layers, self.heads = self.config["num_hidden_layers"], self.config["num_attention_heads"]
        self.torch = {name: torch.from_numpy(a) for name, a in self.t.items()}

    def attention(self, layer):
        a = f"encoder.layer.{layer}.attention."
        weight = [self.t[a + name + ".weight"].T for name in ("self.query", "self.key", "self.value", "output.dense")]
        return common.Layer(*weight, self.t[a + "self.query.bias"], self.heads, False)

    def norm(self, x, name):
        return torch.nn.functional.layer_norm(x, x.shape[-1:], self.torch[name + ".weight"],
                                              self.torch[name + ".bias"], self.config["layer_norm_eps"])

    def linear(self, x, name):
        return torch.nn.functional.linear(x, self.torch[name + ".weight"], self.torch[name + ".bias"])

    @torch.no_grad()
    def inputs(self, ids):
        """The input of every attention module for sequences [B, n] of ids."""
        e = "embeddings."
        x = self.norm(self.torch[e + "word_embeddings.weight"][ids]
                      + self.torch[e + "position_embeddings.weight"][: ids.shape[1]]
                      + self.torch[e + "token_type_embeddings.weight"][0], e + "LayerNorm")
        for layer in range(self.layers):
            yield x.numpy()
            p = f"encoder.layer.{layer}."
            q, k, v = (self.linear(x, p + f"attention.self.{name}").unflatten(-1, (self.heads, -1)).transpose(1, 2)
                       for name in ("query", "key", "value"))
            y = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1) @ v
            y = self.linear(y.transpose(1, 2).flatten(2), p + "attention.output.dense")
            x = self.norm(x + y, p + "attention.output.LayerNorm")
            y = self.linear(torch.nn.functional.gelu(self.linear(x, p + "intermediate.dense")), p + "output.dense")
            x = self.norm(x + y, p + "output.LayerNorm")


def main():
    options = parse()
    torch.set_num_threads(options.threads)
    bert = Bert(options.model)
    tokenizer = Tokenizer.from_file(options.model + "/tokenizer.json")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    with open(options.text, encoding="utf-8") as file:
        ids = np.array(tokenizer.encode(file.read(), add_special_tokens=False).ids)
    reference = {}
    if options.told:
        with open(options.told, encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        reference = {(r["layer"], r["n"], r["sample"]): r["lower"] for r in records
                     if r["command"] == "measure" and r["head"] == "all" and r["map"] == "attn"}
    peers = [TorchPeer(bert.attention(layer)) for layer in range(bert.layers)]
    only = set(lengths_of(options.only)) if options.only else None

    cursor, seconds, count, iterations, given_up = 0, 0.0, 0, 0, 0
    for n in lengths_of(options.lengths):
        windows = ids[cursor: cursor + options.samples * n].reshape(options.samples, n)
        cursor += options.samples * n
        if only and n not in only:
            continue
        start = common.start_vector((n, bert.config["hidden_size"]), 0)
        begin = time.perf_counter()
        for layer, inputs in enumerate(bert.inputs(windows)):
            for sample, x in enumerate(inputs):
                peers[layer].linearize(x)
                if options.told:
                    _, steps = peers[layer].power_iteration(start, reference[layer, n, sample], options.accuracy,
                                                            options.most)
                else:
                    _, steps = peers[layer].settle(start, options.tolerance, options.most)
                count, iterations, given_up = count + 1, iterations + steps, given_up + (steps == options.most)
        seconds += time.perf_counter() - begin
    print(json.dumps({"peer": "torch", "version": torch.__version__, "threads": options.threads, "what": "protocol",
                      "rule": f"within {options.accuracy} of what it is told" if options.told
                      else f"residual {options.tolerance}",
                      "measurements": count, "iterations": iterations, "given_up": given_up,
                      "seconds": seconds}))


if __name__ == "__main__":
    main()
