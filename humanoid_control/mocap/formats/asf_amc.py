"""Reader of Acclaim skeletons (.asf) and motions (.amc), as in the CMU database; bones become markers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np

from humanoid_control.documents import decoded
from humanoid_control.errors import ClipError, nearest_names, offer_names
from humanoid_control.mocap.clip import MarkerClip, distinct_labels
from humanoid_control.mocap.formats.common import AS_STATED, Size, check_count, check_growth, floats, scale_of_skeleton
from humanoid_control.mocap.skeleton import fixed_axes, forward_kinematics, head_joint, turned, with_head_front

DATABASE_RATE = 120.0  # [Hz] of the CMU database; files state no rate
ROOT = "root"
_TURNS = ("rx", "ry", "rz")
_BONE_BYTES = 96  # of position and rotation of a bone in a frame
_ROOT_DOF = ("tx", "ty", "tz", *_TURNS)


@dataclass
class Bone:
    """Bone of an ASF skeleton; the root has length zero.

    Attributes:
        parent: index, -1: none.
        direction: unit vector from start to end, file axes, zero pose.
        length: [file units].
        axis: angles of the frame of the degrees of freedom [file's angle unit].
        axis_order: "XYZ": fixed-axis turns about x, then y, then z.
        dof: values in the motion file: "rx", ..., for the root also "tx", ...
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
    """Content of an ASF file.

    Attributes:
        bones: root first, parents before children.
        length_unit: `length` in :units; NaN: none.
        degrees: unit of angles, else radians.
        p_root: (3,) added to the root path [file units].
    """

    bones: tuple[Bone, ...]
    length_unit: float
    degrees: bool
    p_root: np.ndarray


def parse_skeleton(text: str, source: str) -> Skeleton:
    """Return the skeleton of an ASF file; ClipError names an invalid bone."""
    sections = _sections(text)
    for needed in ("root", "bonedata", "hierarchy"):
        if needed not in sections:
            raise ClipError(f"{source}: not a complete ASF file: section :{needed} is missing")
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
    """Return the lines of each section as words, without comments."""
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
    """Return the lines between begin and end, by first word."""
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
    """Return the root as a bone, and its position."""
    entries = {words[0].lower(): words[1:] for words in lines}
    where = f"{source}: :root"
    dof = tuple(word.lower() for word in entries.get("order", _ROOT_DOF))
    if not set(dof) <= set(_ROOT_DOF):
        raise ClipError(f"{where}: order '{' '.join(dof)[:40]}' must contain only {' '.join(_ROOT_DOF)}")
    axis = _vector(entries.get("orientation", ["0", "0", "0"]), f"{where}: orientation")
    order = _order(entries.get("axis", ["XYZ"])[-1:], f"{where}: axis")
    position = _vector(entries.get("position", ["0", "0", "0"]), f"{where}: position")
    return Bone(ROOT, axis=axis, axis_order=order, dof=dof), position


def _bone(words: dict[str, list[str]], source: str) -> Bone:
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
        raise ClipError(f"{where}: dof '{' '.join(dof)[:40]}' is not supported, only {', '.join(_TURNS)}")
    axis = _vector(words["axis"][:3], f"{where}: axis")
    order = _order(words["axis"][3:4] or ["XYZ"], f"{where}: axis")
    return Bone(name, -1, direction / size if size else direction, float(length[0]), axis, order, dof)


def _tree(lines: list[list[str]], bones: dict[str, Bone], source: str) -> list[Bone]:
    """Return the bones with parents set, parents first."""
    children: dict[str, list[str]] = {}
    for words in lines:
        if words[0] in ("begin", "end"):
            continue
        for name in words:
            if name not in bones:
                offer = offer_names(name, bones, "bones")
                raise ClipError(f"{source}: :hierarchy names the unknown bone {name[:40]!r}: {offer}")
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
        raise ClipError(f"{source}: bone '{min(loose)}' has no parent: complete :hierarchy")
    return ordered


def _order(words: list[str], what: str) -> str:
    """Return an axis order such as XYZ."""
    order = "".join(words).upper()
    if sorted(order) != ["X", "Y", "Z"]:
        raise ClipError(f"{what}: {order[:20]!r} is not a permutation of X, Y, Z")
    return order


def _vector(words: list[str], what: str) -> np.ndarray:
    """Return three finite numbers."""
    numbers = floats(words, what)
    if numbers.shape != (3,):
        raise ClipError(f"{what} has {numbers.size} numbers, not 3")
    return numbers


# -------- the motion


def skeleton_beside(path: PurePath, beside: Sequence[PurePath], where: str = "") -> PurePath:
    """Return the .asf file of an .amc file.

    `11_01.amc` belongs to `11.asf`, `walk.amc` to `walk.asf`, else the only .asf file in the folder.

    Args:
        beside: files in the folder, sorted.
        where: name in messages; "": path.

    Raises:
        ClipError: if there is no unique skeleton.
    """
    where = where or str(path)
    found = [p for p in beside if p.suffix.lower() == ".asf"]
    stem = path.stem.casefold()
    fitting = [p for p in found if stem == p.stem.casefold() or stem.startswith(f"{p.stem.casefold()}_")]
    if fitting:
        return max(fitting, key=lambda p: len(p.stem))
    if len(found) == 1:
        return found[0]
    subject = path.stem.partition("_")[0]
    if not found:
        raise ClipError(f"{where}: skeleton not found: put {subject}.asf into the same folder")
    raise ClipError(
        f"{where}: cannot choose a skeleton: found {', '.join(p.name for p in found[:3])}, "
        f"but not {subject}.asf: rename the right one"
    )


def parse_amc(
    data: bytes,
    source: str,
    skeleton_data: bytes,
    skeleton_source: str,
    rate: float | None = None,
    size: Size = AS_STATED,
) -> MarkerClip:
    """Return an AMC file as a clip of bone starts, and ends of the last bones.

    "lradius" is the elbow, "<bone>_end" the end of a bone without children. The length unit is 1/length inches (CMU:
    1/0.45 inch = 0.056444 m), unless implausible.

    Args:
        skeleton_data: bytes of the .asf file.
        skeleton_source: its path.
        rate: [Hz]; default: 120 Hz of the CMU database, with a warning.

    Raises:
        ClipError: if files are invalid or do not match, or no unit gives a person.
    """
    skeleton = parse_skeleton(decoded(skeleton_data), skeleton_source)
    degrees, values = _motion(decoded(data), skeleton, source)
    check_count(len(skeleton.bones), skeleton_source)
    check_growth(_BONE_BYTES * len(skeleton.bones) * len(values[ROOT]), len(data) + len(skeleton_data), source)
    names, positions, R_head = bone_points(skeleton, values, degrees)
    labels, warnings = distinct_labels(names)
    stated = 0.0254 / skeleton.length_unit if skeleton.length_unit > 0 else None
    scale, unit_note = scale_of_skeleton(_ankle_to_head(skeleton.bones), skeleton_source, stated, size)
    if rate is None:
        rate = DATABASE_RATE
        warnings += (f"AMC files contain no frame rate: {rate:g} Hz is assumed, as in the CMU database",)
    name = PurePath(source).stem
    clip = MarkerClip(name, labels, rate, positions * scale, source, warnings + unit_note, "joint")
    return clip if R_head is None else with_head_front(clip, head_joint(names), R_head)


def bone_points(
    skeleton: Skeleton, values: dict[str, np.ndarray], degrees: bool
) -> tuple[list[str], np.ndarray, np.ndarray | None]:
    """Return names and positions (T, P, 3) [file units] of bone starts and last ends, head rotations (T, 3, 3) or None.

    A bone starts at its parent's end and turns by C M C^-1: C by its axis angles, M by its degrees of freedom in listed
    order, both about fixed axes.

    Args:
        values: bone -> (T, dof); absent bones rest.
        degrees: of `values`.
    """
    bones, n_frames = skeleton.bones, len(values[ROOT])
    to_rad = np.pi / 180 if degrees else 1.0
    axis_to_rad = np.pi / 180 if skeleton.degrees else 1.0
    ends = [bone.length * bone.direction for bone in bones]
    p_PB, R_PB = [], []
    for bone in bones:
        dof = values.get(bone.name, np.zeros((n_frames, len(bone.dof))))
        order = ["XYZ".index(axis) for axis in bone.axis_order]
        C = fixed_axes([(axis, bone.axis[None, axis] * axis_to_rad) for axis in order], 1)
        turns = [k for k, name in enumerate(bone.dof) if name.startswith("r")]
        M = fixed_axes([("xyz".index(bone.dof[k][1]), dof[:, k] * to_rad) for k in turns], n_frames)
        R_PB.append(C @ M @ C.swapaxes(1, 2))
        if bone.parent >= 0:
            p_PB.append(ends[bone.parent])
            continue
        p_root = np.tile(skeleton.p_root, (n_frames, 1))
        for k in set(range(len(bone.dof))) - set(turns):
            p_root[:, "xyz".index(bone.dof[k][1])] += dof[:, k]
        p_PB.append(p_root)
    parents = [bone.parent for bone in bones]
    p_WB, R_WB = forward_kinematics(parents, p_PB, R_PB)
    names: list[str] = []
    points: list[np.ndarray] = []
    for index, bone in enumerate(bones):
        names.append(bone.name)
        points.append(p_WB[index])
        if index not in parents:
            names.append(f"{bone.name}_end")
            points.append(p_WB[index] + turned(R_WB[index], ends[index]))
    head = head_joint([bone.name for bone in bones])
    return names, np.stack(points, axis=1), R_WB[head] if head >= 0 else None


def _motion(text: str, skeleton: Skeleton, source: str) -> tuple[bool, dict[str, np.ndarray]]:
    """Return True for degrees, and bone -> values (T, dof)."""
    degrees = skeleton.degrees
    width = {bone.name: len(bone.dof) for bone in skeleton.bones}
    frames: list[dict[str, np.ndarray]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        if words[0].startswith(":"):
            if words[0].upper() in (":DEGREES", ":RADIANS"):
                degrees = words[0].upper() == ":DEGREES"
        elif len(words) == 1 and words[0].isdigit():
            frames.append({})
        elif not frames:
            raise ClipError(f"{source}: not an AMC file: line {number} comes before the number of the first frame")
        else:
            frames[-1][words[0]] = _values(words, width, f"{source}: line {number}")
    if not frames:
        raise ClipError(f"{source}: not an AMC file, or one without frames: copy or export it again")
    for number, frame in enumerate(frames, start=1):
        if frame.keys() != frames[0].keys() or ROOT not in frame:
            lacking = (frames[0].keys() | {ROOT}) - frame.keys() or frame.keys() - frames[0].keys()
            raise ClipError(f"{source}: frame {number} of {len(frames)} differs in '{min(lacking)}': it is cut off")
    return degrees, {bone: np.array([frame[bone] for frame in frames]) for bone in frames[0]}


def _values(words: list[str], width: dict[str, int], where: str) -> np.ndarray:
    """Return a bone's numbers in a frame, one per degree of freedom."""
    bone, *rest = words
    if bone not in width:
        near = nearest_names(bone, width)
        offer = f"the nearest are {', '.join(near)}" if near else "is this the right .asf file?"
        raise ClipError(f"{where}: the skeleton has no bone {bone[:40]!r}: {offer}")
    if len(rest) != width[bone]:
        raise ClipError(f"{where}: bone '{bone}' has {len(rest)} values, its skeleton {width[bone]} degrees of freedom")
    return floats(rest, where)


def _ankle_to_head(bones: tuple[Bone, ...]) -> float:
    """Return the bone length from ankle to head [file units], else of all bones."""

    def above(word: str) -> set[int]:
        index = next((i for i, bone in enumerate(bones) if word in bone.name.lower()), -1)
        chain = set()
        while index >= 0:
            index = bones[index].parent
            chain.add(index)
        return chain

    foot, head = above("foot"), above("head")
    chosen = (foot ^ head) - {-1} if foot and head else range(len(bones))
    return float(sum(bones[i].length for i in chosen))
