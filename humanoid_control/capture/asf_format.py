"""The text of an ASF file: the bones of an Acclaim skeleton, their lengths, directions and degrees of freedom."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from humanoid_control.capture.text_numbers import floats
from humanoid_control.errors import ClipError, nearest_names

ROOT = "root"
_TURNS = ("rx", "ry", "rz")
_ROOT_DOF = ("tx", "ty", "tz", *_TURNS)


@dataclass
class Bone:
    """One bone of an ASF skeleton; the root is a bone of length zero.

    Args:
        name: as the file spells it; the root is "root".
        parent: index of the parent, -1 for the root.
        direction: unit vector from the bone's start to its end, in the axes of the file, in the zero pose.
        length: [file units].
        axis: angles [file's angle unit] of the frame in which the degrees of freedom turn.
        axis_order: "XYZ": these angles turn about x first, then y, then z, all of them fixed axes.
        dof: the values the motion file gives for this bone, in its order: "rx", ..., for the root also "tx", ...
    """

    name: str
    parent: int = -1
    direction: np.ndarray = field(default_factory=lambda: np.zeros(3))
    length: float = 0.0
    axis: np.ndarray = field(default_factory=lambda: np.zeros(3))
    axis_order: str = "XYZ"
    dof: tuple[str, ...] = ()


@dataclass(frozen=True)
class Skeleton:
    """What an ASF file says.

    Args:
        bones: the root and its bones, parents first.
        length_unit: the number after `length` in :units; NaN when the file gives none.
        degrees: whether angles are degrees; radians otherwise.
        p_root: (3,) position of the root [file units], to which the motion's is added.
    """

    bones: tuple[Bone, ...]
    length_unit: float
    degrees: bool
    p_root: np.ndarray


def parse_skeleton(text: str, source: str) -> Skeleton:
    """The skeleton of an ASF file.

    Raises:
        ClipError: not an ASF file, cut off, or a bone that makes no sense; the message names the bone.
    """
    sections = _sections(text)
    for needed in ("root", "bonedata", "hierarchy"):
        if needed not in sections:
            raise ClipError(f"{source}: not a complete ASF file: it has no section :{needed}")
    units = {words[0]: words[1] for words in sections.get("units", []) if len(words) > 1}
    root, p_root = _root(sections["root"], source)
    bones = {ROOT: root}
    for words in _blocks(sections["bonedata"], f"{source}: :bonedata"):
        bone = _bone(words, source)
        if bone.name in bones:
            raise ClipError(f"{source}: bone '{bone.name}' occurs more than once: rename one of them")
        bones[bone.name] = bone
    ordered = _tree(sections["hierarchy"], bones, source)
    unit = units.get("length")
    return Skeleton(
        bones=tuple(ordered),
        length_unit=floats([unit], f"{source}: length in :units")[0] if unit else float("nan"),
        degrees=not units.get("angle", "deg").lower().startswith("rad"),
        p_root=p_root,
    )


def _sections(text: str) -> dict[str, list[list[str]]]:
    """The lines of each section as words; comments and empty lines are left out."""
    sections: dict[str, list[list[str]]] = {}
    current: list[list[str]] = []
    for line in text.splitlines():
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        if words[0].startswith(":"):
            current = sections.setdefault(words[0][1:].lower(), [])
            words = words[1:]
        if words:
            current.append(words)
    return sections


def _blocks(lines: list[list[str]], what: str) -> list[dict[str, list[str]]]:
    """The lines between each begin and end, by their first word."""
    blocks = []
    block: dict[str, list[str]] | None = None
    for keyword, *rest in lines:
        if keyword == "begin":
            block = {}
        elif keyword == "end" and block is not None:
            blocks.append(block)
            block = None
        elif block is None:
            raise ClipError(f"{what}: {keyword[:30]!r} outside begin and end: the file is damaged")
        else:
            block.setdefault(keyword.lower(), rest)
    if block is not None:
        raise ClipError(f"{what}: ends before its last 'end': copy or export it again")
    return blocks


def _root(lines: list[list[str]], source: str) -> tuple[Bone, np.ndarray]:
    """The root as a bone, and its position."""
    entries = {words[0].lower(): words[1:] for words in lines}
    where = f"{source}: :root"
    dof = tuple(word.lower() for word in entries.get("order", _ROOT_DOF))
    if not set(dof) <= set(_ROOT_DOF):
        raise ClipError(f"{where}: order '{' '.join(dof)[:40]}' holds something else than {' '.join(_ROOT_DOF)}")
    axis = _vector(entries.get("orientation", ["0", "0", "0"]), f"{where}: orientation")
    order = _order(entries.get("axis", ["XYZ"])[-1:], f"{where}: axis")
    position = _vector(entries.get("position", ["0", "0", "0"]), f"{where}: position")
    return Bone(ROOT, axis=axis, axis_order=order, dof=dof), position


def _bone(words: dict[str, list[str]], source: str) -> Bone:
    """One bone from its block."""
    name = " ".join(words.get("name", []))
    if not name:
        raise ClipError(f"{source}: a bone without a name: the file is damaged")
    where = f"{source}: bone {name[:40]!r}"
    for needed in ("direction", "length", "axis"):
        if needed not in words:
            raise ClipError(f"{where} has no {needed}: the file is damaged")
    direction = _vector(words["direction"], f"{where}: direction")
    size = float(np.linalg.norm(direction))
    length = floats(words["length"][:1], f"{where}: length")
    if length.size != 1 or length[0] < 0 or (size == 0 and length[0] > 0):
        raise ClipError(f"{where}: length {' '.join(words['length'])[:20]} along ({' '.join(words['direction'])[:40]})")
    dof = tuple(word.lower() for word in words.get("dof", []))
    if not set(dof) <= set(_TURNS):
        raise ClipError(f"{where}: dof '{' '.join(dof)[:40]}' is not read, only {', '.join(_TURNS)}")
    axis = _vector(words["axis"][:3], f"{where}: axis")
    order = _order(words["axis"][3:4] or ["XYZ"], f"{where}: axis")
    return Bone(name, -1, direction / size if size else direction, float(length[0]), axis, order, dof)


def _tree(lines: list[list[str]], bones: dict[str, Bone], source: str) -> list[Bone]:
    """The bones in an order in which parents come first, with their parents set."""
    children: dict[str, list[str]] = {}
    for words in lines:
        if words[0] in ("begin", "end"):
            continue
        for name in words:
            if name not in bones:
                near = nearest_names(name, bones)
                offer = f": did you mean {near[0]}?" if near else ""
                raise ClipError(f"{source}: :hierarchy names the unknown bone {name[:40]!r}{offer}")
        children.setdefault(words[0], []).extend(words[1:])
    ordered: list[Bone] = []
    waiting = [(ROOT, -1)]
    while waiting:
        name, parent = waiting.pop(0)
        if any(bone.name == name for bone in ordered):
            raise ClipError(f"{source}: :hierarchy names the bone '{name}' twice: the file is damaged")
        bones[name].parent = parent
        ordered.append(bones[name])
        waiting += [(child, len(ordered) - 1) for child in children.get(name, [])]
    loose = set(bones) - {bone.name for bone in ordered}
    if loose:
        raise ClipError(f"{source}: bone '{min(loose)}' hangs on nothing: complete :hierarchy")
    return ordered


def _order(words: list[str], what: str) -> str:
    """An order of axes like XYZ."""
    order = "".join(words).upper()
    if sorted(order) != ["X", "Y", "Z"]:
        raise ClipError(f"{what}: {order[:20]!r} is no order of X, Y and Z")
    return order


def _vector(words: list[str], what: str) -> np.ndarray:
    """Three finite numbers."""
    numbers = floats(words, what)
    if numbers.shape != (3,):
        raise ClipError(f"{what} has {numbers.size} numbers, not 3")
    return numbers
