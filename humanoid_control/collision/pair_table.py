"""Which body segments may hit each other (Dube 2012, Table 4.3), and how the collisions of a dance are grouped."""

from __future__ import annotations

import re

LIKELY, UNLIKELY = "likely", "unlikely"

# Rows and columns as printed: L likely, u unlikely, blank not tested. UA, LA upper and lower arm, B body, HN head and
# neck, T thigh, L leg; _l left, _r right.
_COLUMNS = ("UA_r", "LA_r", "UA_l", "LA_l", "B", "HN", "T_r", "L_r")
_ROWS = {
    "UA_l": "LL      ",
    "LA_l": "LL      ",
    "B": "LLLL    ",
    "HN": "LLLL    ",
    "T_r": "LLLLuu  ",
    "L_r": "uLuLuu  ",
    "T_l": "LLLLuuLL",
    "L_l": "uLuLuuLL",
}
PAIR_TABLE: dict[frozenset[str], str] = {
    frozenset((row, column)): LIKELY if mark == "L" else UNLIKELY
    for row, marks in _ROWS.items()
    for column, mark in zip(_COLUMNS, marks, strict=True)
    if mark != " "
}

# The hand moves with the lower arm, foot and toe with the leg. The source's table has no clavicle or girdle.
_SEGMENTS = {
    "upper_arm": "UA",
    "lower_arm": "LA",
    "forearm": "LA",
    "hand": "LA",
    "thigh": "T",
    "shank": "L",
    "leg": "L",
    "foot": "L",
    "toe": "L",
}
_MIDDLE = {"upper_torso": "B", "lower_torso": "B", "torso": "B", "head": "HN", "neck": "HN"}
_SIDED = re.compile(r"(?:([lr])_|(left)_|(right)_)(\w+)")

# Columns of the source's Table 6.6, which counts arms against the torso only.
ARM_TORSO_COLUMNS = (
    "lower arm - upper torso",
    "lower arm - lower torso",
    "upper arm - upper torso",
    "upper arm - lower torso",
)


def segment_of(shape: str) -> str | None:
    """The row or column of Table 4.3 that a shape belongs to, e.g. `l_hand` -> `LA_l`, `upper_torso` -> `B`.

    None for what the table does not have: clavicles, girdles, platform, pedestal, column, unknown names.
    """
    if shape in _MIDDLE:
        return _MIDDLE[shape]
    match = _SIDED.fullmatch(shape)
    if not match or match[4] not in _SEGMENTS:
        return None
    return f"{_SEGMENTS[match[4]]}_{(match[1] or match[2] or match[3])[0]}"


def likelihood(shape_1: str, shape_2: str) -> str | None:
    """LIKELY, UNLIKELY, or None where Table 4.3 has no entry or a blank one; in either order."""
    segments = segment_of(shape_1), segment_of(shape_2)
    if None in segments:
        return None
    return PAIR_TABLE.get(frozenset(str(s) for s in segments))


def arm_torso_column(shape_1: str, shape_2: str) -> str | None:
    """The column of Table 6.6 in which a collision of two shapes counts, or None; the hand counts as lower arm."""
    torso, arm = (shape_1, shape_2) if shape_1 in ("upper_torso", "lower_torso") else (shape_2, shape_1)
    segment = segment_of(arm)
    if torso not in ("upper_torso", "lower_torso") or segment is None or segment[:2] not in ("UA", "LA"):
        return None
    return f"{'upper' if segment[:2] == 'UA' else 'lower'} arm - {torso.replace('_', ' ')}"
