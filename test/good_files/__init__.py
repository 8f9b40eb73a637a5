"""A small good file of every kind that the package reads, with what reads it: material to be damaged."""

from __future__ import annotations

from test.good_files.clips import CLIP_KINDS
from test.good_files.kinds import FileKind
from test.good_files.people import PERSON_KINDS
from test.good_files.policies import POLICY_KINDS
from test.good_files.robots import ROBOT, ROBOT_KINDS
from test.good_files.runs import RUN_KINDS
from test.good_files.tendons import TENDON_KINDS

__all__ = ["KINDS", "ROBOT", "FileKind"]

KINDS: dict[str, FileKind] = {**ROBOT_KINDS, **CLIP_KINDS, **PERSON_KINDS, **TENDON_KINDS, **RUN_KINDS, **POLICY_KINDS}
