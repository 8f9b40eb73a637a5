"""Published findings, tried again: each study says whether a claim holds on these models, and by which numbers.

A study is a module with `run_study(...)`, which takes its options by name:

    from evidence.studies import load_study

    report = load_study("imitation").run_study(only=["H4"])
    print(report.data["findings"][0]["verdict"])
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple, Protocol, cast

from evidence.studies.report import StudyReport as StudyReport


class Study(Protocol):
    """Interface of the module of a study."""

    def run_study(self, **options: Any) -> StudyReport:
        """Try it; `show` is told how far it is."""
        ...


class StudyEntry(NamedTuple):
    """A study in the list: what it tries, in one line, and its module below this package."""

    task: str
    module: str


STUDIES = {
    "imitation": StudyEntry(
        "H1 to H21 of Dube 2012: which joints and ranges matter for imitating a dance (minutes)", "dube2012.report"
    ),
    "momentum": StudyEntry(
        "T-27 to T-35 of Schwienbacher 2014: how much arms lower angular momentum in walking (minutes)",
        "schwienbacher2014.momentum_report",
    ),
    "calibration": StudyEntry(
        "encoder offsets of each leg, planted and found again in a simulated jig (seconds)",
        "schwienbacher2014.calibration",
    ),
    "safety": StudyEntry(
        "bad starts: inside itself, outside its ranges; how the solver leaves them (2000 a robot: minutes)",
        "bad_starts",
    ),
    "worlds": StudyEntry(
        "one robot standing in many simulated worlds: which conditions and pushes topple it (seconds)",
        "standing_worlds",
    ),
    "walking": StudyEntry(
        "four robots walk by noisy sensors, are pushed, and are stopped in every phase of a step (minutes)",
        "walking.study",
    ),
    "dance": StudyEntry(
        "robots dance clips on their own feet by noisy sensors, standing and with the dancer's steps (minutes)",
        "walking.dance_study",
    ),
    "tendons": StudyEntry(
        "joint angles from tendon lengths: E1 to E6 of Kawaharazuka, earlier estimators, others' arms (minutes)",
        "kawaharazuka2018.report",
    ),
    "tendon_control": StudyEntry(
        "control through tendons by winches alone: laws, model errors, faults, loads, MuJoCo beside (minutes)",
        "tendon_control.report",
    ),
    "reaching": StudyEntry(
        "people's reaches beside minimum jerk, torque change and torque: Simonidis 2011, 7.2 (a minute)",
        "reaching",
    ),
    "human": StudyEntry(
        "R1, R4 to R7 of Simonidis 2011: markers, force plates, controllers, reaches of people (two minutes)",
        "simonidis2011.report",
    ),
    "clearance": StudyEntry(
        "commands by the hundred thousand, measured by the shapes of the published URDF: none may touch (minutes)",
        "clearance",
    ),
    "hosts": StudyEntry(
        "a stack over two hosts: links that are slow, lossy, cut, and clocks that are apart (root; minutes)",
        "hosts.study",
    ),
    "faults": StudyEntry(
        "what a running stack promises when things break: faults of many sorts injected, each kept or broken (hours)",
        "faults.study",
    ),
    "humanoids": StudyEntry(
        "humanoids of others, as far as their models are on this machine: does each move with a clip (minutes)",
        "humanoids",
    ),
    "whole_body": StudyEntry(
        "clips by robots: all that a clip's quality has, beside GMR where it is installed (a minute a clip)",
        "whole_bodies",
    ),
    "tracker": StudyEntry(
        "a learned tracker of others performs retargeted motions, GMR's among them, and is pushed (a minute a motion)",
        "policies.tracker",
    ),
    "limiters": StudyEntry(
        "learned policies behind the gate, limits on targets and a freeze on speed, side by side (minutes)",
        "policies.limiters",
    ),
    "policy_faults": StudyEntry(
        "faults put into learned policies on purpose: named when read, or as they run? (seconds a fault)",
        "policies.faults",
    ),
    "perform": StudyEntry(
        "feasible motions, danced by noisy sensors, replayed open loop, and with each block off (half an hour a robot)",
        "performing",
    ),
    "sternum": StudyEntry(
        "how well the sternum is estimated from hips and shoulders, on clips that show it (seconds)",
        "dube2012.sternum_report",
    ),
}


def load_study(name: str) -> Study:
    """The module of a study."""
    return cast(Study, importlib.import_module(f"{__name__}.{STUDIES[name].module}"))
