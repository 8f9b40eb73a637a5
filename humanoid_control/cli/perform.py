"""`humanoid perform`: a clip becomes a feasible motion that a simulated robot performs on its feet."""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.cli.parser import (
    CLIP_HELP,
    add_clip_options,
    add_robots,
    add_speed,
    folder_path,
    given,
    is_folder,
    read_body,
    require_range,
    tell_notes,
)
from humanoid_control.errors import ConfigError, UnknownNameError, require_extra
from humanoid_control.files import check_file, check_folder, whole_file
from humanoid_control.terminal import console, print_json, progress, table
from humanoid_control.warm_up import PERFORMING, SIMULATION, WHOLE_BODY, compile_first

BOTH = "both"
DRIVES = ("torque", "position")
FELL = 3  # exit code: a robot fell
MOMENTS = 5  # of a picture
ALONE, ROW = (1400, 560), (900, 300)  # [pixels] of the picture of a single robot, of each of several
EVERY, PUSHED = 3.0, 0.1  # [s] period and duration of pushes
EXAMPLES = """examples:
  humanoid perform dance --robot hrp2                      retarget, make feasible and perform in simulation
  humanoid perform clip.trc --robot hrp2,lola --engine both --json
  humanoid perform walk.bvh --robot hrp2 --pace 0.7        constant pace of the whole clip
  humanoid perform salsa.bvh --robot g1 --speed 0.5        half as fast, and slower where needed
  humanoid perform dance --robot my_robot.urdf             URDF only: points, soles and shapes are guessed
  humanoid perform dance --robot hrp2 --seeds 3 --push 6   three noise seeds, a push of 6 N s every 3 s
  humanoid perform dance --robot hrp2 --open-loop --retargeted   without a controller, compared with retargeting only
  humanoid perform dance --robot hrp2 --picture dance.png  five moments with forces, zero-moment point and plan
  humanoid perform dance --robot hrp2,lola --picture strip.png   one row per robot, at the same moments of the clip
  humanoid perform dance --robot hrp2 --drives position    position drives with feed-forward torques
  humanoid perform dance --robot hrp2 -o dance.npz         write the feasible motion with forces and torques

A torque-based whole-body controller tracks the motion, with noisy sensors and 2 ms delay. With --open-loop, position
drives with feed-forward torques replay it without balance control, which tests the motion itself.
Exit code 0: every robot performed to the end; 3: at least one fell.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from humanoid_control.simulation import ENGINES

    parser.add_argument("clip", type=given, help=CLIP_HELP)
    add_robots(parser, "hrp2")
    parser.add_argument(
        "--engine", choices=[*ENGINES, BOTH], default=ENGINES[0], help=f"simulation engine (default: {ENGINES[0]})"
    )
    parser.add_argument(
        "--pace", type=float, help="constant pace of the whole clip (default: slower only where needed)"
    )
    add_speed(parser)
    parser.add_argument("--friction", type=float, default=0.8, help="friction coefficient of the ground (default: 0.8)")
    parser.add_argument(
        "--assumed-friction",
        type=float,
        help="friction assumed by the controller (default: 0.6; slippery: 0.3)",
    )
    parser.add_argument(
        "--open-loop", action="store_true", help="replay the motion with position drives, without a controller"
    )
    parser.add_argument("--retargeted", action="store_true", help="also perform the retargeted motion")
    parser.add_argument(
        "--drives", choices=DRIVES, default=DRIVES[0], help=f"drive commands of the controller (default: {DRIVES[0]})"
    )
    parser.add_argument("--no-noise", action="store_true", help="simulate sensors without errors")
    parser.add_argument("--seeds", type=int, default=1, help="number of noise seeds, from 0 (default: 1)")
    parser.add_argument(
        "--push", type=float, help="impulse of a push on the root every 3 s, alternating along x and y [N s]"
    )
    parser.add_argument(
        "-o", "--output", type=given, help="feasible motion to write: .npz, or a folder for several robots"
    )
    parser.add_argument("--picture", type=given, help="picture of five moments of each performance to write: .png")
    add_clip_options(parser)
    parser.add_argument("--raw", action="store_true", help="use the clip unchanged, without cleaning")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")


def run(args: argparse.Namespace) -> int:
    from humanoid_control.retargeting import CLIP, WholeBodyTask
    from humanoid_control.robots import load_robots
    from humanoid_control.simulation import ENGINES

    require_range("pace", args.pace, 0.1, 2)
    require_range("speed", args.speed, 0.05, 20)
    require_range("friction", args.friction, 0.05, 5)
    require_range("assumed-friction", args.assumed_friction, 0.05, 2)
    require_range("seeds", args.seeds, 1, 100)
    require_range("push", args.push, 0, 1000)
    if args.open_loop:
        given_too = [
            name
            for name, on in (
                ("--no-noise", args.no_noise),
                ("--assumed-friction", args.assumed_friction is not None),
                ("--seeds", args.seeds > 1),
                ("--drives", args.drives != DRIVES[0]),
            )
            if on
        ]
        if given_too:
            raise ConfigError(f"{given_too[0]} applies to the controller: an open loop reads no sensors")
    _check_picture(args)
    args.clip_times, args.drawn = None, []
    robots = load_robots(args.robot or ["hrp2"], "floating", imitate=True, guess=True)
    tell_notes(robots)
    outputs = _outputs(args, [r.name for r in robots])
    body = read_body(args)
    tasks = [WholeBodyTask.of(body, robot, args.speed) for robot in robots]
    compile_first(WHOLE_BODY, PERFORMING, SIMULATION)
    engines, rows = list(ENGINES) if args.engine == BOTH else [args.engine], []
    for task, output in zip(tasks, outputs, strict=True):
        with progress(task.robot.name, len(task), quiet=args.json) as show:
            trajectory = task.solve(None, lambda k, _: show(k), CLIP).trajectory
        rows += _performed(task.robot, trajectory, args, engines, output)
    if args.drawn:
        from humanoid_control.viewer.performance_stills import stacked_pictures

        with whole_file(Path(args.picture)) as part:
            part.write_bytes(stacked_pictures(args.drawn))
    if args.json:
        print_json({"clip": args.clip, "rows": rows})
    else:
        _print(rows)
        for output in outputs:
            if output is not None:
                console.print(f"written: {output}")
    return 0 if all(r["survived"] for r in rows if r["motion"] == "feasible") else FELL


def _performed(
    robot: Any, trajectory: Any, args: argparse.Namespace, engines: list[str], output: Path | None
) -> list[dict[str, Any]]:
    """Return rows of a robot: the feasible motion per engine, optionally the retargeted one."""
    from humanoid_control.performing import (
        FeasibilitySettings,
        feasibility_row,
        make_feasible,
        perform,
        retargeted_motion,
    )
    from humanoid_control.simulation import SimulationConfig
    from humanoid_control.walking.gait import GRAVITY

    settings, rows = FeasibilitySettings(pace=args.pace or 0.0).at_speed(args.speed), []
    motion = make_feasible(trajectory, robot, settings)
    if output is not None:
        motion.write(output)
    motions = {"feasible": motion}
    if args.retargeted:
        motions["retargeted"] = retargeted_motion(trajectory, robot, settings)
    for name, one in motions.items():
        numbers = feasibility_row(one, robot.mass * GRAVITY)
        for engine, seed in product(engines, range(args.seeds)):
            world = SimulationConfig(robot.name, "floating", engine, friction=args.friction).build(robot)
            performer = _performer(one, world, seed, args)
            watch, moments = _pushes(args.push), _moments(one, performer, args) if args.picture else None
            outcome = perform(one, world, performer, _both(watch, moments))
            if moments is not None and moments.seen:  # else it fell before
                args.drawn.append(_drawn(robot, moments, len(args.robot or []) > 1))
            row = {"robot": robot.name, "motion": name, "engine": engine, "seed": seed} | outcome.row()
            rows.append(row | performer.numbers() | {"feasibility": numbers})
    return rows


def _performer(motion: Any, world: Any, seed: int, args: argparse.Namespace) -> Any:
    from humanoid_control.performing import ControllerSettings, OpenLoop, PositionDrives, WholeBodyController
    from humanoid_control.simulation.noisy_sensors import NOISE, NoisySensors

    if args.open_loop:
        return OpenLoop(motion)
    read = None if args.no_noise else NoisySensors(world, NOISE, seed).read
    settings = ControllerSettings()
    if args.assumed_friction is not None:
        settings = replace(settings, friction=args.assumed_friction)
    controller = WholeBodyController(world.robot, motion, settings, read)
    return controller if args.drives == DRIVES[0] else PositionDrives(controller)


def _pushes(impulse: float | None) -> Any:
    """Create a watcher that pushes the root link every 3 s by an impulse [N s] along x, y, -x, -y in turn."""
    if not impulse:
        return None
    directions = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])

    def watch(t: float, engine: Any) -> None:
        count = round(t / EVERY)
        if count > 0 and abs(t - count * EVERY) < 1e-4:
            force = impulse / PUSHED * directions[count % 4]
            engine.push(engine.robot.root_link, np.array([*force, 0.0, 0.0, 0.0, 0.0]), PUSHED)

    return watch


def _check_picture(args: argparse.Namespace) -> None:
    if args.picture is None:
        return
    several = args.seeds > 1 or args.engine == BOTH or args.retargeted
    if args.open_loop or several:
        reason = "an open loop has no plan" if args.open_loop else "give one engine and seed"
        raise ConfigError(f"--picture shows one performance of a robot by the controller: {reason}")
    path = folder_path(args.picture)
    if path.suffix != ".png":
        raise UnknownNameError("format", path.suffix, [".png"], hint=f"(of {path})")
    check_file(path)
    require_extra("video")


def _moments(motion: Any, controller: Any, args: argparse.Namespace) -> Any:
    """Create a watcher that records the picture's moments of the first motion, by clip time."""
    from humanoid_control.viewer.performance_stills import PerformanceMoments, striking_times, times_of

    if args.clip_times is None:
        args.clip_times = striking_times(motion, controller.robot, MOMENTS)
    return PerformanceMoments(controller, times_of(motion, args.clip_times))


def _both(*watchers: Any) -> Any:
    some = [w for w in watchers if w is not None]

    def watch(t: float, engine: Any) -> None:
        for w in some:
            w(t, engine)

    return watch if some else None


def _drawn(robot: Any, moments: Any, several: bool) -> bytes:
    from humanoid_control.viewer.performance_stills import performance_picture

    return performance_picture(robot, moments.seen, *(ROW if several else ALONE))


def _print(rows: list[dict[str, Any]]) -> None:
    names = {"seconds": "s", "steps": "steps", "made": "made", "placed": "placed", "on_beat": "on the beat"}
    names |= {"slip_mm": "slip mm", "tilt_deg": "tilt deg", "tracking_root_cm": "root error cm"}
    names |= {
        "tracking_world_cm": "world error cm",
        "saturated_percent": "torque-saturated %",
        "real_time": "real time",
    }
    names |= {"dcm_error_mm": "dcm error mm", "tick_ms": "tick ms"} if "tick_ms" in rows[0] else {}
    cells = []
    for r in rows:
        fate = "yes" if r["survived"] else f"fell at {r['fell_s']:g} s"
        values = [r[key] for key in names]
        cells.append([r["robot"], r["motion"], r["engine"], fate, *(_text(v) for v in values)])
    title = "performances by the whole-body controller" if "tick_ms" in rows[0] else "performances, open loop"
    table(title, ["robot", "motion", "engine", "danced", *names.values()], cells)
    for r in rows:
        if r["feasibility"]["fallback"]:
            console.print(f"{r['robot']}: {r['feasibility']['fallback']}")
        if not r["survived"]:
            console.print(f"{r['robot']}, {r['motion']}, {r['engine']}: fell, {r['why']}")


def _text(value: Any) -> Any:
    return " / ".join(f"{x:g}" for x in value) if isinstance(value, list) else value


def _outputs(args: argparse.Namespace, names: list[str]) -> list[Path | None]:
    if args.output is None:
        return [None] * len(names)
    path = folder_path(args.output)
    if is_folder(args.output):
        check_folder(path)
        path.mkdir(exist_ok=True)
        return [path / f"{name}.npz" for name in names]
    if path.suffix != ".npz":
        raise UnknownNameError("format", path.suffix, [".npz"], hint=f"(of {path}; a folder is {path}/)")
    if len(names) > 1:
        raise ConfigError(f"for several robots -o must be a folder, got {path}")
    check_file(path)
    return [path]
