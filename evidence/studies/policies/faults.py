"""Faults put into policies on purpose: is each named when read, or as it runs, and do limits hold to the end?

Every fault is put into one of several policies of a G1 by its number, which is also the seed of what is random. What
contradicts is not run. The others run on the simulated robot, supervised and behind the gate, until two seconds after
they were let down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evidence.studies.policies.fault_list import fault_of
from evidence.studies.policies.trials import (
    DisturbedPlayer,
    Senses,
    chosen_policies,
    examined,
    policy_name,
    robot_of,
)
from evidence.studies.report import KeptOutcomes, Progress, StudyReport, as_markdown, silent
from humanoid_control.errors import ConfigError, HumanoidError, UnknownNameError
from humanoid_control.policy import Command, Policy, examine, gate_for
from humanoid_control.policy.supervision import DAMP, SIT
from humanoid_control.robots.catalogue import urdf_path
from humanoid_control.terminal import ReportTable, machine

ENGINES = ("mujoco", "multibody")
SECONDS = 6.0  # of a run
AFTER = 2.0  # [s] that a run continues after the robot was let down
WALK, BEGIN = (0.5, 0.0, 0.0), 1.0  # commanded velocity [m/s], [rad/s], from when on [s]
SOON = 0.5  # [s] within which a fault is to be named
MOST_EXCESS, MOST_SPEED = 0.02, 1.0  # [rad] beyond a range; share of a speed limit
MOST_FAULTS = 100_000
CAUGHT = (HumanoidError, ArithmeticError, ValueError, IndexError, KeyError, RuntimeError)
REFUSED, NAMED, LATER, UNNAMED, HARMLESS = "rejected", "named", "named later", "not named", "harmless"
ENDS = (REFUSED, NAMED, LATER, UNNAMED, HARMLESS)
HEAD = "`humanoid study policy_faults -o FILE.md` writes this page; options select policies and the number of faults."
NOTE = (
    f"rejected: a contradiction on reading. named: a note that the valid file does not have, or a change of state "
    f"within "
    f"{SOON:g} s of the onset of the fault. named later: caught or lowered after that, before the robot fell. not "
    f"named: it fell first. harmless: it walked to the end. limits: runs whose joints stayed within "
    f"{MOST_EXCESS:g} rad of their ranges and below their speed limits until {AFTER:g} s after it "
    "was let down. met: rejected; or limits kept, and named or harmless."
)


def run_study(
    robot: str = "g1",
    policies: Sequence[str] = (),
    faults: int = 300,
    engine: str = "mujoco",
    resume: Path | None = None,
    workers: int | None = None,
    show: Progress = silent,
) -> StudyReport:
    """Try so many faults.

    Args:
        robot: that the policies drive. policies: as of `chosen_policies`. faults: how many; their numbers are seeds.
        engine: 'mujoco' or 'multibody'. resume: file that keeps outcomes. workers: processes; None: one a core.

    Raises:
        UnknownNameError, RobotError: no such engine or robot. ConfigError: no such file; a number out of range.
        PolicyError: a policy that contradicts itself without a fault.
    """
    if engine not in ENGINES:
        raise UnknownNameError("engine", engine, ENGINES)
    if not 1 <= faults <= MOST_FAULTS:
        raise ConfigError(f"faults must be 1 to {MOST_FAULTS:,}, got {faults}")
    urdf_path(robot)
    kept = KeptOutcomes(resume, "faults of policies")
    specs = chosen_policies(policies)
    for spec in specs:
        Policy(examined(spec, robot), robot_of(robot))
    jobs = [(specs[k % len(specs)], robot, k, engine) for k in range(faults)]
    outcomes = list(kept.all(jobs, _try, workers, lambda share: show(share, "faults")))
    rows = [{"policy": policy_name(job[0]), "number": job[2]} | o for job, o in zip(jobs, outcomes, strict=True)]
    parts: list[ReportTable | str] = [kind_table(rows), worst_line(rows), NOTE]
    parts += [f"{r['number']}, {r['policy']}: {r['why']}" for r in rows if r["why"]]
    data = {"study": "policy_faults", "robot": robot, "engine": engine, "rows": rows, "machine": machine()}
    return StudyReport(data, parts, pictures=lambda: {"policy_faults.md": as_markdown("Faults", HEAD, parts)})


# -------- A fault


def _try(job: tuple[str, str, int, str]) -> dict[str, Any]:
    """Try a fault; what goes wrong is an outcome, not an error."""
    try:
        return {"why": "", **try_fault(*job)}
    except CAUGHT as e:
        return {"why": f"{e.__class__.__name__}: {e}"}


def try_fault(spec: str, name: str, number: int, engine: str) -> dict[str, Any]:
    """What became of a fault.

    Args:
        spec: of a policy, as of `chosen_policies`. name: of the robot. number: of the fault. engine: that simulates.
    """
    robot, sound = robot_of(name), examined(spec, name)
    fault = fault_of(sound.model, number)
    found = examine(fault.model, sound.network, robot)
    usual = {f.text for f in sound.findings}
    said = [f.text for f in found.findings if f.text not in usual]
    out = {"kind": fault.kind, "detail": fault.detail, "said": said, "refused": bool(found.contradictions)}
    if found.contradictions:
        return out | {"end": REFUSED, "limits": True, "met": True}
    policy = Policy(found, robot)
    mirrored = tuple(int(policy.acted[k]) for k in fault.mirrored)
    senses = Senses(fault.senses, mirrored, fault.delay, fault.late, fault.onset)
    player = DisturbedPlayer(policy, engine, gate_for(policy), senses, supervised=True)
    return out | _ran(player, bool(said), fault.onset)


def _ran(player: DisturbedPlayer, noted: bool, onset: float) -> dict[str, Any]:
    """Run it, and say what came of it."""
    assert player.supervisor is not None
    supervisor, let_down = player.supervisor, np.inf

    def each(p: DisturbedPlayer) -> None:
        nonlocal let_down
        p.command = Command(WALK if p.engine.time >= BEGIN else (0.0, 0.0, 0.0))
        if supervisor.state in (SIT, DAMP) and let_down == np.inf:
            let_down = p.engine.time

    while player.engine.time < SECONDS and player.engine.time < let_down + AFTER and not player.engine.diverged:
        player.step()
        each(player)
    report = player.finish()
    first = next((e.time for e in report.events), None)
    excess, speed = float(report.range_excess.max()), float(report.speed_share.max())
    limits = excess <= MOST_EXCESS and speed <= MOST_SPEED and not player.engine.diverged
    after = None if first is None else max(first - onset, 0.0)
    if noted or (after is not None and after <= SOON):
        end = NAMED
    elif first is not None and (report.fell is None or first <= report.fell):
        end = LATER
    else:
        end = UNNAMED if report.fell is not None else HARMLESS
    ended = supervisor.state in (SIT, DAMP) or report.fell is None
    return {
        "end": end,
        "limits": limits,
        "met": limits and ended and end in (NAMED, HARMLESS),
        "named_s": after,
        "fell": report.fell,
        "state": supervisor.state,
        "excess_rad": excess,
        "excess_joint": player.policy.robot.joint_names[int(report.range_excess.argmax())],
        "speed_share": speed,
        "speed_joint": player.policy.robot.joint_names[int(report.speed_share.argmax())],
        "events": [[e.time, e.state, e.why] for e in report.events],
    }


# -------- Tables


def kind_table(rows: Sequence[Mapping[str, Any]]) -> ReportTable:
    """A row for each kind of fault, and one for all."""
    good = [r for r in rows if not r["why"]]
    kinds = list(dict.fromkeys(r["kind"] for r in good))
    out = []
    for kind in [*sorted(kinds), "all"]:
        mine = [r for r in good if kind in ("all", r["kind"])]
        times = [r["named_s"] for r in mine if r.get("named_s") is not None]
        row: list[Any] = [kind, len(mine), *(sum(r["end"] == end for r in mine) for end in ENDS)]
        row += [round(float(np.median(times)), 2) if times else "-", sum(r["limits"] for r in mine)]
        out.append([*row, f"{sum(r['met'] for r in mine)} ({_percent(mine)} %)"])
    columns = ["fault", "tried", *ENDS, "median s to a name", "limits", "met"]
    return ReportTable("injected faults", columns, out)


def _percent(rows: Sequence[Mapping[str, Any]]) -> int:
    return round(100 * float(np.mean([r["met"] for r in rows]))) if rows else 0


def worst_line(rows: Sequence[Mapping[str, Any]]) -> str:
    """The farthest beyond a range, and the fastest joint, in words."""
    ran = [r for r in rows if not r["why"] and not r["refused"]]
    if not ran:
        return "Every fault was rejected on reading."
    far, fast = max(ran, key=lambda r: r["excess_rad"]), max(ran, key=lambda r: r["speed_share"])
    beyond = sum(r["excess_rad"] > MOST_EXCESS for r in ran)
    above = sum(r["speed_share"] > MOST_SPEED for r in ran)
    return (
        f"Farthest beyond a range: {far['excess_rad']:.3f} rad ({far['excess_joint']}, fault {far['number']}, "
        f"{far['kind']}); fastest: {fast['speed_share']:.2f} of its limit ({fast['speed_joint']}, fault "
        f"{fast['number']}, {fast['kind']}). Of {len(ran)} runs {beyond} exceeded a range, {above} a speed limit."
    )
