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
        "test H1 to H21 of Dube 2012: which joints and ranges matter for imitating a dance (minutes)", "dube2012.report"
    ),
    "momentum": StudyEntry(
        "test T-27 to T-35 of Schwienbacher 2014: how much arms reduce angular momentum in walking (minutes)",
        "schwienbacher2014.momentum_report",
    ),
    "calibration": StudyEntry(
        "estimate known encoder offsets of each leg in a simulated jig (seconds)",
        "schwienbacher2014.calibration",
    ),
    "safety": StudyEntry(
        "start in self-collision or outside the joint ranges, and check how the solver recovers (2000 per "
        "robot: minutes)",
        "bad_starts",
    ),
    "worlds": StudyEntry(
        "stand one robot in many simulated worlds: which conditions and pushes topple it (seconds)",
        "standing_worlds",
    ),
    "walking": StudyEntry(
        "walk four robots with noisy sensors, push them, and stop them in every phase of a step (minutes)",
        "walking.study",
    ),
    "dance": StudyEntry(
        "perform clips on the robots' feet with noisy sensors, standing or with the steps of the dancer (minutes)",
        "walking.dance_study",
    ),
    "tendons": StudyEntry(
        "estimate joint angles from tendon lengths: E1 to E6 of Kawaharazuka, other estimators and arm "
        "models (minutes)",
        "kawaharazuka2018.report",
    ),
    "tendon_control": StudyEntry(
        "control joints by winches only: laws, model errors, faults, loads, compared with MuJoCo (minutes)",
        "tendon_control.report",
    ),
    "reaching": StudyEntry(
        "compare human reaches with minimum jerk, torque change and torque: Simonidis 2011, 7.2 (1 min)",
        "reaching",
    ),
    "human": StudyEntry(
        "test R1, R4 to R7 of Simonidis 2011: markers, force plates, controllers, human reaches (2 min)",
        "simonidis2011.report",
    ),
    "clearance": StudyEntry(
        "check that no command causes contact of the published URDF shapes, for many thousands of commands (minutes)",
        "clearance",
    ),
    "hosts": StudyEntry(
        "run a stack on two hosts with slow, lossy or cut links and with clock offsets (root; minutes)",
        "hosts.study",
    ),
    "faults": StudyEntry(
        "test the guarantees of a running stack under injected faults of many kinds (hours)",
        "faults.study",
    ),
    "humanoids": StudyEntry(
        "test whether other humanoids, with models on this machine, can follow a clip (minutes)",
        "humanoids",
    ),
    "whole_body": StudyEntry(
        "evaluate all quality measures of clips on robots, compared with GMR if installed (1 min per clip)",
        "whole_bodies",
    ),
    "tracker": StudyEntry(
        "track retargeted motions, including those of GMR, with a learned tracker under pushes (1 min per motion)",
        "policies.tracker",
    ),
    "limiters": StudyEntry(
        "compare the torque gate, target limits and a speed freeze behind learned policies (minutes)",
        "policies.limiters",
    ),
    "policy_faults": StudyEntry(
        "inject faults into learned policies: found on reading or while running? (seconds per fault)",
        "policies.faults",
    ),
    "perform": StudyEntry(
        "perform feasible motions with noisy sensors, in other worlds, in open loop, without each block (1 h a robot)",
        "performing",
    ),
    "sternum": StudyEntry(
        "estimate the sternum from hips and shoulders, and compare with clips that include it (seconds)",
        "dube2012.sternum_report",
    ),
}


def load_study(name: str) -> Study:
    """The module of a study."""
    return cast(Study, importlib.import_module(f"{__name__}.{STUDIES[name].module}"))
