"""ONNX network of a policy: bounded reading, trial, inference.

Reading executes nothing. Custom operators, loops and weights outside the folder are rejected. The first inference runs
in a limited child process (`try_network`), so a crash becomes an error message.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from humanoid_control.errors import PolicyError, first_line, shown

MOST_BYTES = 64_000_000  # file plus external weights
MOST_NODES = 20_000
MOST_METADATA = 4_000_000  # characters; may include a URDF
MOST_SIZE = 100_000  # numbers of an input or output
DEEPEST = 8  # nesting of graphs within nodes
LONGEST = 200  # characters of a file name
OWN_DOMAINS = ("", "ai.onnx", "ai.onnx.ml")
ENDLESS = ("Loop", "Scan")
SECONDS, MEGABYTES = 20, 400  # CPU time and memory of the child process
PATIENCE = 180  # [s] wall time of that process, generous for a busy machine
FLOATS: dict[int, np.dtype[Any]] = {
    1: np.dtype("<f4"),
    11: np.dtype("<f8"),
    10: np.dtype("<f2"),
}  # codes of onnx.TensorProto
TYPES = {1: "float32", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64"}


class Tensor(NamedTuple):
    """Name, shape (0: open) and type of an input or output."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        """Numbers, with open dimensions as 1."""
        return math.prod(max(d, 1) for d in self.shape)


@dataclass(frozen=True)
class PolicyNetwork:
    """Contents of an ONNX file.

    Attributes:
        inputs: without weights.
        bad_weights: tensors with non-finite values.
    """

    path: Path
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    metadata: dict[str, str]
    producer: str
    weights: int
    bad_weights: tuple[str, ...]
    sha256: str


# -------- Reading


def read_network(path: Path) -> PolicyNetwork:
    """Read an ONNX file without keeping weights.

    Raises:
        PolicyError: if unreadable, not ONNX, or with rejected contents.
        ModuleNotFoundError: if onnx is not installed.
    """
    import onnx

    data = _content(path)
    try:
        model = onnx.load_model_from_string(data)
    except Exception as e:  # protobuf's own exception class cannot be imported
        raise PolicyError(f"{path}: not an ONNX file: {shown(first_line(e))}") from None
    graph = model.graph
    if not graph.output or not graph.node:
        raise PolicyError(f"{path}: not an ONNX file: contains no network")
    _check_operators(path, model)
    weights = {w.name for w in graph.initializer}
    inputs = tuple(_tensor(path, v) for v in graph.input if v.name not in weights)
    outputs = tuple(_tensor(path, v) for v in graph.output)
    for kind, tensors in (("inputs", inputs), ("outputs", outputs)):
        names = [t.name for t in tensors]
        if len(set(names)) != len(names) or not tensors:
            raise PolicyError(f"{path}: its {kind} have duplicate or empty names: export it again")
    if sum(len(p.key) + len(p.value) for p in model.metadata_props) > MOST_METADATA:
        raise PolicyError(f"{path}: its metadata is longer than {MOST_METADATA // 10**6} MB: not a policy's")
    count, bad = _check_weights(path, graph)
    metadata = {_text(p.key): _text(p.value) for p in model.metadata_props}
    digest = hashlib.sha256(data).hexdigest()
    return PolicyNetwork(path, inputs, outputs, metadata, _text(model.producer_name), count, bad, digest)


def _text(value: str | bytes) -> str:
    """Decode a text that may not be UTF-8."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def _content(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise PolicyError(f"{path}: file not found")
        if path.stat().st_size > MOST_BYTES:
            raise PolicyError(f"{path}: larger than {MOST_BYTES // 10**6} MB: not a policy's network")
        return path.read_bytes()
    except (OSError, ValueError) as e:
        raise PolicyError(f"{shown(path, 300)}: cannot be read: {getattr(e, 'strerror', None) or e}") from None


def _tensor(path: Path, value: Any) -> Tensor:
    kind = value.type.tensor_type
    shape = tuple(int(d.dim_value) if d.HasField("dim_value") else 0 for d in kind.shape.dim)
    out = Tensor(_text(value.name), shape, TYPES.get(kind.elem_type, "another type"))
    if min(shape, default=0) < 0 or out.size > MOST_SIZE:
        raise PolicyError(f"{path}: '{shown(value.name)}' has the shape {shown(list(shape))}: not a policy's")
    return out


def _graphs(path: Path, graph: Any, depth: int = 0) -> Iterator[Any]:
    """Yield a graph or function, and all graphs within its nodes.

    Raises:
        PolicyError: if they are nested too deeply.
    """
    if depth > DEEPEST:
        raise PolicyError(f"{path}: its graphs are nested more than {DEEPEST} deep: not a policy's network")
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.node:
                    yield from _graphs(path, inner, depth + 1)


def _check_operators(path: Path, model: Any) -> None:
    count = 0
    for body in (b for graph in (model.graph, *model.functions) for b in _graphs(path, graph)):
        for node in body.node:
            count += 1
            operator, domain = _text(node.op_type), _text(node.domain)
            if domain not in OWN_DOMAINS:
                raise PolicyError(
                    f"{path}: the operator '{shown(operator)}' is of '{shown(domain)}', a custom library, which is "
                    "never loaded: export the policy with standard operators"
                )
            if operator in ENDLESS:
                raise PolicyError(f"{path}: contains a '{operator}', which may not terminate: export it without loops")
    if count > MOST_NODES:
        raise PolicyError(f"{path}: it has more than {MOST_NODES} operators: not a policy's network")


def _check_weights(path: Path, graph: Any) -> tuple[int, tuple[str, ...]]:
    """Return the number of weights, and tensors with non-finite values.

    Raises:
        PolicyError: if external weights are outside, missing or too short.
    """
    count, bad, outside = 0, list[str](), dict[str, bytes]()
    bodies = list(_graphs(path, graph))
    weights = [w for body in bodies for w in body.initializer]
    weights += [w for body in bodies for s in body.sparse_initializer for w in (s.values, s.indices)]
    # constants may be infinite, e.g. an open bound of Clip; weights may not
    attributes = [(n.op_type, a) for body in bodies for n in body.node for a in n.attribute]
    constants = [a.t for operator, a in attributes if operator == "Constant"]
    for _, a in attributes:
        for tensor in (a.t, *a.tensors, a.sparse_tensor.values, a.sparse_tensor.indices):
            if tensor.data_location == 1:
                _external(path, tensor, outside)
    for k, tensor in enumerate((*weights, *constants)):
        values = _floats(path, tensor, outside)
        count += len(values)
        if np.isnan(values).any() or (k < len(weights) and not np.isfinite(values).all()):
            bad.append(_text(tensor.name))
    return count, tuple(bad)


def _floats(path: Path, tensor: Any, outside: dict[str, bytes]) -> np.ndarray:
    dtype = FLOATS.get(tensor.data_type)
    if tensor.data_location == 1:
        raw = _external(path, tensor, outside)
    elif tensor.raw_data:
        raw = tensor.raw_data
    else:
        return np.array(tensor.double_data if tensor.data_type == 11 else tensor.float_data)
    return np.frombuffer(raw[: len(raw) - len(raw) % dtype.itemsize], dtype) if dtype is not None else np.zeros(0)


def _external(path: Path, tensor: Any, seen: dict[str, bytes]) -> bytes:
    rows = {_text(e.key): _text(e.value) for e in tensor.external_data}
    name = rows.get("location", "")
    place = path.parent / name.replace("\0", "")[:LONGEST]
    odd = not name or "\0" in name or len(name) > LONGEST
    if odd or Path(name).is_absolute() or ".." in Path(name).parts or place.is_symlink():
        raise PolicyError(f"{path}: it asks for weights in '{shown(name)}', outside its folder: rejected")
    if name not in seen:
        if not place.is_file():
            raise PolicyError(f"{path}: its weights are in '{shown(name)}' next to it, which is missing: copy it, too")
        seen[name] = _content(place)
    try:
        begin, length = int(rows.get("offset", 0)), int(rows.get("length", len(seen[name])))
    except ValueError:
        begin = length = -1
    if begin < 0 or length < 0 or begin + length > len(seen[name]):
        raise PolicyError(f"{path}: '{shown(name)}' is shorter than its network requires: copy it again")
    return seen[name][begin : begin + length]


# -------- The first inference, in a child


def try_network(path: Path, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Run one inference in a limited child process.

    Raises:
        PolicyError: if the runtime rejects the file, crashes or exceeds limits.
        ModuleNotFoundError: if onnxruntime is not installed.
    """
    import onnxruntime  # noqa: F401  # refused here, in one line, rather than in the child

    order = json.dumps({"path": str(path), "feeds": {k: (list(v.shape), v.ravel().tolist()) for k, v in feeds.items()}})
    command = [sys.executable, "-m", "humanoid_control.policy.trial"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    try:
        done = subprocess.run(
            command, input=order, capture_output=True, text=True, timeout=PATIENCE, check=False, env=environment
        )
    except subprocess.TimeoutExpired:
        raise PolicyError(f"{path}: one inference takes more than {PATIENCE} s: not a policy's network") from None
    try:
        told = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        raise PolicyError(
            f"{path}: the runtime crashed, or needed more than {MEGABYTES} MB: the file is damaged, or not a policy's"
        ) from None
    if "error" in told:
        raise PolicyError(f"{path}: the runtime rejects it: {shown(told['error'], 200)}")
    return {name: np.array(values, dtype=float).reshape(shape) for name, (shape, values) in told["outputs"].items()}


class InferenceSession:
    """Network ready for single-threaded inference."""

    def __init__(self, path: Path) -> None:
        import onnxruntime

        self._path = path
        onnxruntime.set_default_logger_severity(4)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        # spinning threads would take a core from the drives
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = onnxruntime.InferenceSession(
                str(path), sess_options=options, providers=["CPUExecutionProvider"]
            )
        except Exception as e:  # the runtime has many exception classes
            raise PolicyError(f"{path}: the runtime rejects it: {shown(first_line(e), 200)}") from None
        self.outputs = [o.name for o in self._session.get_outputs()]

    def run(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return all outputs by name.

        Raises:
            PolicyError: if an input has the wrong type or shape.
        """
        try:
            return dict(zip(self.outputs, self._session.run(None, feeds), strict=True))
        except Exception as e:  # raised by the runtime
            raise PolicyError(f"{self._path}: the runtime rejects its inputs: {shown(first_line(e), 200)}") from None
