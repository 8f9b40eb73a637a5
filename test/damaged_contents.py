"""Damage to the contents of files whose form stays whole: arrays, words and shapes of networks, values of YAML."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import yaml

SHAPES = (0, 1, -1, 2, 3, 4, 5, 99, 1000, 2**31, 2**62)
HOSTILE = (
    -1, 0, 1, 3, 10**9, -(10**9), 10**19, 1e308, float("nan"), float("inf"), 0.5, True, None, "", " ", ".", "..",
    "a/..", "x" * 300, "a/" * 3000, "a\0b", "../x", "/etc/passwd", "nan", "1e5", [], [[]], [None], [1], [[1, 2]],
    [-1, 1], ["a"] * 300, [0.0] * 29, [10**4] * 12, {}, {"a": 1}, {"a": {"b": [1]}}, {"": None},
)  # fmt: skip
KEYS = ("", "joint_names", "dof_names", "joint_stiffness", "observation_names", "x" * 300)


def arrays(data: bytes, rng: np.random.Generator) -> bytes:
    """In an .npz file: an array of another shape, kind or content, one too few, or a head that promises too much."""
    try:
        parts = dict(np.load(io.BytesIO(data)))
    except Exception:
        return data
    name = str(rng.choice(sorted(parts)))
    x, how = parts[name], int(rng.integers(10))
    evil = rng.choice([np.nan, np.inf, -1.0, 0.0, 1e300, -(2.0**62), 1e-300, 7.0])
    if how == 0:
        del parts[name]
    elif how == 1:
        parts[name] = x.ravel()[: max(x.size - 1, 0)]
    elif how == 2:
        parts[name] = x[None]
    elif how == 3:
        parts[name] = np.array([])
    elif how == 4:
        parts[name] = x.astype(str)
    elif how == 5:
        parts[name] = np.broadcast_to(x, (3, *x.shape))
    elif how == 6:
        parts[name] = np.array(evil) if x.ndim == 0 else x.astype(complex if x.dtype.kind in "if" else "U1")
    elif x.size and x.dtype.kind in "if":
        x = x.astype(float)
        x.flat[int(rng.integers(x.size))] = evil
        parts[name] = x.astype(parts[name].dtype) if how == 7 and np.isfinite(evil) else x
    out = io.BytesIO()
    np.savez(out, **parts)
    if how != 9:
        return out.getvalue()
    whole = io.BytesIO()
    with zipfile.ZipFile(out) as old, zipfile.ZipFile(whole, "w") as new:
        for item in old.namelist():
            content = old.read(item)
            if item == f"{name}.npy":
                shape = re.search(rb"'shape': \([^)]*\)", content)
                if shape is not None:
                    more = str(rng.choice(["9999999999,", "-5,", "3000000, 3000000", "True,", "1e5,", ""]))
                    text = f"'shape': ({more})".encode()
                    content = content[: shape.start()] + text + content[shape.end() :]
            new.writestr(item, content)
    return whole.getvalue()


def damaged_network(data: bytes, rng: np.random.Generator, other: Callable[[bytes], bytes]) -> bytes:
    """In an ONNX file: an entry of the metadata, a shape or a name is another one.

    Args:
        other: what damages the text of an entry.
    """
    import onnx

    try:
        model = onnx.load_model_from_string(data)
        rows, values = model.metadata_props, [*model.graph.input, *model.graph.output]
        if len(rows) and rng.random() < 0.8:
            k, j, how = (int(rng.integers(n)) for n in (len(rows), len(rows), 8))
            if how == 0:
                del rows[k]
            elif how == 1:
                rows[k].value = rows[j].value
            elif how == 2:
                rows[k].key = str(rng.choice(KEYS))
            else:
                rows[k].value = other(rows[k].value.encode())[:1_000_000].decode("utf-8", "replace")
        elif values:
            one, how = values[int(rng.integers(len(values)))], int(rng.integers(3))
            shape = one.type.tensor_type.shape.dim
            if how and len(shape):
                shape[int(rng.integers(len(shape)))].dim_value = int(rng.choice(np.array(SHAPES, dtype=object)))
            else:
                one.name = str(rng.choice(["", "x", "obs", "time_step", values[0].name]))
        return bytes(model.SerializeToString())
    except Exception:  # it was damaged before
        return data


def damaged_value(data: bytes, rng: np.random.Generator) -> bytes:
    """In a YAML file: one value, or a whole part, is another one, gone, or another part of the file."""
    try:
        whole = yaml.safe_load(data)
        places = list(_places(whole))
        holder, key = places[int(rng.integers(len(places)))]
    except Exception:  # it was damaged before, or holds one value alone
        return data
    how = rng.random()
    if how < 0.1:
        del holder[key]
    elif how < 0.25:
        other, place = places[int(rng.integers(len(places)))]
        holder[key] = other[place] if other is not holder else None
    elif how < 0.4 and isinstance(holder[key], list):
        holder[key] = holder[key][:1] if how < 0.32 else [*holder[key], holder[key][0] if holder[key] else 0]
    else:
        holder[key] = HOSTILE[int(rng.integers(len(HOSTILE)))]
    try:
        text = yaml.safe_dump(whole, sort_keys=False)
    except (RecursionError, ValueError):  # a part within itself
        return data
    return text.encode()


def _places(value: Any, seen: set[int] | None = None) -> Iterator[tuple[Any, Any]]:
    """Each list or mapping of a document with a key of it; a part with many aliases, as of a bomb, only once."""
    seen = set() if seen is None else seen
    if isinstance(value, (dict, list)) and id(value) not in seen:
        seen.add(id(value))
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key], seen)
