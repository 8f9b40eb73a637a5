"""`humanoid robots`: the catalogue, one robot's joints, Denavit-Hartenberg tables, robot files guessed and built."""

from __future__ import annotations

import argparse

import numpy as np

from humanoid_control.cli.parser import given, refuse_unused, require_range
from humanoid_control.errors import ConfigError, EnvironmentProblem
from humanoid_control.paths import share_dir
from humanoid_control.robots.catalogue import CATALOGUE, MODELS, REFERENCES, load_robot, urdf_path
from humanoid_control.robots.denavit_hartenberg import DenavitHartenberg, dh_of, difference_from_urdf
from humanoid_control.robots.guess.robot_file import guess_robot_file
from humanoid_control.robots.robot import Robot
from humanoid_control.terminal import console, print_json, progress, table, warn
from humanoid_control.warm_up import compile_first

POSTURES = 100


def print_dh(robot: Robot, tip: str, base: str | None, as_json: bool) -> int:
    """Print the table from a link to a point or link; the exit code."""
    t = dh_of(robot, tip, base)
    position, rotation, jacobian = difference_from_urdf(robot, t, POSTURES)
    rows = _rows(t)
    if as_json:
        print_json(
            {
                "robot": robot.name,
                "base": t.base,
                "tip": t.tip,
                "rows": rows,
                "base_to_frame_0": t.X_base_0.tolist(),
                "frame_n_to_tip": t.X_n_tip.tolist(),
                "difference_from_urdf": {
                    "postures": POSTURES,
                    "position_m": position,
                    "rotation": rotation,
                    "jacobian": jacobian,
                },
            }
        )
        return 0
    columns = ["joint", "a m", "alpha deg", "d m", "theta deg"]
    keys = ["joint", "a_m", "alpha_deg", "d_m", "theta_deg"]
    digits = [[r[keys[0]], *(f"{r[k]:.4f}" for k in keys[1:])] for r in rows]
    table(f"{robot.title}: {t.base} to {t.tip}, standard Denavit-Hartenberg parameters", columns, digits)
    console.print("theta is added to the joint's angle.")
    for name, X in (("base to frame 0", t.X_base_0), ("last frame to tip", t.X_n_tip)):
        console.print(f"{name}: xyz {_numbers(X[:3, 3])} m, rotation rows {'; '.join(_numbers(r) for r in X[:3, :3])}")
    console.print(
        f"largest difference from the URDF over {POSTURES} random postures: position {position:.1e} m, rotation "
        f"{rotation:.1e}, Jacobian {jacobian:.1e}"
    )
    return 0


def _rows(t: DenavitHartenberg) -> list[dict]:
    return [
        {"joint": name, "a_m": a, "alpha_deg": alpha, "d_m": d, "theta_deg": theta}
        for name, a, alpha, d, theta in zip(
            t.joint_names,
            *(v.round(12).tolist() for v in (t.a, np.degrees(t.alpha), t.d, np.degrees(t.theta))),
            strict=True,
        )
    ]


def _numbers(values: np.ndarray) -> str:
    return " ".join(f"{v + 0.0:.4g}" for v in np.round(values, 9))


# -------- Robot file of an unknown URDF


def write_map(robot: str, as_json: bool) -> int:
    """Guess the robot file of a URDF, write it, and print what was found; the exit code."""
    path, mapping = guess_robot_file(urdf_path(robot))
    xyz = {name: [round(float(v), 4) + 0.0 for v in p.xyz] for name, p in mapping.points.items()}
    if as_json:
        points = [
            {"point": name, "link": p.link, "xyz": xyz[name], "found": p.how, "guess": p.weak}
            for name, p in mapping.points.items()
        ]
        fits = [
            {
                "body": f.link,
                "shapes": len(f.shapes),
                "outside_max_m": round(f.outside_max, 5),
                "outside_mean_m": round(f.outside_mean, 5),
                "inside_max_m": round(f.inside_max, 5),
            }
            for f in mapping.fits
        ]
        content = {"points": points, "imitation_joints": mapping.imitation_joints, "fits": fits}
        print_json({"file": str(path), **content})
        return 0
    columns = ["point", "link", "xyz m", "found", "guess"]
    cells = [
        [name, p.link, " ".join(f"{v:g}" for v in xyz[name]), p.how, "guess" if p.weak else ""]
        for name, p in mapping.points.items()
    ]
    table("tracked points", columns, cells)
    console.print(f"{len(mapping.imitation_joints)} joints: {', '.join(mapping.imitation_joints)}")
    if mapping.fits:
        columns = ["body", "shapes", "outside max mm", "outside mean mm", "inside max mm"]
        numbers = [(f.outside_max, f.outside_mean, f.inside_max) for f in mapping.fits]
        millimetres = [[f"{1000 * v:.1f}" for v in row] for row in numbers]
        rows = [[f.link, len(f.shapes), *row] for f, row in zip(mapping.fits, millimetres, strict=True)]
        table("shapes fitted to meshes: how far they stand out of them", columns, rows)
    if any(p.weak for p in mapping.points.values()):
        warn("points marked 'guess' follow human proportions, not the robot's structure: correct them")
    console.print(f"written: {path}")
    console.print(f"check it, then try: humanoid retarget dance --robot {robot}")
    return 0


# -------- Own meshes along a motion


def print_touching(name: str, motion: str, step: int, as_json: bool) -> int:
    """Retarget a clip, and print how often the robot's own meshes touch; the exit code."""
    from humanoid_control.evaluation.mesh_contact import mesh_contacts
    from humanoid_control.mocap.load import load_body_points
    from humanoid_control.retargeting import retarget_clip
    from humanoid_control.retargeting.scaling import scale_to_robot

    require_range("every", step, 1, 10000)
    robot = load_robot(name, "fixed")
    robot.require_imitation_points()
    body = load_body_points(motion)
    compile_first()
    trajectory = retarget_clip(scale_to_robot(body, robot), robot)
    frames = trajectory.positions[::step]
    with progress("meshes", len(frames), quiet=as_json) as show:
        found = mesh_contacts(robot, frames, lambda k: show(k, robot.name))
    by_shapes = float(np.mean(trajectory.clearance[::step] < 0))
    if as_json:
        pairs = [{"links": list(p), "frames": int(found.touching[:, k].sum())} for k, p in enumerate(found.pairs)]
        shares = {"touching_percent": 100 * found.share, "by_shapes_percent": 100 * by_shapes}
        print_json({"robot": robot.name, "frames": len(frames), **shares, "pairs": pairs})
        return 0
    rows = [[" - ".join(p), int(found.touching[:, k].sum())] for k, p in enumerate(found.pairs)]
    if rows:
        table("own meshes that touch", ["links", "frames"], rows)
    console.print(
        f"{robot.title}: own collision meshes touch in {100 * found.share:.2f} % of {len(frames)} frames "
        f"({found.watched} pairs); in collision by {robot.shapes_from or 'its shapes'}: {100 * by_shapes:.2f} %"
    )
    return 0


# -------- The command

EXAMPLES = """examples:
  humanoid robots                     the table
  humanoid robots --json              the same as JSON
  humanoid robots show hrp2           joints and limits of one robot, or of any URDF
  humanoid robots dh we4rii           Denavit-Hartenberg table of its left arm, checked against the URDF
  humanoid robots dh hrp2 --tip sternum --json
  humanoid robots map my_robot.urdf   guess the robot file of a URDF (my_robot.yaml beside it), for you to check
  humanoid robots touching my_robot.urdf --motion dance   how often its own meshes touch along a clip
  humanoid robots build               make the URDFs, robot files and docs/robots.md from urdf/source/*.yaml
"""

ACTIONS = ("list", "show", "dh", "map", "touching", "build")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", default="list", choices=ACTIONS, help="default: list")
    parser.add_argument(
        "robot", nargs="?", type=given, help="for all but list and build: a name of the catalogue or the path of a URDF"
    )
    parser.add_argument("--tip", type=given, help="for dh: point or link where the chain ends (default: l_wrist)")
    parser.add_argument(
        "--base", type=given, help="for dh: link where it begins (default: the one that imitation holds still)"
    )
    parser.add_argument("--motion", type=given, help="for touching: clip (default: dance, built in)")
    parser.add_argument("--every", type=int, metavar="N", help="for touching: every Nth frame (default: 1)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    if args.action != "dh":
        refuse_unused(args, ["tip", "base"], "`humanoid robots dh ROBOT`")
    if args.action != "touching":
        refuse_unused(args, ["motion", "every"], "`humanoid robots touching ROBOT`")
    if args.action in ("list", "build"):
        refuse_unused(args, ["ROBOT"], "show, dh, map and touching, not to " + args.action)
    elif args.robot is None:
        example = "my_robot.urdf" if args.action in ("map", "touching") else "hrp2"
        raise ConfigError(f"name a robot: humanoid robots {args.action} {example}")
    if args.action == "build":
        refuse_unused(args, ["json"], "list, show, dh, map and touching, not to build")
        return _build()
    if args.action == "show":
        return _show(args.robot, args.json)
    if args.action == "map":
        return write_map(args.robot, args.json)
    if args.action == "touching":
        return print_touching(args.robot, args.motion or "dance", 1 if args.every is None else args.every, args.json)
    if args.action == "dh":
        return print_dh(load_robot(args.robot, "fixed"), args.tip or "l_wrist", args.base, args.json)
    rows, models, references = ([_row(name) for name in names] for names in (CATALOGUE, MODELS, REFERENCES))
    if args.json:
        print_json({"robots": rows, "models": models, "references": references})
        return 0
    rows += [{**row, "robot": f"{row['robot']} (study model)"} for row in models]
    rows += [{**row, "robot": f"{row['robot']} (reference model)"} for row in references]
    columns = ["name", "robot", "height_m", "mass_kg", "joints", "imitation", "published", "recalled", "estimated"]
    table("robots", columns, [[r[c] for c in columns] for r in rows])
    console.print(
        "published: from theses, papers, public models; recalled: from memory, not verified; estimated: by own rules."
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
    lower, upper = np.degrees(r.lower), np.degrees(r.upper)
    rows = [
        [
            j,
            round(float(lower[k]), 1),
            round(float(upper[k]), 1),
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
    from humanoid_control.robots.generate.build import build

    if not (share_dir() / "setup.py").is_file():
        raise EnvironmentProblem("robots are built in a source checkout; this is an installed copy")
    for path in build():
        console.print(f"written: {path.relative_to(share_dir())}")
    return 0
