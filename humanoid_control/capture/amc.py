"""ASF and AMC: a skeleton (.asf) and one of its motions (.amc), as the CMU motion capture database has them."""

from __future__ import annotations

from pathlib import Path, PurePath

import numpy as np

from humanoid_control.capture.asf_format import ROOT, Bone, Skeleton, parse_skeleton
from humanoid_control.capture.clip import MarkerClip, distinct_labels
from humanoid_control.capture.rotations import rotation
from humanoid_control.capture.text_numbers import floats
from humanoid_control.capture.units import scale_of_skeleton
from humanoid_control.errors import ClipError, nearest_names

DATABASE_RATE = 120.0  # [Hz] of the CMU database; the file itself says none


def skeleton_beside(path: Path) -> Path:
    """The .asf file that belongs to an .amc file.

    `11_01.amc` belongs to `11.asf`, `walk.amc` to `walk.asf`, both in the same folder; otherwise to the only .asf file
    there.

    Raises:
        ClipError: none there, or several and none of that name.
    """
    found = sorted(p for p in path.parent.iterdir() if p.suffix.lower() == ".asf")
    stem = path.stem.casefold()
    fitting = [p for p in found if stem == p.stem.casefold() or stem.startswith(f"{p.stem.casefold()}_")]
    if fitting:
        return max(fitting, key=lambda p: len(p.stem))
    if len(found) == 1:
        return found[0]
    subject = path.stem.partition("_")[0]
    if not found:
        raise ClipError(f"{path}: its skeleton is missing: put {subject}.asf into the same folder")
    raise ClipError(
        f"{path}: which skeleton is its own? {', '.join(p.name for p in found[:3])} are there, "
        f"{subject}.asf is not: rename the right one"
    )


def parse_amc(
    data: bytes, source: str, skeleton_data: bytes, skeleton_source: str, rate: float | None = None
) -> MarkerClip:
    """Read an AMC file as a clip whose markers are the starts of the bones, and the ends of the last ones.

    That is how BVH names joints: "lradius" is the elbow. The end of a bone without children is "<bone>_end".

    The length unit of an ASF file is 1/length inches (CMU: 1/0.45 inch = 0.056444 m). It is believed as long as a
    person of that size can be; otherwise the unit that fits is used, with a warning.

    Args:
        data: the bytes of the .amc file.
        source: its path, for messages and the clip's name.
        skeleton_data: the bytes of the .asf file.
        skeleton_source: its path.
        rate: frames a second [Hz]; by default that of the CMU database, 120 Hz, with a warning.

    Raises:
        ClipError: damaged, cut off, motion and skeleton that do not fit, or not a person's size in any unit.
    """
    skeleton = parse_skeleton(skeleton_data.decode("utf-8-sig", errors="replace"), skeleton_source)
    degrees, values = _motion(data.decode("utf-8-sig", errors="replace"), skeleton, source)
    names, positions = forward_kinematics(skeleton, values, degrees)
    labels, warnings = distinct_labels(names)
    stated = 0.0254 / skeleton.length_unit if skeleton.length_unit > 0 else None
    scale, unit_note = scale_of_skeleton(_ankle_to_head(skeleton.bones), skeleton_source, stated)
    if rate is None:
        rate = DATABASE_RATE
        warnings += (f"AMC files state no frame rate: {rate:g} Hz is taken, that of the CMU database",)
    return MarkerClip(PurePath(source).stem, labels, rate, positions * scale, source, warnings + unit_note)


def forward_kinematics(
    skeleton: Skeleton, values: dict[str, np.ndarray], degrees: bool
) -> tuple[list[str], np.ndarray]:
    """Where every bone starts and where the last ones end, in every frame.

    R_WB = R_WP C M C^-1 and p_end = p_start + R_WB (length direction). C turns by the bone's axis angles, M by its
    degrees of freedom: the one listed first turns first, both about fixed axes.

    Args:
        skeleton: bones, parents first.
        values: (T, dof) by bone name; a bone that is not there rests.
        degrees: whether `values` are degrees.

    Returns:
        Names, and (T, P, 3) positions in the axes and units of the file.
    """
    n_frames = len(values[ROOT])
    to_rad = np.pi / 180 if degrees else 1.0
    axis_to_rad = np.pi / 180 if skeleton.degrees else 1.0
    R_W: list[np.ndarray] = []
    ends: list[np.ndarray] = []
    names: list[str] = []
    points: list[np.ndarray] = []
    leaves = set(range(len(skeleton.bones))) - {bone.parent for bone in skeleton.bones}
    for index, bone in enumerate(skeleton.bones):
        dof = values.get(bone.name, np.zeros((n_frames, len(bone.dof))))
        C = _turn(bone.axis_order, bone.axis[None, ["XYZ".index(a) for a in bone.axis_order]] * axis_to_rad)
        turns = [k for k, name in enumerate(bone.dof) if name.startswith("r")]
        M = _turn("".join(bone.dof[k][1].upper() for k in turns), dof[:, turns] * to_rad)
        R_local = C @ M @ C.swapaxes(1, 2)
        if index == 0:
            start = np.tile(skeleton.p_root, (n_frames, 1))
            for k in set(range(len(bone.dof))) - set(turns):
                start[:, "xyz".index(bone.dof[k][1])] += dof[:, k]
            R = R_local
        else:
            start = ends[bone.parent]
            R = R_W[bone.parent] @ R_local
        end = start + R @ (bone.length * bone.direction)
        R_W.append(R)
        ends.append(end)
        names.append(bone.name)
        points.append(start)
        if index in leaves:
            names.append(f"{bone.name}_end")
            points.append(end)
    return names, np.stack(points, axis=1)


def _turn(order: str, angles: np.ndarray) -> np.ndarray:
    """(T, 3, 3) rotation by angles (T, len(order)) [rad] about fixed axes, the first one first."""
    R = np.broadcast_to(np.eye(3), (len(angles), 3, 3))
    for k, axis in enumerate(order):
        R = rotation("XYZ".index(axis), angles[:, k]) @ R
    return R


def _motion(text: str, skeleton: Skeleton, source: str) -> tuple[bool, dict[str, np.ndarray]]:
    """The frames of an AMC file: whether its angles are degrees, and (T, dof) values by bone."""
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
    """The numbers of one bone in one frame, as many as its skeleton has degrees of freedom."""
    bone, *rest = words
    if bone not in width:
        near = nearest_names(bone, width)
        offer = f"the nearest are {', '.join(near)}" if near else "is this the right .asf file?"
        raise ClipError(f"{where}: the skeleton has no bone {bone[:40]!r}: {offer}")
    if len(rest) != width[bone]:
        raise ClipError(f"{where}: bone '{bone}' has {len(rest)} values, its skeleton {width[bone]} degrees of freedom")
    return floats(rest, where)


def _ankle_to_head(bones: tuple[Bone, ...]) -> float:
    """Length of the bones between an ankle and the start of the head [file units]; all bones when they have no names.

    The ankle is the start of the first bone with "foot" in its name.
    """

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
