"""`humanoid study`: the sources' conclusions, tried on our models and clips."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from humanoid_control.errors import ConfigError, UnknownNameError

STUDIES = {
    "imitation": "H1 to H21 of Dube 2012: which joints and ranges matter for imitating a dance (minutes)",
    "momentum": "T-27 to T-35 of Schwienbacher 2014: how much arms lower angular momentum in walking (minutes)",
    "calibration": "encoder offsets of each leg, planted and found again in a simulated jig (seconds)",
    "safety": "bad starts: inside itself, outside its ranges; how the safe solver leaves them (2000 a robot: minutes)",
    "worlds": "one robot standing in many simulated worlds: which conditions and pushes topple it (seconds)",
    "tendons": "joint angles from tendon lengths: the source's E1 to E6, earlier estimators, others' arms (minutes)",
}
MODULES = {
    "imitation": "dube2012.report",
    "momentum": "schwienbacher2014.momentum_report",
    "calibration": "schwienbacher2014.calibration",
    "safety": "bad_starts",
    "worlds": "standing_worlds",
    "tendons": "kawaharazuka.report",
}
# Which studies an option is for.
OPTIONS = {
    "clip": ("imitation",),
    "marker_set": ("imitation",),
    "step_length": ("momentum",),
    "step_time": ("momentum",),
    "poses": ("calibration",),
    "noise": ("calibration",),
    "seeds": ("calibration", "tendons"),
    "starts": ("safety",),
    "vary": ("worlds",),
    "seconds": ("worlds",),
    "workers": ("worlds",),
    "engine": ("worlds",),
    "drives": ("worlds",),
    "steps": ("tendons",),
    "models": ("tendons",),
    "robot": ("momentum", "calibration", "safety", "worlds", "tendons"),
    "only": ("imitation", "momentum", "tendons"),
    "details": ("imitation", "momentum", "tendons"),
    "output": ("imitation", "momentum", "calibration", "worlds", "tendons"),
}
EXAMPLES = (
    "studies:\n"
    + "\n".join(f"  {k:11} {v}" for k, v in STUDIES.items())
    + """

examples:
  humanoid study imitation                              on the built-in dance
  humanoid study imitation --clip dance1.trc            on that and on the built-in one
  humanoid study imitation --only H2,H4 --json
  humanoid study imitation --clip dance1.trc -o findings.md
  humanoid study momentum                               Lola, steps of 0.4 m in 0.8 s
  humanoid study momentum --robot hrp2 -o momentum      and a folder with plots and JSON
  humanoid study calibration --robot hrp2 --poses 5 --noise 0.05
  humanoid study safety                                 all robots, 2000 bad starts each
  humanoid study safety --robot lola --starts 200
  humanoid study worlds --robot lola --vary friction=0.2,0.4,0.8 --vary stiffness=30,60
  humanoid study worlds --robot hrp2 --vary push_x=50,100,150 --engine mujoco --seconds 3 -o pushed
  humanoid study tendons -o tendons                     all, 20 seeds; JSON and plots
  humanoid study tendons --only E4,E5 --seeds 5 --details
  humanoid study tendons --only others --models my_models

The rule by which each is judged was fixed before it was measured, and is printed with --details. A hypothesis that does
not hold is a finding, not an error: the exit code is 0.
"""
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help=", ".join(STUDIES))
    parser.add_argument("--clip", action="append", default=[], help="motion file beside the built-in dance; repeatable")
    parser.add_argument("--only", default="", help="some hypotheses, claims, experiments, by commas: H1,H4")
    parser.add_argument("--marker-set", default="", help="marker set of the clips, or the path of an own one")
    parser.add_argument(
        "--robot", help="momentum, calibration, worlds: with legs (default: lola); safety: all; tendons"
    )
    parser.add_argument("--step-length", type=float, help="momentum: [m] (default: 0.4, scaled by the legs' length)")
    parser.add_argument("--step-time", type=float, help="momentum: [s] (default: 0.8, more where joints are slow)")
    parser.add_argument("--starts", type=int, help="safety: how many starts of each robot (default: 2000)")
    parser.add_argument("--poses", type=int, help="calibration: poses in the jig (default: 3)")
    parser.add_argument("--noise", type=float, help="calibration: of an encoder reading [deg] (default: 0.02)")
    parser.add_argument("--seeds", type=int, help="calibration, tendons: how often, with other errors (10, 20)")
    parser.add_argument(
        "--vary", action="append", help="worlds: name=1,2,3: friction, stiffness, push_x ...; repeatable"
    )
    parser.add_argument("--seconds", type=float, help="worlds: simulated time (default: 5)")
    parser.add_argument("--engine", help="worlds: multibody (default) or mujoco")
    parser.add_argument("--drives", help="worlds: ideal (default), rigid or elastic")
    parser.add_argument("--workers", type=int, help="worlds: processes (default: one a core)")
    parser.add_argument("--steps", type=int, help="tendons: of each walk (default: 1500)")
    parser.add_argument("--models", type=Path, help="tendons: others' arms (default: $HUMANOID_TEST_DATA/muscles)")
    parser.add_argument(
        "--details", action="store_true", help="also the rule and every part's numbers; tendons: every joint"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("-o", "--output", type=Path, help="imitation: file to write, .json or .md; others: folder")


def run(args: argparse.Namespace) -> int:
    if args.name not in STUDIES:
        raise UnknownNameError("study", args.name, STUDIES)
    for option, studies in OPTIONS.items():
        given = getattr(args, option)
        if args.name not in studies and not (given is None or given is False or given in ("", [])):
            raise ConfigError(f"--{option.replace('_', '-')} is not for the study '{args.name}'")
    module = importlib.import_module(f"humanoid_control.studies.{MODULES[args.name]}")
    code: int = module.run(args)
    return code
