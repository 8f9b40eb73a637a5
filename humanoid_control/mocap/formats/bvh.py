"""Reader of BVH: joint hierarchy and channel values; joints become markers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np

from humanoid_control.documents import decoded
from humanoid_control.errors import ClipError
from humanoid_control.mocap.clip import MarkerClip, distinct_labels
from humanoid_control.mocap.formats.common import (
    AS_STATED,
    Size,
    ankle_to_head,
    check_count,
    check_growth,
    first_frame_apart,
    floats,
    largest_steps,
    scale_of_skeleton,
)
from humanoid_control.mocap.skeleton import forward_kinematics, head_joint, moving_axes, with_head_front

_STANDS = 0.9  # share of the vector from feet to head along one axis
_REST_SHARE = 0.75  # of the rotations that turn later and are exactly 0; recordings have hardly one
_ZERO = 1e-3  # [deg] "exactly 0" after rounding
_REST_STEP = 3.0  # ratio to the next step: a motion from the rest pose starts slowly
_REST_DISTANCE = 0.005  # of the skeleton's size: smaller distances from rest pose to motion are harmless
_MOVES = 0.5  # smallest change of a rotation in a motion, in radians, too
_JOINT_BYTES = 24  # of the position of a joint in a frame
_BLOCK, _FRAMES = 1_000_000, 4096  # characters and frames processed at a time
_TWO_LINES = re.compile(r"\s*([^\n]*)\n([^\n]*)\n(?=\s*\S)")
_CHANNELS = frozenset(f"{axis}{kind}" for axis in "XYZ" for kind in ("position", "rotation"))


@dataclass
class BvhJoint:
    """Joint or end site of a BVH hierarchy, parents first.

    Attributes:
        name: an end site is "<parent>_end".
        parent: index, -1: root.
        offset: position in the parent without position channels [file units].
        channels: such as ["Xposition", "Zrotation"], in file order.
    """

    name: str
    parent: int
    offset: np.ndarray = field(default_factory=lambda: np.zeros(3))
    channels: list[str] = field(default_factory=list)


def parse_bvh(data: bytes, source: str, rate: float | None = None, size: Size = AS_STATED) -> MarkerClip:
    """Return a BVH file as a clip of joints and end sites.

    The unit follows from the bones between ankle and head. A rest pose is dropped with a warning; see `rest_frames`.

    Args:
        rate: [Hz]; overrides the stated one.

    Raises:
        ClipError: if the file is invalid, or no unit gives a person.
    """
    text = decoded(data)
    if "\r" in text:  # Windows or old Mac line ends
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.lstrip().startswith("HIERARCHY"):
        raise ClipError(f"{source}: not a BVH file: it must begin with HIERARCHY")
    motion = re.search(r"^\s*MOTION\s*$", text, flags=re.MULTILINE)
    if not motion:
        raise ClipError(f"{source}: ends before MOTION: copy or export it again")
    joints = parse_hierarchy(text[: motion.start()], source)
    stated, values = parse_motion(text, sum(len(joint.channels) for joint in joints), source, motion.end())
    check_growth(_JOINT_BYTES * len(joints) * len(values), len(data), source)
    labels, warnings = distinct_labels([joint.name for joint in joints])
    declared = int(re.sub(r"\D", "", text[motion.end() : motion.end() + 200].lstrip().partition("\n")[0]) or 0)
    if len(values) > declared:
        warnings += (f"the header declares {declared} frames, the file contains {len(values)}: all are used",)
    if rate is not None and abs(rate / stated - 1) > 1e-3:
        warnings += (f"the file states {stated:.6g} Hz: the given {rate:g} Hz is used",)
    rate = stated if rate is None else rate
    del text, data  # each is larger than the numbers of a long recording
    head = head_joint(labels)
    positions, R_head = joint_poses(joints, values, head)
    factor, sure = root_factor(joints, positions)
    if factor != 1.0 and sure:
        positions += (factor - 1.0) * positions[:, :1]
        warnings += (f"the root moves in another unit than the bones: its path is multiplied by {factor:.4g}",)
    elif factor != 1.0:
        beside = f"{factor:.4g} times its height beside the legs"
        warnings += (f"the root height seems to be in another unit than the bones ({beside}): check it",)
    n_rest, jump = rest_frames(joints, values, positions)
    if small := _in_radians(joints, values[n_rest:]):
        warnings += (small,)
    positions, R_head = positions[n_rest:], R_head[n_rest:]
    scale, unit_note = scale_of_skeleton(
        ankle_to_head([j.name for j in joints], [j.parent for j in joints], positions), source, size=size
    )
    if n_rest:
        which = "frame 0 is a rest pose" if n_rest == 1 else f"frames 0 to {n_rest - 1} are a rest pose"
        warnings += (f"{which}, {jump * scale:.2f} m from frame {n_rest}: dropped",)
    name, up = PurePath(source).stem, rest_up(joints)
    clip = MarkerClip(name, labels, rate, positions * scale, source, warnings + unit_note, "joint", up=up)
    return clip if head < 0 else with_head_front(clip, head, R_head)


_KEYWORDS = {word.upper(): word for word in ("HIERARCHY", "ROOT", "JOINT", "End", "OFFSET", "CHANNELS")}
_ROOT_UNITS = (1.0, 100.0, 0.01, 1000.0, 0.001, 10.0, 0.1, 39.37, 1 / 39.37, 2.54, 1 / 2.54)
_STILL = 0.25  # speed of the standing foot, relative to the speed without factor, below which the factor is accepted
_FAR, _ALIKE = 30.0, 0.15  # height factor impossible for a posture; relative difference to the legs
_FEWEST, _LEAST_WAY = 10, 0.3  # smallest number of frames, and path of the feet about the root in leg lengths


def _in_radians(joints: list[BvhJoint], values: np.ndarray) -> str:
    """Warn if no rotation of values (T, C) exceeds a turn in radians."""
    channels = [name for joint in joints for name in joint.channels]
    turns = values[:, [name.endswith("rotation") for name in channels]]
    most = float(np.abs(turns).max(initial=0.0))
    if turns.size and float(np.ptp(turns, axis=0).max()) > _MOVES and most <= 2 * np.pi:
        return f"no rotation is larger than {most:.3g}: BVH files are in degrees, is this one in radians?"
    return ""


def root_factor(joints: list[BvhJoint], positions: np.ndarray) -> tuple[float, bool]:
    """Return a unit factor for the root path, and True if certain; 1 if not needed.

    Bones and root may differ in unit. Only with the right factor is the slower foot slow in stance. Otherwise the root
    height relative to the legs suggests a factor.

    Args:
        joints: parents first.
        positions: (T, J, 3) [file units].
    """
    feet = [k for k, joint in enumerate(joints) if any(word in joint.name.lower() for word in ("foot", "ankle"))]
    feet = [k for k in feet if not any(k != j and _is_above(joints, j, k) for j in feet)]
    if len(feet) != 2 or len(positions) < _FEWEST:
        return 1.0, False
    about = positions[:, feet] - positions[:, :1]
    v_root, v_feet = np.diff(positions[:, :1], axis=0), np.diff(about, axis=0)
    down = np.median(about, axis=(0, 1))
    legs = float(np.median(np.linalg.norm(about, axis=2)))
    if np.linalg.norm(v_feet, axis=2).sum() > _LEAST_WAY * legs:
        slow = {
            f: float(np.median(np.linalg.norm(v_feet + f * v_root, axis=2).min(axis=1))) for f in (0.0, *_ROOT_UNITS)
        }
        best = min(_ROOT_UNITS, key=lambda f: slow[f])
        if slow[best] < _STILL * min(slow[0.0], slow[1.0]):
            return best, True
    axis = int(np.argmax(np.abs(down)))
    height = -float(np.sign(down[axis]) * np.median(positions[:, 0, axis]))
    far = [f for f in _ROOT_UNITS if max(f, 1 / f) > _FAR and abs(f * height - legs) < _ALIKE * legs]
    return (far[0], False) if far else (1.0, False)


def _is_above(joints: list[BvhJoint], j: int, k: int) -> bool:
    """Return True if joint j is an ancestor of k."""
    while k >= 0 and k != j:
        k = joints[k].parent
    return k == j


def parse_hierarchy(text: str, source: str) -> list[BvhJoint]:
    """Return the joints of the HIERARCHY part, parents first; ClipError names an invalid one."""
    joints: list[BvhJoint] = []
    open_joints: list[int] = []
    awaits_brace = False
    for line in text.replace("{", "\n{\n").replace("}", "\n}\n").splitlines():
        keyword, rest = [*line.split(None, 1), "", ""][:2]
        keyword = _KEYWORDS.get(keyword.upper(), keyword)
        current = joints[open_joints[-1]] if open_joints else None
        if keyword in ("ROOT", "JOINT", "End") and not awaits_brace and (keyword == "ROOT") == (not joints):
            name = f"{current.name}_end" if current and keyword == "End" else rest.strip()
            check_count(len(joints) + 1, source)
            joints.append(BvhJoint(name, open_joints[-1] if open_joints else -1))
            awaits_brace = True
        elif keyword == "{" and awaits_brace:
            open_joints.append(len(joints) - 1)
            awaits_brace = False
        elif keyword == "}" and open_joints:
            open_joints.pop()
        elif keyword == "OFFSET" and current:
            current.offset = floats(rest.split(), f"{source}: OFFSET of {current.name!r}")
            if current.offset.shape != (3,):
                raise ClipError(f"{source}: OFFSET of {current.name!r} has {current.offset.size} numbers, not 3")
        elif keyword == "CHANNELS" and current:
            current.channels = _channels(rest.split(), f"{source}: CHANNELS of {current.name!r}")
        elif keyword not in ("", "HIERARCHY"):
            raise ClipError(f"{source}: {line.strip()[:40]!r} is invalid in the hierarchy: the file is damaged")
    if not joints or open_joints or awaits_brace:
        raise ClipError(f"{source}: the hierarchy is not complete (a brace is missing): copy or export it again")
    if any(joint.parent < 0 for joint in joints[1:]):
        raise ClipError(f"{source}: the skeleton is not connected: every joint must be inside the braces of ROOT")
    return joints


def _channels(words: list[str], what: str) -> list[str]:
    """Return the channel names as "Xposition", "Xrotation"."""
    names = [word[:1].upper() + word[1:].lower() for word in words[1:]]
    if not words or words[0] != str(len(names)) or not _CHANNELS.issuperset(names):
        raise ClipError(
            f"{what}: {' '.join(words)[:60]!r} is not a count followed by that number of Xposition ... Zrotation"
        )
    if len(set(names)) < len(names):
        raise ClipError(f"{what}: {' '.join(words)[:60]!r} names a channel twice: correct the order of its axes")
    return names


def parse_motion(text: str, n_channels: int, source: str, start: int = 0) -> tuple[float, np.ndarray]:
    """Return rate [Hz] and channel values (T, C) [file units, degrees] of the MOTION part.

    Args:
        text: MOTION ends at `start`.
        n_channels: C.
        start: index in the text.

    Raises:
        ClipError: if numbers are missing or invalid.
    """
    head = _TWO_LINES.match(text, start)
    count, separator, dt = (head[1].partition(":")[2], *head[2].partition(":")[1:]) if head else ("",) * 3
    if not (head and separator and count.strip().isdigit()):
        raise ClipError(f"{source}: MOTION must be followed by 'Frames: <count>', 'Frame Time: <s>' and the frames")
    step = floats([dt.strip()], f"{source}: Frame Time")[0]
    if not 1e-5 < step < 1:
        what = f"is it {1000 / step:.4g} Hz in milliseconds, or {step:.4g} Hz? " if step >= 1 else ""
        raise ClipError(f"{source}: Frame Time is {step:g} s: {what}correct it in the file")
    values = _numbers(text, head.end(), f"{source}: the frames")
    n_frames = int(count)
    if n_channels and values.size > n_frames * n_channels and values.size % n_channels == 0:
        n_frames = values.size // n_channels  # some exporters do not count the rest pose
    if values.size != n_frames * n_channels:
        raise ClipError(
            f"{source}: {n_frames} frames of {n_channels} channels need {n_frames * n_channels} numbers, the file "
            f"contains {values.size}: it is {'cut off' if values.size < n_frames * n_channels else 'damaged'}"
        )
    rate = 1.0 / step
    whole = round(rate)  # 0.0083333 means 120 Hz
    return (float(whole) if abs(rate - whole) < 1e-4 * rate else rate), values.reshape(n_frames, n_channels)


def _numbers(text: str, start: int, what: str) -> np.ndarray:
    """Return the numbers of a text, in blocks to save memory."""
    parts = []
    while start < len(text):
        end = text.find("\n", start + _BLOCK)
        end = len(text) if end < 0 else end
        parts.append(floats(text[start:end].split(), what))
        start = end
    return np.concatenate(parts) if parts else np.zeros(0)


def joint_positions(joints: list[BvhJoint], values: np.ndarray) -> np.ndarray:
    """Return joint positions (T, J, 3), file axes and units.

    Position channels replace offset coordinates; rotations are about moving axes in channel order.

    Args:
        joints: parents first.
        values: (T, C) [file units, degrees].
    """
    return joint_poses(joints, values)[0]


def joint_poses(joints: list[BvhJoint], values: np.ndarray, turning: int = -1) -> tuple[np.ndarray, np.ndarray]:
    """Return `joint_positions`, and rotations (T, 3, 3) of joint `turning` (-1: none)."""
    positions, R = np.empty((len(values), len(joints), 3)), np.tile(np.eye(3), (len(values), 1, 1))
    for first in range(0, len(values), _FRAMES):
        block = slice(first, first + _FRAMES)
        p_WJ, R_WJ = _some_poses(joints, values[block])
        positions[block] = p_WJ.swapaxes(0, 1)
        if turning >= 0:
            R[block] = R_WJ[turning]
    return positions, R


def _some_poses(joints: list[BvhJoint], values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return positions (J, T, 3) and rotations (J, T, 3, 3) of some frames."""
    p_PJ, R_PJ = [], []
    column = 0
    for joint in joints:
        t, turns = np.tile(joint.offset, (len(values), 1)), []
        for channel in joint.channels:
            axis = "XYZ".index(channel[0])
            if channel.endswith("position"):
                t[:, axis] = values[:, column]
            else:
                turns.append((axis, np.radians(values[:, column])))
            column += 1
        p_PJ.append(t)
        R_PJ.append(moving_axes(turns, len(values)))
    return forward_kinematics([joint.parent for joint in joints], p_PJ, R_PJ)


def rest_up(joints: list[BvhJoint]) -> str:
    """Return the up axis, such as "+y", from the rest pose, else by convention y.

    Zero rotations are not a posture if head and feet lie on the same side of the hips: some suits let every bone point
    along x.
    """
    at_rest = joint_positions(joints, np.zeros((1, sum(len(joint.channels) for joint in joints))))[0]
    names = [joint.name.lower() for joint in joints]
    head = next((k for k, name in enumerate(names) if "head" in name), -1)
    feet = [k for k, name in enumerate(names) if "foot" in name or "ankle" in name]
    if head < 0 or not feet:
        return "+y"
    # the hips: the last joint that carries both the head and a foot
    carriers, k = {head}, head
    while (k := joints[k].parent) >= 0:
        carriers.add(k)
    hips = feet[0]
    while hips not in carriers and joints[hips].parent >= 0:
        hips = joints[hips].parent
    above, below = at_rest[head] - at_rest[hips], at_rest[feet].mean(axis=0) - at_rest[hips]
    body = above - below
    axis = int(np.argmax(np.abs(body)))
    if not abs(body[axis]) > _STANDS * np.linalg.norm(body) or above[axis] * below[axis] > 0:
        return "+y"
    return f"{'+' if body[axis] > 0 else '-'}{'xyz'[axis]}"


def rest_frames(joints: list[BvhJoint], values: np.ndarray, positions: np.ndarray) -> tuple[int, float]:
    """Return the number of rest-pose frames before the motion, and the largest joint distance to its first frame.

    At rest three quarters of the later rotations are exactly zero. A rest pose
    is dropped if the step away is three times the next and above 0.5 % of the skeleton's size. Another first frame is
    dropped if `first_frame_apart`.

    Args:
        joints: parents first.
        values: (T, C) [file units, degrees].
        positions: (T, J, 3) [file units].
    """
    if len(positions) < 4:
        return 0, 0.0
    turns = values[:, [channel.endswith("rotation") for joint in joints for channel in joint.channels]]
    n_rest = _held_frames(turns)
    if n_rest + 2 > len(positions):
        return 0, 0.0
    jump, following = largest_steps(positions[n_rest - 1 : n_rest + 2])
    start, rest = turns[n_rest], turns[n_rest:]
    turning = np.maximum(rest.max(axis=0) - start, start - rest.min(axis=0)) > _ZERO
    at_zero = np.abs((turns[0] + 180.0) % 360.0 - 180.0) < _ZERO
    size = np.ptp(positions[0], axis=0).max()
    at_rest = turning.any() and at_zero[turning].mean() >= _REST_SHARE
    if jump <= _REST_DISTANCE * size:
        return 0, 0.0
    if at_rest and jump > _REST_STEP * following:
        return n_rest, float(jump)
    return (1, float(jump)) if n_rest == 1 and first_frame_apart(positions) else (0, 0.0)


def _held_frames(turns: np.ndarray) -> int:
    """Return the number of initial frames with constant rotations (T, C)."""
    for first in range(0, len(turns), _FRAMES):
        changed = (np.abs(turns[first : first + _FRAMES] - turns[0]) >= _ZERO).any(axis=1)
        if changed.any():
            return first + int(np.argmax(changed))
    return len(turns)
