"""Files of named f32 tensors, as safetensors has them: the length of a header in 8 bytes, the header, the numbers."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from lipscope.errors import InputError

_LONGEST_HEADER = 100_000_000  # bytes


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of the file by name. InputError, beginning with the file, for anything else."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    try:
        (length,) = struct.unpack("<Q", content[:8])
        if length > min(_LONGEST_HEADER, len(content) - 8):
            raise ValueError(f"a header of {length} bytes")
        header = json.loads(content[8 : 8 + length])
        header.pop("__metadata__", None)
        return {name: _tensor(name, entry, content[8 + length :]) for name, entry in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise InputError(f"{path}: no safetensors file: {error}") from None


def _tensor(name: str, entry: Mapping[str, object], data: bytes) -> torch.Tensor:
    if entry["dtype"] != "F32":
        raise ValueError(f"{name} is {entry['dtype']}; expected F32")
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not isinstance(shape, list) or not isinstance(offsets, list) or len(offsets) != 2:
        raise ValueError(f"{name} has no shape or no place")
    begin, end = offsets
    if not 0 <= begin <= end <= len(data) or end - begin != 4 * int(np.prod(shape, dtype=np.int64)):
        raise ValueError(f"{name} has {end - begin} bytes for shape {shape}, of {len(data)}")
    return torch.from_numpy(np.frombuffer(data[begin:end], dtype="<f4").reshape(shape).copy())


def write_tensors(path: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Writes the tensors in f32, in the order of their names. The file is there as a whole or not at all."""
    header: dict[str, object] = {}
    parts: list[bytes] = []
    at = 0
    for name in sorted(tensors):
        part = tensors[name].detach().float().cpu().contiguous().numpy().astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensors[name].shape), "data_offsets": [at, at + len(part)]}
        parts.append(part)
        at += len(part)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    write_whole(path, struct.pack("<Q", len(text)) + text + b"".join(parts))


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file under another name and then gives it its own."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(content)
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InputError(f"{path}: {error.strerror}") from None
