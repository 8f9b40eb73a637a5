"""Reader of glTF 2.0 (`.glb`, `.gltf`): joints of an animated skeleton, with stepped, linear (slerp) or cubic keys."""

from __future__ import annotations

import base64
import binascii
import json
import struct
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from humanoid_control.errors import ClipError, first_few, first_line, offer_names
from humanoid_control.mocap.clip import MarkerClip, distinct_labels
from humanoid_control.mocap.clip_file import ClipFile
from humanoid_control.mocap.formats.common import (
    Size,
    ankle_to_head,
    base_step,
    check_count,
    check_growth,
    first_frame_apart,
    scale_of_skeleton,
)
from humanoid_control.mocap.skeleton import head_joint, with_head_front

USUAL_RATE = 30.0  # [Hz] for sparse or uneven keys set by hand
_RATES = (10.0, 1000.0)  # [Hz] of keys that are frames of a recording
_LATE = 0.05  # [frames] tolerance of rounded times at the last frame
_MOST_FRAMES = 2_000_000
_KINDS = {5120: "i1", 5121: "u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
_WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}
_PIVOT = "_$AssimpFbx$_"  # in names of nodes that are one step of a joint transform
_CHUNK = 4096  # frames with transforms in memory
_PATHS = ("translation", "rotation", "scale")


def parse_gltf(file: ClipFile, size: Size, where: str = "", stated: float = 1.0) -> MarkerClip:
    """Return the clip of an animated skeleton.

    Args:
        file: its `part` names the animation; "": longest.
        where: name in messages, if converted.
        stated: unit [m], unless implausible.

    Raises:
        ClipError: if the file is invalid, compressed, or lacks animation or joints.
    """
    try:
        return _Document(file, where or file.where, stated).clip(size)
    except (KeyError, IndexError, TypeError, AttributeError, struct.error, RecursionError, OverflowError) as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise ClipError(f"{file.where}: not a glTF file, or a damaged one ({reason}): export it again") from None
    except ValueError as error:
        raise ClipError(f"{file.where}: is damaged ({first_line(error)}): export it again") from None


@dataclass(frozen=True)
class _Track:
    """Keys of a node property: times (K,) [s], values (K, w), cubic (K, 3, w)."""

    times: np.ndarray
    values: np.ndarray
    how: str

    def at(self, t: np.ndarray, rotation: bool) -> np.ndarray:
        """Return values (T, w) at t [s], constant beyond the keys."""
        times, values = self.times, self.values
        if len(times) == 1:
            return np.repeat(values[:1, 1] if self.how == "CUBICSPLINE" else values[:1], len(t), axis=0)
        t = np.clip(t, times[0], times[-1])
        k = np.clip(np.searchsorted(times, t, side="right") - 1, 0, len(times) - 2)
        if self.how == "STEP":
            return values[np.where(t >= times[-1], len(times) - 1, k)]
        dt = np.maximum(times[k + 1] - times[k], 1e-12)
        u = ((t - times[k]) / dt)[:, None]
        if self.how == "CUBICSPLINE":
            a, b = values[k, 1], values[k + 1, 1]
            out, into = values[k, 2] * dt[:, None], values[k + 1, 0] * dt[:, None]
            found = (
                (2 * u**3 - 3 * u**2 + 1) * a + (u**3 - 2 * u**2 + u) * out + (3 * u**2 - 2 * u**3) * b
                + (u**3 - u**2) * into
            )  # fmt: skip
        elif rotation:
            return _slerp(values[k], values[k + 1], u)
        else:
            found = (1 - u) * values[k] + u * values[k + 1]
        return found


def _slerp(a: np.ndarray, b: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return rotations (T, 4) between unit quaternions, the shorter way; u (T, 1)."""
    cosine = np.sum(a * b, axis=1, keepdims=True)
    b = np.where(cosine < 0, -b, b)
    angle = np.arccos(np.clip(np.abs(cosine), 0.0, 1.0))
    sine = np.sin(angle)
    close = sine < 1e-6
    safe = np.where(close, 1.0, sine)
    return np.where(close, (1 - u) * a + u * b, (np.sin((1 - u) * angle) * a + np.sin(u * angle) * b) / safe)


class _Document:
    """glTF document with buffers; malformed content raises any error."""

    def __init__(self, file: ClipFile, where: str, stated: float) -> None:
        self.file, self.where, self.stated = file, where, stated
        self.up = "+y" if where == file.where else ""  # files converted from another format may have any axes
        data = file.read()
        self.size = len(data)
        self._binary = b""
        if data[:4] == b"glTF":
            data = self._chunks(data)
        try:
            self.json: dict[str, Any] = json.loads(data.decode("utf-8-sig"))
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ClipError(f"{self.where}: not a glTF file: {first_line(error)}") from None
        if not isinstance(self.json, dict) or "asset" not in self.json:
            raise ClipError(f"{self.where}: not a glTF file: it has no 'asset'")
        if not str(self.json["asset"].get("version", "")).startswith("2"):
            raise ClipError(f"{self.where}: is not glTF 2.0, the only supported version: export it again")
        packed = {"EXT_meshopt_compression", "KHR_meshopt_compression"} & set(self.json.get("extensionsRequired", ()))
        if packed:
            raise ClipError(
                f"{self.where}: its numbers are compressed ({min(packed)}): decompress it: gltf-transform copy IN.glb "
                "OUT.glb"
            )
        self._buffers: dict[int, bytes] = {}

    def _chunks(self, data: bytes) -> bytes:
        """Return the JSON of a binary file and store its buffer."""
        _, version, length = struct.unpack_from("<4sII", data)
        if version != 2:
            raise ClipError(f"{self.where}: is binary glTF {version}, only version 2 is supported: export it again")
        if length > len(data):
            raise ClipError(f"{self.where}: ends after {len(data)} of {length} bytes: copy or export it again")
        text, at = b"", 12
        while at + 8 <= length:
            size, kind = struct.unpack_from("<II", data, at)
            chunk = data[at + 8 : at + 8 + size]
            if kind == 0x4E4F534A:
                text = chunk
            elif kind == 0x004E4942 and not self._binary:
                self._binary = chunk
            at += 8 + size + (-size) % 4
        return text

    def _buffer(self, index: int) -> bytes:
        """Return a buffer: binary chunk, data URI or file."""
        if index not in self._buffers:
            uri = self.json["buffers"][index].get("uri")
            if uri is None:
                data = self._binary
            elif uri.startswith("data:"):
                try:
                    data = base64.b64decode(uri.partition(",")[2], validate=True)
                except binascii.Error:
                    raise ClipError(f"{self.where}: buffer {index} is damaged: export it again") from None
            else:
                name = self.file.name.parent / urllib.parse.unquote(uri)
                if name not in self.file.beside():
                    raise ClipError(f"{self.where}: its numbers are in {uri}: put that file into the same folder")
                data = self.file.read(name)
            self._buffers[index] = data
        return self._buffers[index]

    def _accessor(self, index: int) -> np.ndarray:
        """Return numbers (n, w), normalised integers as -1 ... 1."""
        accessor = self.json["accessors"][index]
        kind, width, count = np.dtype(_KINDS[accessor["componentType"]]), _WIDTHS[accessor["type"]], accessor["count"]
        if "sparse" in accessor:
            raise ClipError(
                f"{self.where}: contains sparse accessors, which are not supported: gltf-transform copy IN.glb OUT.glb"
            )
        if "bufferView" not in accessor:  # zeros (glTF 2.0, 5.1.1)
            if count < 1:
                raise ValueError(f"accessor {index} is invalid")
            check_growth(8 * width * count, self.size, self.where)
            return np.zeros((count, width))
        view = self.json["bufferViews"][accessor["bufferView"]]
        start = view.get("byteOffset", 0) + accessor.get("byteOffset", 0)
        step = view.get("byteStride", kind.itemsize * width)
        data = self._buffer(view["buffer"])
        if count < 1 or start < 0 or step < kind.itemsize * width:
            raise ValueError(f"accessor {index} is invalid")
        if start + (count - 1) * step + kind.itemsize * width > len(data):
            raise ClipError(f"{self.where}: ends within its numbers (accessor {index}): copy or export it again")
        table = np.ndarray((count, width), kind, data, start, (step, kind.itemsize)).astype(float)
        if accessor.get("normalized") and kind.kind in "iu":
            table = np.maximum(table / np.iinfo(kind).max, -1.0)
        if not np.isfinite(table).all():
            raise ClipError(f"{self.where}: contains a non-numeric value (accessor {index}): export it again")
        return table

    def _animation(self) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the named or longest animation, and a warning about others."""
        animations = self.json.get("animations") or []
        if not animations:
            raise ClipError(f"{self.where}: contains no animation: export the character with its motion")
        names = [str(a.get("name") or k) for k, a in enumerate(animations)]
        if self.file.part:
            if self.file.part not in names:
                raise ClipError(
                    f"{self.where}: has no animation '{self.file.part}': {offer_names(self.file.part, names)}"
                )
            return animations[names.index(self.file.part)], ()
        lengths = [self._length(a) for a in animations]
        longest = int(np.argmax(lengths))
        others = [n for k, n in enumerate(names) if k != longest]
        if not others:
            return animations[longest], ()
        note = f"the longest of {len(names)} animations is used, '{names[longest]}'; the others are "
        return animations[longest], (f"{note}{first_few(others, 6)}: name one as {self.where}:{others[0]}",)

    def _length(self, animation: Mapping[str, Any]) -> float:
        """Return the time from first to last key [s]."""
        times = [self._accessor(s["input"])[:, 0] for s in animation["samplers"]]
        return max((float(t[-1]) for t in times), default=0.0) - min((float(t[0]) for t in times), default=0.0)

    def _tracks(self, animation: Mapping[str, Any]) -> dict[tuple[int, str], _Track]:
        """Return keys by node and property."""
        tracks = {}
        for channel in animation["channels"]:
            node, path = channel["target"].get("node"), channel["target"]["path"]
            if node is None or path not in _PATHS:
                continue
            sampler = animation["samplers"][channel["sampler"]]
            times, values = self._accessor(sampler["input"])[:, 0], self._accessor(sampler["output"])
            how = sampler.get("interpolation", "LINEAR")
            if how == "CUBICSPLINE":
                values = values.reshape(len(times), 3, -1)
            if len(values) != len(times) or (np.diff(times) < 0).any():
                raise ClipError(f"{self.where}: keyframes of node {node} have inconsistent lengths: export it again")
            tracks[node, path] = _Track(times, values, how)
        if not tracks:
            raise ClipError(f"{self.where}: its animation does not move any node: export the character with its motion")
        return tracks

    def clip(self, size: Size) -> MarkerClip:
        """Return the clip of the skeleton's joints."""
        nodes = self.json["nodes"]
        check_count(len(nodes), self.where)
        animation, notes = self._animation()
        tracks = self._tracks(animation)
        parents = np.full(len(nodes), -1)
        for k, node in enumerate(nodes):
            for child in node.get("children", ()):
                parents[child] = k
        order = _parents_first(parents)
        joints = sorted({j for skin in self.json.get("skins", ()) for j in skin["joints"]}, key=order.index)
        if not joints:  # animations without a mesh have no skin: their skeleton is the moving nodes
            joints = [k for k in order if _moves(k, parents, tracks) and "mesh" not in nodes[k]]
        joints = [j for j in joints if _PIVOT not in str(nodes[j].get("name"))]
        if not joints:
            raise ClipError(f"{self.where}: contains no joints: export the skeleton, too")
        t, rate = _frames(tracks, self.where)
        check_growth(24 * len(t) * len(joints), self.size, self.where)  # before the positions are allocated
        named = [str(nodes[j].get("name") or f"node_{j}") for j in joints]
        head = head_joint(named)
        positions, R_head = np.empty((len(t), len(joints), 3)), np.empty((len(t), 3, 3))
        needed = {int(a) for j in joints for a in _line(j, parents)}
        for first in range(0, len(t), _CHUNK):
            now = t[first : first + _CHUNK]
            X: dict[int, np.ndarray] = {}
            for k in order:
                if k in needed:
                    own = _transforms(nodes[k], k, tracks, now)
                    X[k] = own if parents[k] < 0 else X[int(parents[k])] @ own
            for column, joint in enumerate(joints):
                positions[first : first + _CHUNK, column] = X[joint][:, :3, 3]
            if head >= 0:
                R_head[first : first + _CHUNK] = X[joints[head]][:, :3, :3]
        above = [next((a for a in _line(j, parents)[1:] if a in joints), -1) for j in joints]
        inside = [joints.index(a) if a >= 0 else -1 for a in above]
        labels, warnings = distinct_labels(named)
        start = float(t[0])
        if first_frame_apart(positions):
            positions, R_head, start = positions[1:], R_head[1:], start + 1 / rate
            warnings += ("frame 0 is not part of the motion (a rest pose?): dropped",)
        chain = ankle_to_head(labels, inside, positions)
        scale, unit_notes = scale_of_skeleton(chain, self.where, self.stated, size)
        warnings = (*notes, *warnings, *unit_notes)
        name = PurePath(self.where).stem
        clip = MarkerClip(name, labels, rate, positions * scale, self.where, warnings, "joint", start, self.up)
        if head < 0:
            return clip
        R_head /= np.linalg.norm(R_head, axis=1, keepdims=True)  # nodes may be scaled
        return with_head_front(clip, head, R_head)


def _parents_first(parents: np.ndarray) -> list[int]:
    """Return node indices, parents first; ValueError for cycles."""
    depth = []
    for k in range(len(parents)):
        depth.append(len(_line(k, parents)))
    return [int(k) for k in np.argsort(depth, kind="stable")]


def _line(node: int, parents: np.ndarray) -> list[int]:
    """Return a node and its ancestors; ValueError for cycles."""
    line: list[int] = []
    while node >= 0:
        if len(line) > len(parents):
            raise ValueError("nodes are their own ancestors")
        line.append(node)
        node = int(parents[node])
    return line


def _moves(node: int, parents: np.ndarray, tracks: Mapping[tuple[int, str], _Track]) -> bool:
    """Return True if a node or an ancestor has keys."""
    return any((a, path) in tracks for a in _line(node, parents) for path in _PATHS)


def _frames(tracks: Mapping[tuple[int, str], _Track], where: str) -> tuple[np.ndarray, float]:
    """Return frame times [s] and rate [Hz] of the densest even keys."""
    first = min(track.times[0] for track in tracks.values())
    last = max(track.times[-1] for track in tracks.values())
    longest = max((track.times for track in tracks.values()), key=len)
    rate = USUAL_RATE
    # Exporters omit keys without change: the frame step is the smallest key step.
    if len(longest) > 2 and (step := base_step(np.diff(longest))) > 0 and _RATES[0] <= 1 / step <= _RATES[1]:
        rate = 1 / step
        rate = float(round(rate)) if abs(rate - round(rate)) < 2e-3 * rate else rate
    if not (last - first) * rate < _MOST_FRAMES:
        raise ClipError(f"{where}: is {last - first:.0f} s long, implausible for a recording")
    return first + np.arange(int(np.floor((last - first) * rate + _LATE)) + 1) / rate, rate


def _transforms(
    node: Mapping[str, Any], index: int, tracks: Mapping[tuple[int, str], _Track], t: np.ndarray
) -> np.ndarray:
    """Return the poses (T, 4, 4) of a node in its parent."""
    X = np.zeros((len(t), 4, 4))
    X[:, 3, 3] = 1.0
    if "matrix" in node and not any((index, path) in tracks for path in _PATHS):
        X[:] = np.array(node["matrix"], dtype=float).reshape(4, 4).T
        return X

    def value(path: str, rest: Sequence[float], make: Callable[[np.ndarray], np.ndarray] = np.asarray) -> np.ndarray:

        track = tracks.get((index, path))
        found = (
            track.at(t, path == "rotation") if track else np.tile(np.asarray(node.get(path, rest), float), (len(t), 1))
        )
        return make(found)

    from scipy.spatial.transform import Rotation  # slow import

    R = value("rotation", (0, 0, 0, 1), lambda q: Rotation.from_quat(q).as_matrix())
    X[:, :3, :3] = R * value("scale", (1, 1, 1))[:, None, :]
    X[:, :3, 3] = value("translation", (0, 0, 0))
    return X
