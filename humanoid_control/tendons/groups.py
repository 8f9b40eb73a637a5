"""Groups of joints and tendons, each with its own mapping: who estimates an angle and who borrows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from humanoid_control.errors import ConfigError


@dataclass(frozen=True)
class JointGroup:
    """One polyarticular mapping: the tendons of some joints and all joints that these tendons cross.

    Attributes:
        name: of the group.
        own: joints that it estimates, theta_y.
        borrow: joints that its tendons cross but another group estimates, theta_n.
        muscles: its tendons; a tendon may be in several groups.
    """

    name: str
    own: tuple[str, ...]
    borrow: tuple[str, ...]
    muscles: tuple[str, ...]

    @property
    def joints(self) -> tuple[str, ...]:
        """Own joints, then borrowed ones: the order of the group's mapping."""
        return self.own + self.borrow


def _side(names: str, side: str) -> tuple[str, ...]:
    return tuple(name if name.startswith("neck") else f"{side}_{name}" for name in names.split())


def kengoro_groups() -> tuple[JointGroup, ...]:
    """The five groups of the source's upper body (section III-B): neck, scapulae, shoulders with elbows.

    Each has 8 joints; 10, 8 and 10 tendons as in table I. The joints that a group borrows are the source's; how the
    tendons are named and divided is a choice of this project, for the source's figure of it is lost.
    """
    neck = "sternocleidomastoid scalenus splenius longus_colli trapezius_upper"
    scapula = (
        "trapezius_middle trapezius_lower levator_scapulae serratus_anterior rhomboid pectoralis_minor "
        "pectoralis_major_abdominal latissimus_dorsi_upper"
    )
    shoulder = (
        "deltoid_front deltoid_middle deltoid_rear pectoralis_major_sternal latissimus_dorsi_lower infraspinatus "
        "subscapularis biceps triceps brachialis"
    )
    groups = [
        JointGroup(
            "neck",
            ("neck_top_pitch", "neck_roll", "neck_pitch", "neck_yaw"),
            _side("ac_roll ac_yaw", "l") + _side("ac_roll ac_yaw", "r"),
            _side(neck, "l") + _side(neck, "r"),
        )
    ]
    for s in "lr":
        own, borrow = "sc_roll sc_pitch ac_roll ac_yaw", "neck_roll neck_pitch gh_roll gh_pitch"
        groups.append(JointGroup(f"{s}_scapula", _side(own, s), _side(borrow, s), _side(scapula, s)))
        own, borrow = "gh_roll gh_pitch gh_yaw elbow_pitch", "ac_roll ac_yaw sc_roll sc_pitch"
        groups.append(JointGroup(f"{s}_shoulder", _side(own, s), _side(borrow, s), _side(shoulder, s)))
    return tuple(groups)


def mirrored(group: JointGroup) -> JointGroup:
    """The group of the other side: l_ and r_ exchanged in every name."""

    def other(name: str) -> str:
        swap = {"l_": "r_", "r_": "l_"}
        return swap[name[:2]] + name[2:] if name[:2] in swap else name

    fields = (group.own, group.borrow, group.muscles)
    own, borrow, muscles = (tuple(other(n) for n in names) for names in fields)
    return JointGroup(other(group.name), own, borrow, muscles)


def owners(groups: Sequence[JointGroup]) -> dict[str, str]:
    """Which group estimates each joint; every joint that is borrowed has an owner.

    Raises:
        ConfigError: a joint owned twice, owned and borrowed by one group, borrowed from nobody, or a group without
            tendons.
    """
    owner: dict[str, str] = {}
    for g in groups:
        if not g.muscles or not g.own:
            raise ConfigError(f"group '{g.name}': has no {'joint of its own' if g.muscles else 'tendon'}")
        for names, what in ((g.joints, "joint"), (g.muscles, "tendon")):
            twice = sorted({n for n in names if names.count(n) > 1})
            if twice:
                raise ConfigError(f"group '{g.name}': {what} '{twice[0]}' is listed twice")
        for joint in g.own:
            if joint in owner:
                raise ConfigError(f"joint '{joint}': owned by '{owner[joint]}' and '{g.name}'; one must borrow it")
            owner[joint] = g.name
    for g in groups:
        for joint in g.borrow:
            if joint not in owner:
                raise ConfigError(f"group '{g.name}': borrows '{joint}', which no group estimates; add its owner")
    return owner


def owner_table(groups: Sequence[JointGroup]) -> list[tuple[str, str, tuple[str, ...]]]:
    """Rows (joint, group that owns it, groups that borrow it), in the order of the groups."""
    owner = owners(groups)
    return [(joint, name, tuple(g.name for g in groups if joint in g.borrow)) for joint, name in owner.items()]


def completed(
    groups: Sequence[JointGroup], crossed: NDArray[np.bool_], joint_names: Sequence[str], muscle_names: Sequence[str]
) -> tuple[JointGroup, ...]:
    """The groups with every joint borrowed that their tendons cross, however many these are.

    A group that leaves crossed joints out takes them to be at zero, and its lengths are wrong by what they move. With
    the geometry as the mapping nothing is gained by that; fitted mappings need small groups.

    Args:
        crossed: (M, D) which joints each tendon crosses.
    """
    out = []
    for g in groups:
        rows = [list(muscle_names).index(m) for m in g.muscles]
        used = np.flatnonzero(np.any(crossed[rows], axis=0)).tolist()
        more = tuple(joint_names[j] for j in used if joint_names[j] not in g.joints)
        out.append(JointGroup(g.name, g.own, g.borrow + more, g.muscles))
    owners(out)
    return tuple(out)
