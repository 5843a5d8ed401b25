#!/usr/bin/env python3
"""Fails if a source file includes a layer above its own.

The table is the architecture: a folder of lipscope/ may use the folders named
beside it and nothing else.
"""

import pathlib
import re
import sys

ALLOWED = {
    "core": [],
    "operators": ["core"],
    "io": ["core"],
    "text": ["core", "io"],
    "spectral": ["core", "operators"],
    "attention": ["core", "operators"],
    "model": ["core", "operators", "io", "attention"],
    "report": ["core"],
    "theory": ["core", "operators", "attention", "spectral", "model"],
    "search": ["core", "operators", "attention", "spectral"],
    "transport": ["core", "operators", "attention", "spectral"],
    "control": ["core", "operators", "attention", "model", "theory"],
    "record": ["core", "operators", "io", "spectral", "attention", "model",
               "theory", "report"],
    "experiments": ["core", "operators", "spectral", "attention", "model",
                    "theory", "search", "transport", "control",
                    "train", "record", "report"],
    "train": ["core", "operators", "io", "text", "attention", "spectral", "model", "theory",
              "control", "record"],
    "audit": ["core", "operators", "io", "text", "spectral", "attention",
              "model", "theory", "search", "transport", "control", "train",
              "record", "report", "experiments"],
    "cli": ["core", "operators", "io", "text", "spectral", "attention",
            "model", "control", "train", "record", "report",
            "experiments", "audit"],
    # the public header: what of the layers below cli a user needs
    "lipscope.h": ["core", "operators", "spectral", "attention", "theory",
                   "record", "audit"],
}

INCLUDE = re.compile(r'#include [<"]lipscope/(\w+)/')


def violations(root):
    for path in sorted(root.rglob("*.[hc]*")):
        layer = path.relative_to(root).parts[0]
        if layer not in ALLOWED:
            yield f"{path}: no layer is called {layer}"
            continue
        for used in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if used != layer and used not in ALLOWED[layer]:
                yield f"{path}: {layer} must not include {used}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "lipscope")
    found = list(violations(root))
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
