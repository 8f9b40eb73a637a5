"""Whole steps of the simulated world for `humanoid bench dynamics`: a robot on its feet, ours and MuJoCo's."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from humanoid_control.cli.output import warn
from humanoid_control.errors import EnvironmentProblem
from humanoid_control.robots import load_robot
from humanoid_control.simulation import Engine, WorldSettings, make_engine

STEPS = 20  # of 1 ms in a call
SETTLING = 500  # steps before the first measurement


def world_steps(name: str) -> list[tuple[str, Callable[[], float], int]]:
    """Rows: name, a call that returns the time of one step of 1 ms [s], degrees of freedom."""
    robot = load_robot(name, "floating")
    wanted = [("world_step_lola", "multibody", "ideal"), ("world_step_lola_rigid", "multibody", "rigid")]
    wanted += [("world_step_lola_elastic", "multibody", "elastic"), ("mujoco_step_lola", "mujoco", "ideal")]
    out: list[tuple[str, Callable[[], float], int]] = []
    for row, engine, drives in wanted:
        try:
            world = make_engine(robot, engine, WorldSettings(drives=drives))
        except EnvironmentProblem as e:
            warn(f"{row} is left out: {e}")
            continue
        world.step(SETTLING)
        full = getattr(world, "full_v", world.v)
        out.append((row, partial(_step, world), len(full)))
    return out


def _step(world: Engine) -> float:
    start = time.perf_counter()
    world.step(STEPS)
    return (time.perf_counter() - start) / STEPS
