"""`humanoid tendons`: tendons, joint groups, fitted mappings, holdable postures."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.cli.parser import file_path, given
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.files import check_file
from humanoid_control.robots.catalogue import load_robot
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.tendons import GROUPINGS, tendon_geometry, tendon_groups, tendons_of
from humanoid_control.tendons.control.holdable import (
    HELD,
    HoldableSet,
    holdable_limits,
    losses_by_tendon,
    ranges_held,
)
from humanoid_control.tendons.mappings.fitting import KINDS, Accuracy, accuracy, check_size, fit_mapping, save_mapping
from humanoid_control.tendons.mappings.postures import random_postures
from humanoid_control.tendons.routing.geometry import TendonGeometry
from humanoid_control.tendons.tendon import TendonGroup, owner_table
from humanoid_control.terminal import console, print_json, progress, table
from humanoid_control.warm_up import TENDONS, compile_first

EXAMPLES = """examples:
  humanoid tendons kengoro_upper                        groups with owned and borrowed joints, and tendons
  humanoid tendons hrp2 --groups automatic --json
  humanoid tendons kengoro_upper --fit l_shoulder -o shoulder.npz
  humanoid tendons kengoro_upper --fit neck --kind neural -o neck.npz
  humanoid tendons kengoro_upper --hold                 postures that the tendons can hold, and redundant tendons
  humanoid tendons kengoro_upper --hold --payload 1.0   with 1 kg in each hand
  state_estimator --ros-args -p robot:=kengoro_upper -p source:=tendons -p groups:=file -p mapping:=shoulder.npz

More: docs/tendons.md.
"""
LOOKED_AT = 200  # postures for moment arms
SPARE = 0.05  # share of held postures that a dispensable tendon may cost


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "robot",
        nargs="?",
        type=given,
        default="kengoro_upper",
        help="robot name or path of a URDF (default: kengoro_upper)",
    )
    parser.add_argument("--groups", default="file", help=f"joint grouping: {', '.join(GROUPINGS)} (default: file)")
    parser.add_argument("--fit", metavar="GROUP", help="joint group to fit a mapping to, written to --output")
    parser.add_argument("--kind", help=f"with --fit: kind of mapping: {', '.join(KINDS)} (default: polynomial)")
    parser.add_argument("-o", "--output", type=file_path, help="with --fit: output file (.npz)")
    parser.add_argument(
        "--hold", action="store_true", help="compute the share of the joint ranges that the tendons can hold at rest"
    )
    parser.add_argument("--payload", type=float, help="with --hold: mass in each hand [kg]")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    if args.fit is None and not (args.kind is None and args.output is None):
        raise ConfigError(f"--{'output' if args.kind is None else 'kind'} applies to --fit GROUP")
    if args.fit is not None and args.output is None:
        raise ConfigError("--fit needs --output FILE.npz")
    if args.output is not None and args.output.suffix != ".npz":
        raise ConfigError(f"--output must be a .npz file, got {args.output}")
    check_file(args.output, "--output")
    kind = "polynomial" if args.kind is None else args.kind
    if kind not in KINDS:
        raise UnknownNameError("kind of mapping", kind, KINDS)
    if args.payload is not None and not args.hold:
        raise ConfigError("--payload applies to --hold")
    if args.payload is not None and not 0 <= args.payload <= 100:
        raise ConfigError(f"--payload must be 0 to 100 kg, got {args.payload:g}")
    if args.hold and args.fit is not None:
        raise ConfigError("--hold and --fit exclude each other: give one of them")
    robot = load_robot(args.robot, "fixed")
    if args.hold:
        return _hold(robot, args.payload or 0.0, args.json)
    groups = {g.name: g for g in tendon_groups(robot, args.groups)}
    if args.fit is None:
        return _show(robot, tuple(groups.values()), args.json)
    if args.fit not in groups:
        raise UnknownNameError(f"group of {robot.name}", args.fit, groups)
    return _fit(robot, groups[args.fit], kind, args.output, args.json)


def _show(robot: Robot, groups: tuple[TendonGroup, ...], as_json: bool) -> int:
    geometry = tendon_geometry(robot)
    arms = np.abs(geometry.jacobians_of(random_postures(geometry.limits, LOOKED_AT))).max(axis=0)
    lengths = geometry.raw(np.array([geometry.theta(robot.q("neutral"))]))[0][0]
    tendons = []
    for k, name in enumerate(geometry.tendon_names):
        crosses = [j for j, crossed in zip(geometry.joint_names, geometry.crossed[k], strict=True) if crossed]
        tendons.append((name, 1e3 * lengths[k], 1e3 * arms[k].max(), ", ".join(crosses)))
    sizes = [(g.name, len(g.own), len(g.borrow), len(g.tendons)) for g in groups]
    owned = [(joint, owner, ", ".join(borrowers)) for joint, owner, borrowers in owner_table(groups)]
    columns: dict[str, tuple[list[str], Sequence[tuple[Any, ...]]]] = {
        "groups": (["group", "own joints", "borrowed", "tendons"], sizes),
        "joints": (["joint", "owned by", "borrowed by"], owned),
        "tendons": (["tendon", "length mm", "largest moment arm mm", "crosses"], tendons),
    }
    if as_json:
        print_json(
            {title: [dict(zip(names, row, strict=True)) for row in rows] for title, (names, rows) in columns.items()}
        )
        return 0
    for title, (names, rows) in columns.items():
        table(f"{robot.title}: {title}", names, rows)
    return 0


def _hold(robot: Robot, payload: float, as_json: bool) -> int:
    geometry = tendon_geometry(robot)
    compile_first(TENDONS)
    posture = robot.q("neutral")
    holdable = HoldableSet(robot.model, geometry, payload=in_hands(robot, payload), held=posture)
    neutral = np.clip(geometry.theta(posture), *geometry.limits.T)
    rows = ranges_held(holdable, neutral)
    scale, limits = holdable_limits(holdable, neutral)
    losses = losses_by_tendon(holdable, neutral)
    names = geometry.joint_names
    by_joint = [(n, *(100 * row.by_joint[k] for row in rows), *np.degrees(limits[k])) for k, n in enumerate(names)]
    groups = [
        (g.name, *(100 * max(row.by_joint[names.index(j)] for j in g.own) for row in rows))
        for g in tendons_of(robot).groups.values()
    ]
    held = [(f"{100 * row.share:.0f} %", 100 * row.held, row.tension) for row in rows]
    spare = [(n, 100 * lost, "yes" if lost <= SPARE else "no") for n, lost in losses.items()]
    within = [f"within {100 * row.share:.0f} %" for row in rows]
    columns: dict[str, tuple[list[str], Sequence[tuple[Any, ...]]]] = {
        "range held": (["range around neutral", "postures held %", "mean tension N"], held),
        "groups": (["% of postures missed by", *within], groups),
        "joints": (["% of postures missed by", *within, "held from deg", "to deg"], by_joint),
        "tendons": (["tendon", "postures lost without it %", "can be lost"], spare),
    }
    count = sum(lost <= SPARE for lost in losses.values())
    if as_json:
        parts = {k: [dict(zip(n, row, strict=True)) for row in rows] for k, (n, rows) in columns.items()}
        print_json({"payload kg": payload, "scale held": scale, "spare tendons": count, **parts})
        return 0
    for title, (heads, lines) in columns.items():
        table(f"{robot.title}: {title}", heads, lines)
    console.print(
        f"held: no joint torque error above {HELD:g} N m; 99 % of the postures are held within "
        f"{100 * scale:.0f} % of the range; {count} of {len(losses)} tendons are redundant within 40 % (at "
        f"most {100 * SPARE:.0f} % of the postures lost)"
    )
    return 0


def in_hands(robot: Robot, mass: float) -> dict[str, float]:
    """Return a mass [kg] per hand by frame, half at the wrist, half at the fingertips.

    Raises:
        ConfigError: if the robot lacks these points.
    """
    points = [p for p in ("l_wrist", "l_fingertip", "r_wrist", "r_fingertip") if p in robot.points]
    if mass and not points:
        raise ConfigError(f"{robot.name} has no wrists or fingertips to carry a payload")
    sides = {side: [p for p in points if p.startswith(side)] for side in ("l_", "r_")}
    frames = robot.model.frames
    return {frames[robot.points[p]].name: mass / len(of) for of in sides.values() for p in of} if mass else {}


def _fit(robot: Robot, group: TendonGroup, kind: str, path: Path, as_json: bool) -> int:
    check_size(len(group.joints), kind)
    compile_first(TENDONS)
    geometry = TendonGeometry(robot.model, tendons_of(robot).only(group.tendons), group.joints)
    with progress(f"fitting {group.name}", 1.0, as_json) as show:
        mapping = fit_mapping(geometry, kind, show)
    found = accuracy(mapping, geometry)
    save_mapping(path, mapping)
    _report(group, kind, path, found, mapping.fit.samples if mapping.fit else 0, as_json)
    return 0


def _report(group: TendonGroup, kind: str, path: Path, found: Accuracy, samples: int, as_json: bool) -> None:
    said = {
        "group": group.name,
        "kind": kind,
        "joints": len(group.joints),
        "tendons": len(group.tendons),
        "postures": samples,
        "length rms mm": 1e3 * found.length,
        "moment arm rms mm": 1e3 * found.arm,
        "file": str(path),
    }
    if as_json:
        print_json(said)
        return
    table(f"mapping of {group.name}", list(said), [list(said.values())])
    console.print("errors are measured at postures outside the training set")
