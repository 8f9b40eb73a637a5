"""Groups of joints and tendons, each with its own mapping: who estimates an angle and who borrows it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.tendon import TendonGroup


def mirrored(group: TendonGroup) -> TendonGroup:
    """The group of the other side: l_ and r_ exchanged in every name."""

    def other(name: str) -> str:
        swap = {"l_": "r_", "r_": "l_"}
        return swap[name[:2]] + name[2:] if name[:2] in swap else name

    fields = (group.own, group.borrow, group.tendons)
    own, borrow, muscles = (tuple(other(n) for n in names) for names in fields)
    return TendonGroup(other(group.name), own, borrow, muscles)


def owners(groups: Sequence[TendonGroup]) -> dict[str, str]:
    """Which group estimates each joint; every joint that is borrowed has an owner.

    Raises:
        ConfigError: a joint owned twice, owned and borrowed by one group, borrowed from nobody, or a group without
            tendons.
    """
    owner: dict[str, str] = {}
    for g in groups:
        if not g.tendons or not g.own:
            raise ConfigError(f"group '{g.name}': has no {'joint of its own' if g.tendons else 'tendon'}")
        for names, what in ((g.joints, "joint"), (g.tendons, "tendon")):
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


def owner_table(groups: Sequence[TendonGroup]) -> list[tuple[str, str, tuple[str, ...]]]:
    """Rows (joint, group that owns it, groups that borrow it), in the order of the groups."""
    owner = owners(groups)
    return [(joint, name, tuple(g.name for g in groups if joint in g.borrow)) for joint, name in owner.items()]


def completed(
    groups: Sequence[TendonGroup], crossed: NDArray[np.bool_], joint_names: Sequence[str], muscle_names: Sequence[str]
) -> tuple[TendonGroup, ...]:
    """The groups with every joint borrowed that their tendons cross, however many these are.

    A group that leaves crossed joints out takes them to be at zero, and its lengths are wrong by what they move. With
    the geometry as the mapping nothing is gained by that; fitted mappings need small groups.

    Args:
        crossed: (M, D) which joints each tendon crosses.
    """
    out = []
    for g in groups:
        rows = [list(muscle_names).index(m) for m in g.tendons]
        used = np.flatnonzero(np.any(crossed[rows], axis=0)).tolist()
        more = tuple(joint_names[j] for j in used if joint_names[j] not in g.joints)
        out.append(TendonGroup(g.name, g.own, g.borrow + more, g.tendons))
    owners(out)
    return tuple(out)
