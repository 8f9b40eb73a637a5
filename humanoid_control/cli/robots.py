"""`humanoid robots`: catalogue, joints, Denavit-Hartenberg tables, guessed and built robot files."""

from __future__ import annotations

import argparse
import math

import numpy as np

from humanoid_control.cli.parser import folder_path, given, refuse_unused, require_range, tell_notes
from humanoid_control.errors import ConfigError, EnvironmentProblem
from humanoid_control.files import check_folder
from humanoid_control.paths import share_dir
from humanoid_control.robots.catalogue import catalogue_rows, load_robot, urdf_path
from humanoid_control.robots.denavit_hartenberg import dh_of, difference_from_urdf
from humanoid_control.robots.description.meshes import missing_meshes, missing_text
from humanoid_control.robots.description.mjcf import read_description
from humanoid_control.robots.description.robot_file import RobotFile
from humanoid_control.robots.description.urdf import parse_urdf
from humanoid_control.robots.guess.robot_file import contact_text, guess_robot_file
from humanoid_control.robots.humanoids import MODELS_VARIABLE, humanoids
from humanoid_control.robots.names import CATALOGUE, MODELS, REFERENCES
from humanoid_control.robots.robot import Robot
from humanoid_control.terminal import console, print_json, progress, table, warn
from humanoid_control.warm_up import compile_first

EXAMPLES = """examples:
  humanoid robots                     table of all robots
  humanoid robots --json              the same as JSON
  humanoid robots show hrp2           joints and limits of a robot or a URDF
  humanoid robots dh we4rii           Denavit-Hartenberg table of its left arm, checked against the URDF
  humanoid robots dh hrp2 --tip sternum --json
  humanoid robots show g1             a humanoid whose model is on this machine
  humanoid robots map my_robot.urdf   draft the robot file my_robot.yaml next to the URDF, to be checked
  humanoid robots map my_robot.xml    draft from MJCF, with the parser of MuJoCo
  humanoid robots map my_robot.xml --bare -o files/   without collision shapes, to a folder
  humanoid robots touching my_robot.urdf --motion dance   how often the meshes touch during a clip
  humanoid robots build               generate URDFs, robot files and docs/robots.md from urdf/source/*.yaml
"""
ACTIONS = ("list", "show", "dh", "map", "touching", "build")
POSTURES = 100  # for the comparison of a table with the URDF


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", default="list", choices=ACTIONS, help="action (default: list)")
    parser.add_argument(
        "robot",
        nargs="?",
        type=given,
        help="robot name or path of a URDF or MJCF file (all actions except list and build)",
    )
    parser.add_argument("--tip", type=given, help="with dh: point or link at the end of the chain (default: l_wrist)")
    parser.add_argument(
        "--base", type=given, help="with dh: base link of the chain (default: the fixed link during imitation)"
    )
    parser.add_argument("--bare", action="store_true", help="with map: omit collision shapes")
    parser.add_argument("-o", "--output", type=folder_path, help="with map: output folder (default: next to the URDF)")
    parser.add_argument("--motion", type=given, help="with touching: clip (default: dance, built in)")
    parser.add_argument("--every", type=int, metavar="N", help="with touching: check every Nth frame (default: 1)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    if args.action != "dh":
        refuse_unused(args, ["tip", "base"], "`humanoid robots dh ROBOT`")
    if args.action != "touching":
        refuse_unused(args, ["motion", "every"], "`humanoid robots touching ROBOT`")
    if args.action != "map":
        refuse_unused(args, ["bare", "output"], "`humanoid robots map ROBOT`")
    if args.action in ("list", "build"):
        refuse_unused(args, ["ROBOT"], "show, dh, map and touching, not to " + args.action)
    elif args.robot is None:
        example = "my_robot.urdf" if args.action in ("map", "touching") else "hrp2"
        raise ConfigError(f"name a robot: humanoid robots {args.action} {example}")
    if args.action == "build":
        refuse_unused(args, ["json"], "list, show, dh, map and touching, not to build")
        return _build()
    return {"list": _list, "show": _show, "dh": _dh, "map": _map, "touching": _touching}[args.action](args)


def _list(args: argparse.Namespace) -> int:
    rows, models, references = (catalogue_rows(names) for names in (CATALOGUE, MODELS, REFERENCES))
    others = [
        {"name": h.name, "robot": h.title, "file": str(found) if found is not None else None, "get": h.get}
        for h, found in ((h, h.find()) for h in humanoids().values())
    ]
    if args.json:
        print_json({"robots": rows, "models": models, "references": references, "humanoids": others})
        return 0
    rows += [{**row, "robot": f"{row['robot']} (study model)"} for row in models]
    rows += [{**row, "robot": f"{row['robot']} (reference model)"} for row in references]
    columns = ["name", "robot", "height_m", "mass_kg", "joints", "imitation", "published", "recalled", "estimated"]
    heads = ["moved by a clip" if c == "imitation" else c.replace("_", " ") for c in columns]
    table("robots", heads, [[r[c] for c in columns] for r in rows])
    console.print(
        "published: from theses, papers or public models; recalled: from memory, unverified; estimated: by "
        "the rules of this project."
    )
    console.print("Sources of all numbers: docs/robots.md and urdf/source/*.yaml.")
    cells = [[o["name"], o["robot"], "here" if o["file"] else o["get"]] for o in others]
    table("other humanoids, whose models are not part of this package", ["name", "robot", "model"], cells)
    console.print(
        f"Models are searched in the folders of ${MODELS_VARIABLE}. To evaluate their motion: humanoid study humanoids."
    )
    return 0


def _show(args: argparse.Namespace) -> int:
    r = load_robot(args.robot)
    tell_notes([r])
    limits = [np.degrees(r.lower).round(1), np.degrees(r.upper).round(1), r.velocity.round(3), r.effort.round(1)]
    limits += [r.acceleration_limits.round(1), r.braking_limits.round(1)]
    rows = [
        [joint, *(v if math.isfinite(v) else None for v in row)]
        for joint, row in zip(r.joint_names, np.column_stack(limits).tolist(), strict=True)
    ]
    columns = ["joint", "lower deg", "upper deg", "velocity rad/s", "effort N m", "acceleration rad/s²", "at an end"]
    if args.json:
        print_json({"name": r.name, "title": r.title, "joints": [dict(zip(columns, row, strict=True)) for row in rows]})
    else:
        ends, unknown = ("lower deg", "upper deg"), ("no end", "unknown")
        shown = [
            [unknown[name not in ends] if v is None else v for name, v in zip(columns, row, strict=True)]
            for row in rows
        ]
        table(f"{r.title}: {r.n} joints, {len(r.pairs)} monitored pairs of shapes", columns, shown)
    return 0


def _dh(args: argparse.Namespace) -> int:
    robot = load_robot(args.robot, "fixed")
    t = dh_of(robot, args.tip or "l_wrist", args.base)
    position, rotation, jacobian = difference_from_urdf(robot, t, POSTURES)
    if args.json:
        worst = {"postures": POSTURES, "position_m": position, "rotation": rotation, "jacobian": jacobian}
        print_json({"robot": robot.name, **t.to_json(), "difference_from_urdf": worst})
        return 0
    cells = [[joint, *(f"{v:.4f}" for v in numbers)] for joint, *numbers in (row.values() for row in t.rows())]
    title = f"{robot.title}: {t.base} to {t.tip}, standard Denavit-Hartenberg parameters"
    table(title, ["joint", "a m", "alpha deg", "d m", "theta deg"], cells)
    console.print("theta is added to the joint's angle.")
    for name, X in (("base to frame 0", t.X_base_0), ("last frame to tip", t.X_n_tip)):
        console.print(f"{name}: xyz {_numbers(X[:3, 3])} m, rotation rows {'; '.join(_numbers(r) for r in X[:3, :3])}")
    console.print(
        f"largest difference from the URDF over {POSTURES} random postures: position {position:.1e} m, rotation "
        f"{rotation:.1e}, Jacobian {jacobian:.1e}"
    )
    return 0


def _numbers(values: np.ndarray) -> str:
    return " ".join(f"{v + 0.0:.4g}" for v in np.round(values, 9))


def _map(args: argparse.Namespace) -> int:
    model = urdf_path(args.robot)
    if args.output is not None:
        check_folder(args.output)
        args.output.mkdir(exist_ok=True)
    with progress("robot file", 1.0, quiet=args.json) as show:
        path, guessed = guess_robot_file(model, args.output, not args.bare, show)
    if args.json:
        print_json({"file": str(path), **guessed.to_json()})
        return 0
    cells = [
        [name, p.link, " ".join(f"{v:g}" for v in p.rounded()), p.how, "guess" if p.weak else ""]
        for name, p in guessed.points.items()
    ]
    table("tracked points", ["point", "link", "xyz m", "found", "guess"], cells)
    console.print(f"{len(guessed.imitation_joints)} joints: {', '.join(guessed.imitation_joints)}")
    if guessed.neutral:
        turned = ", ".join(f"{joint} {angle:g}" for joint, angle in guessed.neutral.items())
        console.print(f"with all joints at 0 the meshes of an arm touch something: neutral posture with {turned} rad")
    if guessed.feet:
        soles = [
            [
                sole.name,
                sole.link,
                f"{1000 * (sole.x_max - sole.x_min):.0f} x {1000 * (sole.y_max - sole.y_min):.0f}",
                f"{sole.x_min:.3f} .. {sole.x_max:.3f}, {sole.y_min:.3f} .. {sole.y_max:.3f}, {sole.z:.3f}",
                foot.how,
                "guess" if foot.weak else "",
            ]
            for foot in guessed.feet
            for sole in foot.soles
        ]
        table("soles, in the frame of the link", ["sole", "link", "mm", "x, y, z m", "found: around", "guess"], soles)
    if guessed.fits:
        columns = ["body", "shapes", "outside max mm", "outside mean mm", "inside max mm"]
        rows = [
            [f.link, len(f.shapes), *(f"{1000 * v:.1f}" for v in (f.outside_max, f.outside_mean, f.inside_max))]
            for f in guessed.fits
        ]
        table("shapes fitted to meshes: distance by which they protrude", columns, rows)
    if guessed.contacts:
        rows = [[" - ".join(c.links), len(c.shapes), contact_text(c)] for c in guessed.contacts]
        table("links with overlapping shapes but separate meshes", ["links", "own shapes", "found"], rows)
    robot = Robot(read_description(model), RobotFile())
    robot.folder = model.resolve().parent
    tell_notes([robot])
    if not guessed.feet:
        warn("no legs with soles: only the upper body can move; walking is not available")
    if missing := missing_meshes(parse_urdf(robot.urdf, robot.name), robot.folder):
        warn(missing_text(missing, robot.name))
    if any(p.weak for p in guessed.points.values()):
        warn("points marked 'guess' follow human proportions, not the structure of the robot: correct them")
    console.print(f"written: {path}")
    console.print(f"check it, then try: humanoid retarget dance --robot {args.robot}")
    return 0


def _touching(args: argparse.Namespace) -> int:
    from humanoid_control.evaluation.mesh_contact import clip_mesh_contacts, geometry_with_meshes
    from humanoid_control.mocap.load import load_body_points

    require_range("every", args.every, 1, 10000)
    robot = load_robot(args.robot, "fixed")
    robot.require_imitation_points()
    body = load_body_points(args.motion or "dance")
    compile_first()
    with progress("meshes", 1.0, quiet=args.json) as show:
        found = clip_mesh_contacts(robot, body, args.every or 1, lambda done, total: show(done / total, robot.name))
    if args.json:
        print_json(found.to_json())
        return 0
    meshes = found.meshes
    shapes = "primitive shapes (its URDF has no meshes)" if geometry_with_meshes(robot) is None else "collision meshes"
    rows = [[" - ".join(p), n] for p, n in zip(meshes.pairs, meshes.frames_of_pairs, strict=True)]
    if rows:
        table(f"self-contacts of {shapes}", ["links", "frames"], rows)
    console.print(
        f"{robot.title}: {shapes} touch in {100 * meshes.share:.2f} % of {len(meshes.touching)} frames "
        f"({meshes.watched} pairs); in collision by {robot.shapes_from or 'its shapes'}: "
        f"{100 * found.share_by_shapes:.2f} %"
    )
    return 0


def _build() -> int:
    from humanoid_control.robots.generate.build import build

    if not (share_dir() / "setup.py").is_file():
        raise EnvironmentProblem("robots are built in a source checkout; this is an installed copy")
    for path in build():
        console.print(f"written: {path.relative_to(share_dir())}")
    return 0
