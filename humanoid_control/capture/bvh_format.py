"""The text of a BVH file: its hierarchy of joints and its table of channel values."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from humanoid_control.capture.text_numbers import floats
from humanoid_control.errors import ClipError

_CHANNELS = frozenset(f"{axis}{kind}" for axis in "XYZ" for kind in ("position", "rotation"))


@dataclass
class Joint:
    """One joint or end site of a BVH hierarchy, in file order (a parent comes before its children).

    Args:
        name: as the file spells it; an end site is "<parent>_end".
        parent: index of the parent, -1 for the root.
        offset: position in the parent's frame when no position channel says otherwise [file units].
        channels: e.g. ["Xposition", "Zrotation"]: the order is the file's and matters.
    """

    name: str
    parent: int
    offset: np.ndarray = field(default_factory=lambda: np.zeros(3))
    channels: list[str] = field(default_factory=list)


def parse_hierarchy(text: str, source: str) -> list[Joint]:
    """The joints of the HIERARCHY part, parents first.

    Raises:
        ClipError: braces, offsets or channels that make no sense; the message names the joint.
    """
    joints: list[Joint] = []
    open_joints: list[int] = []
    awaits_brace = False
    for line in text.replace("{", "\n{\n").replace("}", "\n}\n").splitlines():
        keyword, rest = [*line.split(None, 1), "", ""][:2]
        current = joints[open_joints[-1]] if open_joints else None
        if keyword in ("ROOT", "JOINT", "End") and not awaits_brace and (keyword == "ROOT") == (not joints):
            name = f"{current.name}_end" if current and keyword == "End" else rest.strip()
            joints.append(Joint(name, open_joints[-1] if open_joints else -1))
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
            raise ClipError(f"{source}: {line.strip()[:40]!r} makes no sense in the hierarchy: the file is damaged")
    if not joints or open_joints or awaits_brace:
        raise ClipError(f"{source}: the hierarchy is not complete (a brace is missing): copy or export it again")
    if any(joint.parent < 0 for joint in joints[1:]):
        raise ClipError(f"{source}: the skeleton falls apart: every joint must lie inside the ROOT's braces")
    return joints


def _channels(words: list[str], what: str) -> list[str]:
    """The channel names after their count, in the spelling "Xposition", "Xrotation"."""
    names = [word[:1].upper() + word[1:].lower() for word in words[1:]]
    if not words or words[0] != str(len(names)) or not _CHANNELS.issuperset(names):
        raise ClipError(f"{what}: {' '.join(words)[:60]!r} is not a count and that many of Xposition ... Zrotation")
    return names


def parse_motion(text: str, n_channels: int, source: str) -> tuple[float, np.ndarray]:
    """The frames of the MOTION part.

    Args:
        text: what follows the word MOTION.
        n_channels: number of channels C of the hierarchy.
        source: path of the file, for messages.

    Returns:
        Frame rate [Hz] and channel values (T, C) in file units and degrees, in the order of the joints.

    Raises:
        ClipError: another count of numbers than frames times channels, or something that is no number.
    """
    lines = text.strip().split("\n", 2)
    count, separator, dt = (lines[0].partition(":")[2], *lines[1].partition(":")[1:]) if len(lines) > 2 else ("",) * 3
    if not (separator and count.strip().isdigit()):
        raise ClipError(f"{source}: after MOTION must come 'Frames: <count>', 'Frame Time: <s>' and the frames")
    step = floats([dt.strip()], f"{source}: Frame Time")[0]
    if not 1e-5 < step < 10:
        raise ClipError(f"{source}: Frame Time is {step:g} s: correct it in the file")
    values = floats(lines[2].split(), f"{source}: the frames")
    n_frames = int(count)
    if values.size != n_frames * n_channels:
        raise ClipError(
            f"{source}: {n_frames} frames of {n_channels} channels need {n_frames * n_channels} numbers, "
            f"the file holds {values.size}: it is cut off or damaged"
        )
    rate = 1.0 / step
    whole = round(rate)  # 0.0083333 means 120 Hz
    return (float(whole) if abs(rate - whole) < 1e-4 * rate else rate), values.reshape(n_frames, n_channels)
