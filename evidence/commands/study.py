"""`humanoid study`: tests of published conclusions on these models and clips."""

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
  humanoid study imitation                              the built-in dance
  humanoid study imitation --clip a.trc --clip b.bvh    on two clips, separately and combined
  humanoid study imitation --only H2,H4 --json
  humanoid study imitation --clip dance1.trc -o findings.md
  humanoid study momentum                               Lola, steps of 0.4 m in 0.8 s
  humanoid study momentum --robot hrp2 -o momentum      a folder with plots and JSON
  humanoid study calibration --robot hrp2 --poses 5 --noise 0.05
  humanoid study safety                                 all robots, 2000 invalid starts each
  humanoid study safety --robot lola --starts 200 --seed 7
  humanoid study worlds --robot lola --vary friction=0.2,0.4,0.8 --vary stiffness=30,60
  humanoid study worlds --robot hrp2 --vary push_x=50,100,150 --engine mujoco --seconds 3 -o pushed
  humanoid study walking --only robots --steps 100
  humanoid study dance --robot lola --clip dance --clip a.bvh --resume dances.jsonl
  humanoid study walking --only maps --resume maps.jsonl -o maps     largest pushes and steepest slopes by direction
  humanoid study walking --ground plane:slope=5,direction=90 --robot hrp2
  humanoid study walking --robot talos.urdf             any biped, 20 steps at 0.15 m/s
  humanoid study sternum --clip dance1.trc --clip walk1.trc    cross-validation between persons
  humanoid study clearance --commands 10000000 --resume clearance.jsonl
  humanoid study reaching --data HuG-MP/ --resume reaching.jsonl      people compared with optimality criteria
  humanoid study human --only R5                        arm controllers with an unknown payload
  humanoid study humanoids --resume humanoids.jsonl -o docs/humanoids.md    all available models
  humanoid study humanoids --robot g1,my_robot.xml --clip walk.bvh
  humanoid study whole_body --clip dance --clip 05_02.bvh --robot hrp2,g1 --resume dances.jsonl -o dances.md
  humanoid study tracker --network twist2_1017_20k.onnx --network twist2_1017_25k.onnx --resume tracker.jsonl
  humanoid study tracker --clip dance --method clip,feasible --seeds 0
  humanoid study limiters --policy policy.onnx --engine mujoco --seconds 60 --seeds 3
  humanoid study policy_faults --faults 56 --resume policy_faults.jsonl
  humanoid study perform --robot hrp2 --clip dance --seconds 8 --resume perform.jsonl -o perform.md
  humanoid study perform --only feasibility,open --engine both
  humanoid study hosts --resume hosts.jsonl             robot and controller on separate hosts (root)
  humanoid study hosts --only cuts --robot lola
  humanoid study faults --resume faults.jsonl           all parts, about three hours
  humanoid study faults --only starts,kills --starts 10 --kills 3 --json
  humanoid study faults --only states --states 100 --set whole_body_ik.following_error=0
  humanoid study tendons -o tendons                     all experiments, 20 seeds; JSON and plots
  humanoid study tendons --only E4,E5 --seeds 5 --details
  humanoid study tendons --only others --models my_models
  humanoid study tendon_control --only C1,C8 --seeds 4

The decision rules were fixed before the measurements; --details prints them. A refuted hypothesis is a result, not an
error: the exit code is 0. It is 1 if `faults` finds a violated guarantee.
"""
FORMATS = (".json", ".md")
OF_POLICIES = ("tracker", "limiters", "policy_faults")
INTO_FILES = ("imitation", "humanoids", "whole_body", "perform", *OF_POLICIES)  # studies that write one file
NOT_OPTIONS = ("study", "json", "details", "output")  # not passed to the study
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
    """Add a sub-command with options for each study; the study sets the defaults."""
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
        "--clip",
        action="append",
        type=given,
        dest="clips",
        help="motion file (default: the built-in dance); repeatable",
    )
    sternum.add(
        "--clip",
        action="append",
        type=given,
        dest="clips",
        help="motion file with a sternum marker, one per person; repeatable",
    )
    for study in (imitation, sternum):
        study.add("--marker-set", type=given, help="marker set of the clips: a name, or the path of a marker set file")
        study.add("--unit", type=given, help="length unit of the clips: mm, cm, m, inch")
        study.add("--scale", type=float, help="scale factor of the clips")
        study.add("--rate", type=float, help="frame rate [Hz] of AMC or CSV files without one")
    momentum.add("--robot", type=given, help="robot with legs (default: lola)")
    momentum.add("--step-length", type=float, help="step length [m] (default: 0.4, scaled by leg length)")
    momentum.add("--step-time", type=float, help="step time [s] (default: 0.8, longer for slow joints)")
    calibration.add("--robot", type=given, help="robot with legs (default: lola)")
    calibration.add("--poses", type=int, help="number of poses in the jig (default: 3)")
    calibration.add("--noise", type=float, help="noise of an encoder reading [deg] (default: 0.02)")
    calibration.add("--seeds", type=int, help="number of repetitions with other errors (default: 10)")
    safety.add("--robot", type=given, help="robot to test (default: all robots of the catalogue)")
    safety.add("--starts", type=int, help="number of starts per robot (default: 2000)")
    safety.add("--seed", type=int, help="seed of the random starts (default: 0)")
    worlds.add("--robot", type=given, help="robot with legs (default: lola)")
    worlds.add(
        "--vary", action="append", help="varied parameter name=1,2,3: friction, stiffness, push_x ...; repeatable"
    )
    worlds.add("--seconds", type=float, help="simulated time [s] (default: 5)")
    worlds.add("--engine", help="simulation engine: multibody (default) or mujoco")
    worlds.add("--drives", help="drive model: ideal (default), rigid or elastic")
    worlds.add("--workers", type=int, help="number of processes (default: one per core)")
    walking.add("--robot", type=given, help="robot name or path of a URDF (default: all four)")
    walking.add("--steps", type=int, help="steps per walk (default: 20, or as defined by the walk)")
    walking.add("--seeds", type=int, help="number of noise seeds (default: 1)")
    walking.add("--workers", type=int, help="number of processes (default: one per core)")
    dance.add("--robot", type=given, help="robot with legs and arms (default: lola and hrp2)")
    dance.add(
        "--clip",
        action="append",
        type=given,
        dest="clips",
        help="clip, built in or a file; repeatable (default: dance)",
    )
    dance.add("--seeds", type=int, help="number of noise seeds (default: 1)")
    dance.add("--seconds", type=float, help="duration of each clip [s] (default: 30)")
    dance.add("--only", type=comma_list, help="parts to run: standing or steps (default: both)")
    dance.add("--workers", type=int, help="number of processes (default: one per core)")
    dance.add("--resume", type=file_path, help="file of finished results to resume from")
    walking.add(
        "--only",
        type=comma_list,
        help="parts to run: robots,speed,ways,worlds,ground,pushes,stops; longer parts, only on request: "
        "momentum,armspeed,planners,blocks,long,twists,trouble,stopgo,further; alone: maps",
    )
    walking.add("--walk", type=given, help="walks to run, by part of their name")
    walking.add("--phases", type=int, help="number of gait cycle phases in which stops are tested (default: 8)")
    walking.add("--resume", type=file_path, help="file of finished results to resume from")
    walking.add("--ground", type=given, help="shape of the ground, such as plane:slope=5 or stairs:rise=0.1,run=0.35")
    tendons.add("--robot", type=given, help="robot with tendons (default: kengoro_upper)")
    tendons.add("--seeds", type=int, help="number of repetitions with other errors (default: 20)")
    tendons.add("--steps", type=int, help="steps per walk (default: 1500)")
    tendons.add(
        "--models",
        type=folder_path,
        help="folder of arm models of other authors (default: $HUMANOID_TEST_DATA/muscles)",
    )
    tendon_control.add("--robot", type=given, help="robot with tendons (default: kengoro_upper)")
    tendon_control.add("--seeds", type=int, help="runs per row (default: 3)")
    tendon_control.add(
        "--models",
        type=folder_path,
        help="folder of arm models of other authors (default: $HUMANOID_TEST_DATA/muscles)",
    )
    tendon_control.add("--only", type=comma_list, help="experiments to run: C1,C8")
    clearance.add("--robot", type=given, help="robot to test (default: all robots of the catalogue)")
    clearance.add("--commands", type=int, help="number of commands per robot (default: 100000)")
    clearance.add("--seed", type=int, help="seed of the targets (default: 0)")
    clearance.add("--workers", type=int, help="number of processes (default: one per core)")
    clearance.add("--resume", type=file_path, help="file of finished results to resume from")
    reaching.add("--data", type=folder_path, help="folder of S01_trajs.mat and so on (default: in $HUMANOID_TEST_DATA)")
    reaching.add("--repetition", type=int, help="repetition of each motion, 1 to 10 (default: 5)")
    reaching.add("--workers", type=int, help="number of processes (default: one per core)")
    reaching.add("--resume", type=file_path, help="file of finished results to resume from")
    reaching.add("--details", action="store_true", help="also print the rules")
    human.add("--data", type=folder_path, help="folder of the recordings (default: in $HUMANOID_TEST_DATA)")
    human.add("--only", type=comma_list, help="parts to run: R1,R4,R5,R6,R7 (default: all)")
    human.add("--workers", type=int, help="number of processes (default: one per core)")
    human.add("--resume", type=file_path, help="file of finished results to resume from")
    human.add("--details", action="store_true", help="also print the rules")
    humanoids.add(
        "--robot",
        type=comma_list,
        help="robot names or paths, comma-separated (default: all models found on this machine)",
    )
    humanoids.add(
        "--clip",
        action="append",
        type=given,
        dest="clips",
        help="clip, built in or a file; repeatable (default: dance, and a walk if available)",
    )
    humanoids.add("--workers", type=int, help="number of processes (default: one per core)")
    humanoids.add("--resume", type=file_path, help="file of finished results to resume from")
    whole_body.add(
        "--robot",
        type=comma_list,
        help="robot names or paths, comma-separated (default: lola,hrp2,suralp,wabian2, g1,h1_2,talos)",
    )
    whole_body.add(
        "--clip",
        action="append",
        type=given,
        dest="clips",
        help="clip, built in or a file; repeatable (default: dance, and recordings if available)",
    )
    whole_body.add(
        "--method",
        type=comma_list,
        help="retargeting methods: live, clip (all frames at once), or both, comma-separated (default: live)",
    )
    whole_body.add("--workers", type=int, help="number of processes (default: one per core)")
    whole_body.add("--resume", type=file_path, help="file of finished results to resume from")
    performing.add(
        "--robot",
        type=comma_list,
        help="robot names or paths, comma-separated (default: hrp2,lola,wabian2, and g1 if available)",
    )
    performing.add(
        "--clip",
        action="append",
        type=given,
        dest="clips",
        help="clip, built in or a file; repeatable (default: dance, and dance1 if available)",
    )
    performing.add(
        "--only",
        type=comma_list,
        help="parts to run: feasibility,performances,conditions,open,ablations (default: all)",
    )
    performing.add("--engine", help="simulation engine: multibody (default), mujoco or both")
    performing.add("--seeds", type=int, help="number of noise seeds (default: 3)")
    performing.add("--seconds", type=float, help="duration of each clip from its beginning [s] (default: all)")
    performing.add("--resume", type=file_path, help="file of finished results to resume from")
    hosts.add("--robot", type=given, help="robot name or path of a URDF (default: hrp2)")
    hosts.add("--only", type=comma_list, help="parts to run: links, cuts, clocks (default: all)")
    hosts.add(
        "--seconds", type=float, help="duration of the dance over each link and with each clock [s] (default: 10)"
    )
    hosts.add("--resume", type=file_path, help="file of finished results to resume from")
    _add_tracker(options["tracker"])
    _add_policies(options["limiters"], options["policy_faults"])
    _add_faults(faults)
    for study, text in (
        (imitation, "hypotheses to test: H1,H4"),
        (momentum, "claims to test: T-33,T-34"),
        (tendons, "experiments to run: E4"),
    ):
        study.add("--only", type=comma_list, help=text)
        study.add("--details", action="store_true", help="also print the rules and all numbers")
    sternum.add("--details", action="store_true", help="also explain the columns")
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
        study.add("-o", "--output", type=folder_path, help="output folder")
    for study in (imitation, humanoids, whole_body, performing, *(options[name] for name in OF_POLICIES)):
        study.add("-o", "--output", type=file_path, help="output file, .json or .md")
    for one in parsers.values():
        one.add_argument("--json", action="store_true", help="print one JSON object instead of tables")


def _add_tracker(tracker: _Options) -> None:
    tracker.add("--robot", type=given, help="robot driven by the tracker (default: g1)")
    tracker.add(
        "--clip",
        action="append",
        type=given,
        dest="clips",
        help="clip, built in or a file; repeatable (default: dances, and recordings if available)",
    )
    tracker.add(
        "--method", type=comma_list, help="retargeting methods: live,clip,feasible,gmr (default: all; gmr if installed)"
    )
    tracker.add("--policy", type=file_path, help="description file of the tracker (default: TWIST2)")
    tracker.add("--network", action="append", type=given, dest="networks", help="network checkpoint; repeatable")
    tracker.add("--seeds", type=int, help="number of push seeds, one per run (default: 3)")
    tracker.add("--push", type=float, help="impulse of each push [N s] (default: 20)")
    tracker.add("--seconds", type=float, help="maximum duration of each clip [s] (default: 30)")
    tracker.add("--engine", choices=("mujoco", "multibody"), help="simulation engine (default: mujoco)")
    tracker.add("--workers", type=int, help="number of processes (default: one per core)")
    tracker.add("--resume", type=file_path, help="file of finished results to resume from")


def _add_policies(limiters: _Options, faults: _Options) -> None:
    for study in (limiters, faults):
        study.add("--robot", type=given, help="robot driven by the policies (default: g1)")
        study.add(
            "--policy",
            action="append",
            type=given,
            dest="policies",
            metavar="FILE[,ONNX]",
            help="policy file, or its description and network; repeatable (default: available public policies)",
        )
        study.add("--workers", type=int, help="number of processes (default: one per core)")
        study.add("--resume", type=file_path, help="file of finished results to resume from")
    limiters.add("--limiter", type=comma_list, help="limiters to test: none,gate,rate20,rate200,freeze (default: all)")
    limiters.add("--engine", type=comma_list, help="simulation engines: multibody, mujoco (default: both)")
    limiters.add("--seconds", type=float, help="duration of each run [s] (default: 20)")
    limiters.add("--seeds", type=int, help="number of sensor noise seeds, in addition to ideal sensors (default: 0)")
    faults.add("--faults", type=int, help="number of faults; their numbers are the seeds (default: 300)")
    faults.add("--engine", choices=("mujoco", "multibody"), help="simulation engine (default: mujoco)")


def _add_faults(faults: _Options) -> None:
    faults.add("--robot", type=given, help="robot name or path of a URDF (default: hrp2)")
    faults.add("--only", type=comma_list, help="parts to run: starts,states,dance,kills,floods,messages (default: all)")
    faults.add("--starts", type=int, help="number of second controllers to start (default: 50, 10 min)")
    faults.add("--states", type=int, help="number of joint state faults, 3.5 s each (default: 1000, 1 h)")
    faults.add("--hours", type=float, help="duration of the dance without faults [h] (default: 1)")
    faults.add("--kills", type=int, help="kills per control node (default: 20, 10 min)")
    faults.add("--floods", type=int, help="floods of each kind (default: 3, 2 min)")
    faults.add("--messages", type=int, help="random messages on each topic of each node (default: 100000, 45 min)")
    faults.add("--seed", type=int, help="seed of all random values (default: 0)")
    faults.add("--resume", type=file_path, help="file of finished results to resume from")
    faults.add(
        "--set", action="append", dest="settings", metavar="NODE.PARAM=VALUE", help="set a node parameter; repeatable"
    )


class _Options:
    """Adds options that are omitted from the namespace unless given."""

    def __init__(self, parser: Parser) -> None:
        self.parser = parser

    def add(self, *names: str, **options: Any) -> None:
        self.parser.add_argument(*names, default=argparse.SUPPRESS, **options)


def run(args: argparse.Namespace) -> int:
    """Run the study, print the results and write the requested files."""
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
    """Reject numbers that are too large; the studies reject numbers that are too small."""
    require_range("workers", options.get("workers"), 1, 1024)
    require_range("rate", options.get("rate"), *RATES)
    for name, most in MOST.items():
        if (value := options.get(name, 0)) > most:
            raise ConfigError(f"--{name.replace('_', '-')} must be at most {most:g}, got {value:g}")


def _check_output(study: str, output: Path | None) -> None:
    """Check that the output can be written, before any computation."""
    if study not in INTO_FILES:
        check_folder(output)
    elif output is not None:
        if output.suffix not in FORMATS:
            raise UnknownNameError("format", output.suffix, FORMATS, hint=f"(of {output})")
        check_file(output)
