"""`humanoid robots`: the catalogue."""

from __future__ import annotations

import argparse

from humanoid_control.cli.output import console, print_json, table
from humanoid_control.cli.robot_dh import print_dh
from humanoid_control.cli.robot_map import write_map
from humanoid_control.errors import EnvironmentProblem
from humanoid_control.paths import share_dir
from humanoid_control.robots import CATALOGUE, MODELS, REFERENCES, load_robot

EXAMPLES = """examples:
  humanoid robots                     the table
  humanoid robots --json              the same as JSON
  humanoid robots show hrp2           joints and limits of one robot, or of any URDF
  humanoid robots dh we4rii           Denavit-Hartenberg table of its left arm, checked against the URDF
  humanoid robots dh hrp2 --tip sternum --json
  humanoid robots map my_robot.urdf   guess the robot file of a URDF (my_robot.yaml beside it), for you to check
  humanoid robots build               make the URDFs, robot files and docs/robots.md from urdf/source/*.yaml
"""

ACTIONS = ("list", "show", "dh", "map", "build")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", default="list", choices=ACTIONS, help="default: list")
    parser.add_argument("robot", nargs="?", help="for show, dh, map: a name of the catalogue or the path of a URDF")
    parser.add_argument(
        "--tip", default="l_wrist", help="for dh: point or link where the chain ends (default: l_wrist)"
    )
    parser.add_argument("--base", help="for dh: link where it begins (default: the one that imitation holds still)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    if args.action == "build":
        return _build()
    if args.action == "show":
        return _show(args.robot or "hrp2", args.json)
    if args.action == "map":
        return write_map(args.robot, args.json)
    if args.action == "dh":
        return print_dh(load_robot(args.robot or "hrp2", "fixed"), args.tip, args.base, args.json)
    rows, models, references = ([_row(name) for name in names] for names in (CATALOGUE, MODELS, REFERENCES))
    if args.json:
        print_json({"robots": rows, "models": models, "references": references})
        return 0
    rows += [{**row, "robot": f"{row['robot']} (study model)"} for row in models]
    rows += [{**row, "robot": f"{row['robot']} (reference model)"} for row in references]
    columns = ["name", "robot", "height_m", "mass_kg", "joints", "imitation", "published", "recalled", "estimated"]
    table("robots", columns, [[r[c] for c in columns] for r in rows])
    console.print(
        "published: from theses, papers, public models; recalled: from memory, not verified; estimated: ours."
    )
    console.print("Every number with its source: docs/robots.md and urdf/source/*.yaml.")
    return 0


def _row(name: str) -> dict:
    r = load_robot(name)
    return {
        "name": name,
        "robot": r.title,
        "height_m": r.height,
        "mass_kg": round(r.mass, 1),
        "joints": r.n,
        "imitation": len(r.imitation_joints),
        "collision_shapes": len(r.shapes),
        "collision_pairs": len(r.pairs),
        **r.provenance,
    }


def _show(name: str, as_json: bool) -> int:
    r = load_robot(name)
    deg = 180 / 3.141592653589793
    rows = [
        [
            j,
            round(r.lower[k] * deg, 1),
            round(r.upper[k] * deg, 1),
            round(float(r.velocity[k]), 3),
            round(float(r.effort[k]), 1),
        ]
        for j, k in r.index.items()
    ]
    columns = ["joint", "lower deg", "upper deg", "velocity rad/s", "effort N m"]
    if as_json:
        print_json({"name": r.name, "title": r.title, "joints": [dict(zip(columns, row, strict=True)) for row in rows]})
    else:
        table(f"{r.title}: {r.n} joints, {len(r.pairs)} pairs of shapes watched", columns, rows)
    return 0


def _build() -> int:
    from humanoid_control.robots.build import build

    if not (share_dir() / "setup.py").is_file():
        raise EnvironmentProblem("robots are built in a source checkout; this is an installed copy")
    for path in build():
        console.print(f"written: {path.relative_to(share_dir())}")
    return 0
