"""`humanoid study`: published conclusions, tried on these models and clips."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from evidence.studies import STUDIES, load_study
from humanoid_control.cli.parser import (
    RATES,
    Parser,
    add_commands,
    comma_list,
    file_path,
    folder_path,
    given,
    require_range,
)
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.files import check_file, check_folder
from humanoid_control.terminal import console, print_json, print_parts, progress

EXAMPLES = """examples:
  humanoid study imitation                              on the built-in dance
  humanoid study imitation --clip a.trc --clip b.bvh    on these two, each by itself and over both
  humanoid study imitation --only H2,H4 --json
  humanoid study imitation --clip dance1.trc -o findings.md
  humanoid study momentum                               Lola, steps of 0.4 m in 0.8 s
  humanoid study momentum --robot hrp2 -o momentum      and a folder with plots and JSON
  humanoid study calibration --robot hrp2 --poses 5 --noise 0.05
  humanoid study safety                                 all robots, 2000 bad starts each
  humanoid study safety --robot lola --starts 200 --seed 7
  humanoid study worlds --robot lola --vary friction=0.2,0.4,0.8 --vary stiffness=30,60
  humanoid study worlds --robot hrp2 --vary push_x=50,100,150 --engine mujoco --seconds 3 -o pushed
  humanoid study walking --only robots --steps 100
  humanoid study dance --robot lola --clip dance --clip a.bvh --resume dances.jsonl
  humanoid study walking --only maps --resume maps.jsonl -o maps     hardest pushes, steepest slopes, by direction
  humanoid study walking --ground plane:slope=5,direction=90 --robot hrp2
  humanoid study walking --robot talos.urdf             any robot with two feet, 20 steps at 0.15 m/s
  humanoid study sternum --clip dance1.trc --clip walk1.trc    each person with the constants of the others
  humanoid study clearance --commands 10000000 --resume clearance.jsonl
  humanoid study reaching --data HuG-MP/ --resume reaching.jsonl      people beside criteria of motion
  humanoid study human --only R5                        controllers of an arm with a payload they do not know
  humanoid study humanoids --resume humanoids.jsonl -o docs/humanoids.md    every one whose model is here
  humanoid study humanoids --robot g1,my_robot.xml --clip walk.bvh
  humanoid study whole_body --clip dance --clip 05_02.bvh --robot hrp2,g1 --resume dances.jsonl -o dances.md
  humanoid study tracker --network twist2_1017_20k.onnx --network twist2_1017_25k.onnx --resume tracker.jsonl
  humanoid study tracker --clip dance --method clip,feasible --seeds 0
  humanoid study limiters --policy policy.onnx --engine mujoco --seconds 60 --seeds 3
  humanoid study policy_faults --faults 56 --resume policy_faults.jsonl
  humanoid study perform --robot hrp2 --clip dance --seconds 8 --resume perform.jsonl -o perform.md
  humanoid study perform --only feasibility,open --engine both
  humanoid study hosts --resume hosts.jsonl             the robot on one host, its controller on another (root)
  humanoid study hosts --only cuts --robot lola
  humanoid study faults --resume faults.jsonl           all rows, about three hours
  humanoid study faults --only starts,kills --starts 10 --kills 3 --json
  humanoid study faults --only states --states 100 --set whole_body_ik.following_error=0
  humanoid study tendons -o tendons                     all, 20 seeds; JSON and plots
  humanoid study tendons --only E4,E5 --seeds 5 --details
  humanoid study tendons --only others --models my_models
  humanoid study tendon_control --only C1,C8 --seeds 4

The rule by which each is judged was fixed before it was measured, and is printed with --details. A hypothesis that does
not hold is a finding, not an error: the exit code is 0; but it is 1 where `faults` finds a promise broken.
"""
FORMATS = (".json", ".md")
OF_POLICIES = ("tracker", "limiters", "policy_faults")
INTO_FILES = ("imitation", "humanoids", "whole_body", "perform", *OF_POLICIES)  # studies that write one file
NOT_OPTIONS = ("study", "json", "details", "output")  # what a study itself does not take
MOST = {
    "commands": 10**12,
    "faults": 100_000,
    "floods": 10_000,
    "hours": 1000.0,
    "kills": 100_000,
    "messages": 10**9,
    "noise": 90.0,
    "phases": 1000,
    "poses": 100_000,
    "seconds": 36_000.0,
    "seed": 2**32 - 1,
    "seeds": 100_000,
    "starts": 10_000_000,
    "states": 10_000_000,
    "step_length": 3.0,
    "step_time": 60.0,
    "steps": 1_000_000,
}
"""Largest numbers of the studies' options."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A sub-command for each study, with its own options; what is not given, the study decides."""
    parsers = add_commands(parser, "study", {name: study.task for name, study in STUDIES.items()})
    options = {name: _Options(parsers[name]) for name in STUDIES}
    imitation, momentum, calibration, safety, worlds = (
        options[n] for n in ("imitation", "momentum", "calibration", "safety", "worlds")
    )
    tendon_control = options["tendon_control"]
    walking, dance, tendons, sternum, hosts, clearance, faults, reaching, human, humanoids, whole_body, performing = (
        options[n]
        for n in (
            "walking",
            "dance",
            "tendons",
            "sternum",
            "hosts",
            "clearance",
            "faults",
            "reaching",
            "human",
            "humanoids",
            "whole_body",
            "perform",
        )
    )
    imitation.add(
        "--clip", action="append", type=given, dest="clips", help="motion file, not the built-in dance; repeatable"
    )
    sternum.add(
        "--clip", action="append", type=given, dest="clips", help="motion file with a sternum marker; one a person"
    )
    for study in (imitation, sternum):
        study.add("--marker-set", type=given, help="marker set of the clips, or the path of an own one")
        study.add("--unit", type=given, help="of the clips' numbers: mm, cm, m, inch")
        study.add("--scale", type=float, help="factor on the clips' size")
        study.add("--rate", type=float, help="frames a second of AMC or CSV files that state none")
    momentum.add("--robot", type=given, help="with legs (default: lola)")
    momentum.add("--step-length", type=float, help="[m] (default: 0.4, scaled by the legs' length)")
    momentum.add("--step-time", type=float, help="[s] (default: 0.8, more where joints are slow)")
    calibration.add("--robot", type=given, help="with legs (default: lola)")
    calibration.add("--poses", type=int, help="poses in the jig (default: 3)")
    calibration.add("--noise", type=float, help="of an encoder reading [deg] (default: 0.02)")
    calibration.add("--seeds", type=int, help="how often, with other errors (default: 10)")
    safety.add("--robot", type=given, help="one robot (default: all of the catalogue)")
    safety.add("--starts", type=int, help="how many starts of each robot (default: 2000)")
    safety.add("--seed", type=int, help="of the random starts (default: 0)")
    worlds.add("--robot", type=given, help="with legs (default: lola)")
    worlds.add("--vary", action="append", help="name=1,2,3: friction, stiffness, push_x ...; repeatable")
    worlds.add("--seconds", type=float, help="simulated time (default: 5)")
    worlds.add("--engine", help="multibody (default) or mujoco")
    worlds.add("--drives", help="ideal (default), rigid or elastic")
    worlds.add("--workers", type=int, help="processes (default: one a core)")
    walking.add("--robot", type=given, help="only walks of this robot, or a URDF (default: all four)")
    walking.add("--steps", type=int, help="of each walk (default: 20, or what the walk says)")
    walking.add("--seeds", type=int, help="how often, with other noise (default: 1)")
    walking.add("--workers", type=int, help="processes (default: one a core)")
    dance.add("--robot", type=given, help="with legs and arms (default: lola and hrp2)")
    dance.add("--clip", action="append", type=given, dest="clips", help="built in or a file (default: dance)")
    dance.add("--seeds", type=int, help="how often, with other noise (default: 1)")
    dance.add("--seconds", type=float, help="of each clip (default: 30)")
    dance.add("--only", type=comma_list, help="standing or steps (default: both)")
    dance.add("--workers", type=int, help="processes (default: one a core)")
    dance.add("--resume", type=file_path, help="file that keeps outcomes: what is in it is not danced again")
    walking.add(
        "--only",
        type=comma_list,
        help="robots,speed,ways,worlds,ground,pushes,stops; longer, where asked for: momentum,armspeed,planners,"
        "blocks,long,twists,trouble,stopgo,further; alone: maps",
    )
    walking.add("--walk", type=given, help="only walks with this in their name")
    walking.add("--phases", type=int, help="of a cycle in which stops are tried (default: 8)")
    walking.add("--resume", type=file_path, help="file that keeps outcomes: what is in it is not walked again")
    walking.add("--ground", type=given, help="only walks on this ground, as plane:slope=5 or stairs:rise=0.1,run=0.35")
    tendons.add("--robot", type=given, help="with tendons (default: kengoro_upper)")
    tendons.add("--seeds", type=int, help="how often, with other errors (default: 20)")
    tendons.add("--steps", type=int, help="of each walk (default: 1500)")
    tendons.add("--models", type=folder_path, help="others' arms (default: $HUMANOID_TEST_DATA/muscles)")
    tendon_control.add("--robot", type=given, help="with tendons (default: kengoro_upper)")
    tendon_control.add("--seeds", type=int, help="runs of each row (default: 3)")
    tendon_control.add("--models", type=folder_path, help="others' arms (default: $HUMANOID_TEST_DATA/muscles)")
    tendon_control.add("--only", type=comma_list, help="some experiments: C1,C8")
    clearance.add("--robot", type=given, help="one robot (default: all of the catalogue)")
    clearance.add("--commands", type=int, help="of each robot (default: 100000)")
    clearance.add("--seed", type=int, help="of the targets (default: 0)")
    clearance.add("--workers", type=int, help="processes (default: one a core)")
    clearance.add("--resume", type=file_path, help="file that keeps outcomes: what is in it is not done again")
    reaching.add("--data", type=folder_path, help="of S01_trajs.mat and so on (default: in $HUMANOID_TEST_DATA)")
    reaching.add("--repetition", type=int, help="of each motion, 1 to 10 (default: 5)")
    reaching.add("--workers", type=int, help="processes (default: one a core)")
    reaching.add("--resume", type=file_path, help="file that keeps outcomes: what is in it is not done again")
    reaching.add("--details", action="store_true", help="also the rules")
    human.add("--data", type=folder_path, help="of the recordings (default: in $HUMANOID_TEST_DATA)")
    human.add("--only", type=comma_list, help="some of R1,R4,R5,R6,R7 (default: all)")
    human.add("--workers", type=int, help="processes (default: one a core)")
    human.add("--resume", type=file_path, help="file that keeps outcomes: what is in it is not done again")
    human.add("--details", action="store_true", help="also the rules")
    humanoids.add("--robot", type=comma_list, help="names or paths (default: all whose models are on this machine)")
    humanoids.add("--clip", action="append", type=given, dest="clips", help="default: dance, and a walk if it is here")
    humanoids.add("--workers", type=int, help="processes (default: one a core)")
    humanoids.add("--resume", type=file_path, help="file that keeps outcomes: what is in it is not done again")
    whole_body.add("--robot", type=comma_list, help="names or paths (default: lola,hrp2,suralp,wabian2, g1,h1_2,talos)")
    whole_body.add("--clip", action="append", type=given, dest="clips", help="default: dance, and recordings if here")
    whole_body.add("--method", type=comma_list, help="live (default), clip (all frames at once), or both")
    whole_body.add("--workers", type=int, help="processes (default: one a core)")
    whole_body.add("--resume", type=file_path, help="file that keeps outcomes: what is in it is not done again")
    performing.add("--robot", type=comma_list, help="names or paths (default: hrp2,lola,wabian2, and g1 if it is here)")
    performing.add("--clip", action="append", type=given, dest="clips", help="default: dance, and dance1 if it is here")
    performing.add("--only", type=comma_list, help="feasibility,performances,open,ablations (default: all)")
    performing.add("--engine", help="multibody (default), mujoco or both")
    performing.add("--seeds", type=int, help="of the noise (default: 3)")
    performing.add("--seconds", type=float, help="of each clip, from its beginning (default: all)")
    performing.add("--resume", type=file_path, help="file that keeps outcomes: what is in it is not done again")
    hosts.add("--robot", type=given, help="of the catalogue, or a URDF (default: hrp2)")
    hosts.add("--only", type=comma_list, help="links, cuts, clocks (default: all)")
    hosts.add("--seconds", type=float, help="of the dance over each link and with each clock (default: 10)")
    hosts.add("--resume", type=file_path, help="file that keeps outcomes: what is in it is not tried again")
    _add_tracker(options["tracker"])
    _add_policies(options["limiters"], options["policy_faults"])
    _add_faults(faults)
    for study, what in (
        (imitation, "hypotheses: H1,H4"),
        (momentum, "claims: T-33,T-34"),
        (tendons, "experiments: E4"),
    ):
        study.add("--only", type=comma_list, help=f"some {what}")
        study.add("--details", action="store_true", help="also the rules and every number")
    sternum.add("--details", action="store_true", help="also what the columns mean")
    for study in (
        momentum,
        calibration,
        worlds,
        walking,
        dance,
        tendons,
        tendon_control,
        sternum,
        hosts,
        clearance,
        faults,
        reaching,
        human,
    ):
        study.add("-o", "--output", type=folder_path, help="folder to write")
    for study in (imitation, humanoids, whole_body, performing, *(options[name] for name in OF_POLICIES)):
        study.add("-o", "--output", type=file_path, help="file to write, .json or .md")
    for one in parsers.values():
        one.add_argument("--json", action="store_true", help="print one JSON object instead of tables")


def _add_tracker(tracker: _Options) -> None:
    tracker.add("--robot", type=given, help="that the tracker drives (default: g1)")
    tracker.add("--clip", action="append", type=given, dest="clips", help="default: dances, and recordings if here")
    tracker.add("--method", type=comma_list, help="some of live,clip,feasible,gmr (default: all; GMR if installed)")
    tracker.add("--policy", type=file_path, help="description of the tracker (default: that of TWIST2)")
    tracker.add("--network", action="append", type=given, dest="networks", help="a checkpoint; repeatable")
    tracker.add("--seeds", type=int, help="of pushes, one a run (default: 3)")
    tracker.add("--push", type=float, help="impulse of each (default: 20) [N s]")
    tracker.add("--seconds", type=float, help="of each clip at most (default: 30)")
    tracker.add("--engine", choices=("mujoco", "multibody"), help="that simulates (default: mujoco)")
    tracker.add("--workers", type=int, help="processes (default: one a core)")
    tracker.add("--resume", type=file_path, help="file that keeps outcomes: what is in it is not done again")


def _add_policies(limiters: _Options, faults: _Options) -> None:
    for study in (limiters, faults):
        study.add("--robot", type=given, help="that the policies drive (default: g1)")
        study.add(
            "--policy",
            action="append",
            type=given,
            dest="policies",
            metavar="FILE[,ONNX]",
            help="a policy, or its description and its network; repeatable (default: public ones that are here)",
        )
        study.add("--workers", type=int, help="processes (default: one a core)")
        study.add("--resume", type=file_path, help="file that keeps outcomes: what is in it is not done again")
    limiters.add("--limiter", type=comma_list, help="some of none,gate,rate20,rate200,freeze (default: all)")
    limiters.add("--engine", type=comma_list, help="multibody, mujoco (default: both)")
    limiters.add("--seconds", type=float, help="of each run (default: 20)")
    limiters.add("--seeds", type=int, help="of noisy sensors, beside perfect ones (default: 0)")
    faults.add("--faults", type=int, help="how many; their numbers are the seeds (default: 300)")
    faults.add("--engine", choices=("mujoco", "multibody"), help="that simulates (default: mujoco)")


def _add_faults(faults: _Options) -> None:
    faults.add("--robot", type=given, help="of the catalogue, or a URDF (default: hrp2)")
    faults.add("--only", type=comma_list, help="some rows: starts,states,dance,kills,floods,messages (default: all)")
    faults.add("--starts", type=int, help="second controllers that are started (default: 50, 10 minutes)")
    faults.add("--states", type=int, help="faults of joint states, 3.5 s each (default: 1000, one hour)")
    faults.add("--hours", type=float, help="of the dance without a fault (default: 1)")
    faults.add("--kills", type=int, help="of each control node (default: 20, 10 minutes)")
    faults.add("--floods", type=int, help="of each sort (default: 3, 2 minutes)")
    faults.add("--messages", type=int, help="random ones on each topic of each node (default: 100000, 45 minutes)")
    faults.add("--seed", type=int, help="of all that is random (default: 0)")
    faults.add("--resume", type=file_path, help="file that keeps outcomes: what is in it is not tried again")
    faults.add("--set", action="append", dest="settings", metavar="NODE.PARAM=VALUE", help="change a parameter")


class _Options:
    """Adds options that are left out of the namespace where nobody gives them."""

    def __init__(self, parser: Parser) -> None:
        self.parser = parser

    def add(self, *names: str, **options: Any) -> None:
        self.parser.add_argument(*names, default=argparse.SUPPRESS, **options)


def run(args: argparse.Namespace) -> int:
    """Run the study, print what it found, write what is asked for."""
    options = {name: value for name, value in vars(args).items() if name not in NOT_OPTIONS}
    output: Path | None = getattr(args, "output", None)
    _check_numbers(options)
    _check_output(args.study, output)
    if "vary" in options:
        from evidence.studies.standing_worlds import parse_varied

        options["vary"] = parse_varied(options["vary"])
    study = load_study(args.study)
    with progress("study", 1.0, quiet=args.json) as show:
        report = study.run_study(**options, show=show)
    if output is not None:
        report.write(output)
    code = 1 if report.data.get("broken") else 0
    if args.json:
        print_json(report.data)
        return code
    print_parts(report.parts)
    if getattr(args, "details", False):
        print_parts(report.details)
    if output is not None:
        console.print(f"written: {output}")
    return code


def _check_numbers(options: dict[str, Any]) -> None:
    """Refuse what would never end, or what no machine has; the studies themselves say what is too little."""
    require_range("workers", options.get("workers"), 1, 1024)
    require_range("rate", options.get("rate"), *RATES)
    for name, most in MOST.items():
        if (value := options.get(name, 0)) > most:
            raise ConfigError(f"--{name.replace('_', '-')} must be at most {most:g}, got {value:g}")


def _check_output(study: str, output: Path | None) -> None:
    """Test that it can be written, before anything is computed."""
    if study not in INTO_FILES:
        check_folder(output)
    elif output is not None:
        if output.suffix not in FORMATS:
            raise UnknownNameError("format", output.suffix, FORMATS, hint=f"(of {output})")
        check_file(output)
