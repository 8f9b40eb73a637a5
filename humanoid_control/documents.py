"""Reading of foreign documents: text, YAML, XML and arrays, with bounds of size and depth.

Damaged or malicious files raise an error with a reason; nothing in them is executed.
"""

from __future__ import annotations

import errno
import io
import json
import math
import re
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np
import yaml

from humanoid_control.errors import RobotError, first_line, shown

MOST_BYTES = 20_000_000  # of a hand-written file
MOST_NODES = 200_000  # values of a YAML file, aliases expanded
DEEPEST = 50  # nesting of lists, mappings and elements


def read_text(path: Path) -> str:
    """Return the text of a hand-written file (UTF-8).

    Raises:
        OSError: if it is not readable or too large.
        UnicodeDecodeError: if it is not text.
    """
    if path.stat().st_size > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it is larger than {MOST_BYTES // 10**6} MB")
    return path.read_text(encoding="utf-8")


def decoded(data: bytes) -> str:
    """Decode the text of a file of some program: UTF-8, UTF-16 by its first bytes, or Windows' Latin."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


# -------- YAML

# The C parser of PyYAML takes a tenth of the time.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(LOADER):  # type: ignore[valid-type,misc]
    """Loader that rejects repeated keys, and names the line of an unreadable value."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except yaml.YAMLError:
            raise
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError):
            kind = node.tag.rpartition(":")[2]
            told = f"'{shown(node.value)}'" if isinstance(node, yaml.ScalarNode) else "this"
            raise _mistake(f"{told} is not readable as {shown(kind)}", node.start_mark) from None

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> Any:
        if isinstance(node, yaml.MappingNode):
            keys: set[tuple[str, str]] = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                    if (key.tag, key.value) in keys:
                        raise _mistake(f"the key '{shown(key.value)}' appears twice", key.start_mark)
                    keys.add((key.tag, key.value))
        return super().construct_mapping(node, deep)


def _mistake(problem: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, mark)


def _check_size(text: str) -> None:
    """Reject text that would exhaust stack or memory: deep nesting, and aliases of aliases, which multiply."""
    sizes: dict[str, int] = {}  # number of values of each anchor
    inside: list[tuple[str | None, int]] = []  # anchor of each open list and mapping, and number of values before it
    nodes = 0
    for event in yaml.parse(text, LOADER):
        if isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in inside):
                raise _mistake(f"the alias '*{shown(event.anchor)}' refers to itself", event.start_mark)
            nodes += sizes.get(str(event.anchor), 1)
        elif isinstance(event, yaml.ScalarEvent):
            nodes += 1
            if event.anchor is not None:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            inside.append((event.anchor, nodes))
            nodes += 1
            if len(inside) > DEEPEST:
                raise _mistake(f"lists and mappings are nested more than {DEEPEST} deep", event.start_mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = inside.pop()
            if anchor is not None:
                sizes[anchor] = nodes - before
        if nodes > MOST_NODES:
            raise _mistake(f"it contains more than {MOST_NODES} values, aliases counted", event.start_mark)


class _TagLoader(_Loader):
    """Loader that reads values with unknown tags as plain values."""


def _construct_plain(loader: Any, tag: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return node.value


_TagLoader.add_multi_constructor("", _construct_plain)


def read_yaml(path: Path, tags: bool = False) -> Any:
    """Read a YAML file (UTF-8) as mappings, lists, texts and numbers; repeated keys are errors.

    Args:
        tags: read values with unknown tags, such as `!!python/object/apply`, as plain data.

    Raises:
        OSError: if the file is not readable.
        UnicodeDecodeError: if it is not text.
        yaml.YAMLError: if it is not YAML, or exceeds the bounds.
    """
    text = read_text(path)
    _check_size(text)
    return yaml.load(text, _TagLoader if tags else _Loader)


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_WORDS = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")  # of YAML 1.1, which ROS uses


def yaml_text(text: str) -> str:
    """Return a text as YAML, quoted if it would have another meaning."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return text if plain else json.dumps(text, ensure_ascii=False)


# -------- XML

_ENCODING = re.compile(rb"""^\s*<\?xml[^>]*?\bencoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")


def read_xml_text(path: Path) -> str:
    """Return the text of an XML file in its stated encoding (declaration or byte order mark), default UTF-8.

    Raises:
        OSError: if it is not readable, too large, or of unknown encoding.
        UnicodeDecodeError: if it is not text of that encoding.
    """
    if path.stat().st_size > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it is larger than {MOST_BYTES // 10**6} MB")
    data = path.read_bytes()
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16")
    stated = _ENCODING.match(data[:300])
    encoding = stated[1].decode("ascii") if stated else "utf-8"
    try:
        text = data.decode("utf-8-sig" if encoding.lower().replace("-", "") == "utf8" else encoding)
    except LookupError:
        said = f"it states the encoding '{shown(encoding)}', which is unknown: save it as UTF-8"
        raise OSError(errno.EINVAL, said) from None
    return text.removeprefix("\ufeff")


def parse_xml(text: str, where: str, what: str) -> ET.Element:
    """Return the root element of a document.

    Raises:
        RobotError: if it is not XML, or nested too deeply.
    """
    try:
        document = ET.fromstring(text)
    except (ET.ParseError, ValueError, LookupError) as e:
        raise RobotError(f"{where}: not {what}, XML error: {e}") from None
    level, depth = list(document), 1
    while level:
        level, depth = [c for e in level for c in e], depth + 1
        if depth > DEEPEST:
            raise RobotError(f"{where}: not {what}: its elements are nested more than {DEEPEST} deep")
    return document


# -------- Arrays

MOST_ARRAYS = 100_000_000  # bytes of all arrays in a file


def load_arrays(path: Path, numbers: Iterable[str] = ()) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file by name; nothing in it is executed.

    Raises:
        OSError: if it cannot be read.
        ValueError: if it is damaged or holds more than MOST_ARRAYS bytes.
        KeyError: if an array is missing.
    """
    try:
        with zipfile.ZipFile(path) as file:
            if sum(item.file_size for item in file.infolist()) > MOST_ARRAYS:
                raise ValueError(f"it contains more than {MOST_ARRAYS // 10**6} MB")
            contents = {item.removesuffix(".npy"): file.read(item) for item in file.namelist()}
            out = {name: read_array(io.BytesIO(content), len(content)) for name, content in contents.items()}
    except OSError:
        raise
    except Exception as e:  # numpy, zipfile, zlib and tokenize have their own errors for damaged files
        raise ValueError(first_line(e)) from None
    for name in numbers:
        if out[name].dtype.kind not in "iuf" or not np.isfinite(out[name]).all():
            raise ValueError(f"{name} must be finite numbers")
    return out


def read_array(file: IO[bytes], size: int) -> np.ndarray:
    """Read an array in numpy's format, checking its size first, since numpy allocates before reading.

    Args:
        size: its size [bytes].

    Raises:
        ValueError: if it holds objects, or its header is wrong; numpy and tokenize may raise others.
    """
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("an array contains objects")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > size:
        raise ValueError("an array does not match its header")
    file.seek(0)
    return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
