"""What lies between policies and drives, side by side: the gate on torques, limits on targets, and a freeze on speed.

Each policy walks, or dances, behind each limiter in each engine, with perfect sensors and with the noise of some seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evidence.studies.policies.trials import (
    DisturbedPlayer,
    Senses,
    chosen_policies,
    examined,
    noisy,
    policy_name,
    robot_of,
)
from evidence.studies.report import KeptOutcomes, Progress, StudyReport, as_markdown, silent
from humanoid_control.errors import ConfigError, HumanoidError, UnknownNameError
from humanoid_control.policy import (
    Command,
    FreezeOnSpeed,
    Limiter,
    Policy,
    TargetRateLimit,
    Unlimited,
    gate_for,
    play,
)
from humanoid_control.policy.player import LOOP
from humanoid_control.robots.catalogue import urdf_path
from humanoid_control.terminal import ReportTable, machine

ENGINES = ("multibody", "mujoco")
LIMITERS: dict[str, Callable[[Policy], Limiter]] = {
    "none": lambda policy: Unlimited(policy.robot),
    "gate": gate_for,
    "rate20": lambda policy: TargetRateLimit(policy.robot, LOOP, 20.0, 0.5),
    "rate200": lambda policy: TargetRateLimit(policy.robot, LOOP, 200.0, 0.5),
    "freeze": lambda policy: FreezeOnSpeed(policy.robot),
}
NONE, GATE = "none", "gate"
BEGIN = 1.0  # [s] from which the velocity is commanded
SPEED = 0.5  # [m/s]
MOST_SEEDS, MOST_SECONDS = 1000, 3600.0
CAUGHT = (HumanoidError, ArithmeticError, ValueError, IndexError, KeyError, RuntimeError)
HEAD = "`humanoid study limiters -o FILE.md` writes this page; options select policies and limiters."
NOTE = (
    f"Forward at {SPEED:g} m/s from {BEGIN:g} s on; a policy with its own motion performs it. gate: limits torques. "
    "rate20, rate200: targets within 20 and 200 rad/s² and half the speed limits. freeze: the posture is held "
    "permanently once a joint exceeds half its speed limit. A cell: time on the feet of each run; farthest "
    "beyond a range [rad], largest speed as a share of its limit, smallest distance of two shapes [mm], and share of "
    "steps in which the gate acts: worst of the runs. With seeds, the runs after the first have noisy sensors."
)


def run_study(
    robot: str = "g1",
    policies: Sequence[str] = (),
    limiter: Sequence[str] = (),
    engine: Sequence[str] = (),
    resume: Path | None = None,
    workers: int | None = None,
    show: Progress = silent,
    **trial: float,
) -> StudyReport:
    """Run policies behind limiters.

    Args:
        robot: that the policies drive. policies: as of `chosen_policies`. limiter: of LIMITERS; default: all.
        engine: of ENGINES; default: both. resume: file that keeps outcomes. workers: processes; None: one a core.
        trial: `seconds` of each run, default 20; `seeds` of noise, default 0.

    Raises:
        UnknownNameError, RobotError: no such limiter, engine or robot. ConfigError: no such file; a number out of
        range. PolicyError: a policy that contradicts itself.
    """
    for what, names, known in (("limiter", limiter, LIMITERS), ("engine", engine, ENGINES)):
        for name in names:
            if name not in known:
                raise UnknownNameError(what, name, known)
    seconds, seeds = float(trial.pop("seconds", 20.0)), int(trial.pop("seeds", 0))
    if trial or not 1.0 <= seconds <= MOST_SECONDS or not 0 <= seeds <= MOST_SEEDS:
        raise ConfigError(f"--seconds must be 1 to {MOST_SECONDS:g}, and --seeds 0 to {MOST_SEEDS}")
    urdf_path(robot)
    kept = KeptOutcomes(resume, "limiters of policies")
    specs = chosen_policies(policies)
    for spec in specs:
        Policy(examined(spec, robot), robot_of(robot))
    limiters, engines = list(dict.fromkeys(limiter)) or [*LIMITERS], list(dict.fromkeys(engine)) or [*ENGINES]
    jobs: list[tuple[str, str, str, str, float, int]] = [
        (spec, robot, one, name, seconds, seed)
        for spec in specs
        for one in engines
        for name in limiters
        for seed in range(seeds + 1)
    ]
    outcomes = list(kept.all(jobs, _try, workers, lambda share: show(share, "limiters")))
    keys = ("policy", "robot", "engine", "limiter", "seconds", "seed")
    rows: list[dict[str, Any]] = [dict(zip(keys, job, strict=True)) | o for job, o in zip(jobs, outcomes, strict=True)]
    parts: list[ReportTable | str] = [engine_table(rows, one, limiters) for one in engines]
    parts += [fall_line(rows), NOTE]
    parts += [f"{policy_name(r['policy'])}, {r['engine']}, {r['limiter']}: {r['why']}" for r in rows if r["why"]]
    data = {"study": "limiters", "rows": rows, "machine": machine()}
    return StudyReport(data, parts, pictures=lambda: {"limiters.md": as_markdown("Limiters", HEAD, parts)})


def _try(job: tuple[str, str, str, str, float, int]) -> dict[str, Any]:
    """Run one; what goes wrong is an outcome, not an error."""
    try:
        return {"why": "", **run_once(*job[:4], seconds=job[4], seed=job[5])}
    except CAUGHT as e:
        return {"why": f"{e.__class__.__name__}: {e}"}


def run_once(spec: str, name: str, engine: str, limiter: str, seconds: float, seed: int) -> dict[str, Any]:
    """A run of a policy behind a limiter.

    Args:
        spec: as of `chosen_policies`. name: of the robot. engine: of ENGINES. limiter: of LIMITERS.
        seconds: of the run. seed: of the noise; 0: perfect sensors.
    """
    robot = robot_of(name)
    policy = Policy(examined(spec, name), robot)
    senses = noisy(seed) if seed else Senses()
    player = DisturbedPlayer(policy, engine, LIMITERS[limiter](policy), senses)

    def each(p: Any) -> None:
        p.command = Command((SPEED if p.engine.time >= BEGIN else 0.0, 0.0, 0.0))

    report = play(player, seconds, each)
    fell = report.fell if report.fell is not None else (report.seconds if report.stopped else None)
    return {
        "fell": fell,
        "excess_rad": max(float(report.range_excess.max()), 0.0),
        "speed_share": float(report.speed_share.max()),
        "apart_mm": 1000 * report.self_distance,
        "gate": report.gate.get("any rule"),
        "distance_m": report.distance,
    }


# -------- Tables


def engine_table(rows: Sequence[Mapping[str, Any]], engine: str, limiters: Sequence[str]) -> ReportTable:
    """A row for each policy, a column for each limiter."""
    mine = [r for r in rows if r["engine"] == engine and not r["why"]]
    specs = list(dict.fromkeys(r["policy"] for r in mine))
    cells = [
        [policy_name(spec), *(_cell([r for r in mine if (r["policy"], r["limiter"]) == (spec, n)]) for n in limiters)]
        for spec in specs
    ]
    return ReportTable(engine, ["policy", *limiters], cells)


def _cell(rows: Sequence[Mapping[str, Any]]) -> str:
    """Falls and the worst numbers of the runs of one policy behind one limiter."""
    if not rows:
        return "-"
    falls = [r["fell"] for r in rows]
    if all(f is None for f in falls):
        said = "stands"
    else:
        said = "falls " + ", ".join("no" if f is None else f"{f:.1f}" for f in falls) + " s"
    excess, speed = max(r["excess_rad"] for r in rows), max(r["speed_share"] for r in rows)
    apart = [r["apart_mm"] for r in rows if r["apart_mm"] is not None and np.isfinite(r["apart_mm"])]
    said += f"; {excess:.3f}; {speed:.2f}; {min(apart):.0f} mm" if apart else f"; {excess:.3f}; {speed:.2f}"
    active = [r["gate"] for r in rows if r["gate"] is not None]
    return said + (f"; {100 * max(active):.1f} %" if active else "")


def fall_line(rows: Sequence[Mapping[str, Any]]) -> str:
    """Falls with the gate that the policy alone does not have, in words."""
    good = [r for r in rows if not r["why"]]
    fell = {(r["limiter"], r["policy"], r["engine"], r["seed"]): r["fell"] for r in good}
    both = [key[1:] for key in fell if key[0] == GATE and (NONE, *key[1:]) in fell]
    alone = [k for k in both if fell[NONE, k[0], k[1], k[2]] is None]
    worse = [k for k in alone if fell[GATE, k[0], k[1], k[2]] is not None]
    names = ", ".join(f"{policy_name(p)} ({e}, seed {s})" for p, e, s in worse)
    return f"Falls only with the gate: {len(worse)} of {len(alone)}" + (f": {names}." if worse else ".")
