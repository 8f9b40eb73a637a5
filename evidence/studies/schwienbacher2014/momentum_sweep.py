"""Every method at its best: a sweep over what each leaves open, judged under the same limits.

The publication gives no gains for the costs of the free joints, and with weak ones its methods cancel far more than
with the ones that the other walks of this study have. So each method is swept over its own numbers, runs that break a
limit are left out, and what remains is compared as momentum against motion of the arms: a run is on the front where no
other has less of both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evidence.studies.schwienbacher2014.momentum_walkers import CONSTRAINED, FreeJointGains
from evidence.studies.schwienbacher2014.momentum_walks import (
    DELTAS,
    MUS,
    POSTURE_WEIGHTS,
    Measures,
    WalkingLab,
)
from humanoid_control.evaluation.report.plots import SERIES, png, subplots
from humanoid_control.terminal import ReportTable

COMFORT = (1.0, 0.1, 0.01)  # [1/s]
STEADY = 0.1  # share of the momentum with still arms by which a cycle may differ from the one before
FAMILIES = {
    "still": ("still",),
    "method 0": ("method 0", "method 0 x"),
    "method 1": ("method 1 unit", *(f"method 1 damped, mu {mu:g}" for mu in MUS)),
    "method 2": tuple(f"method 2 {d:g}" for d in DELTAS),
    "constrained": tuple(f"constrained, posture {w:g}" for w in POSTURE_WEIGHTS),
}
PUBLISHED = ("method 0", "method 1", "method 2")
COLUMNS = ["walk", "comfort 1/s", "L_z pp", "rms", "rate pp", "rms", "arms rad/s", "swing rad", "rad/s²", "speed"]
COLUMNS += ["limits", "front"]


@dataclass(frozen=True)
class SweptRun:
    """A walk of the sweep.

    Attributes:
        family: of FAMILIES. method: of `METHODS`. comfort: gain of the joints' posture [1/s], 0 where it has none.
        z: measures of the vertical momentum. broken: the first limit that it breaks; empty where it keeps all.
    """

    family: str
    method: str
    comfort: float
    z: Measures
    broken: str

    @property
    def name(self) -> str:
        """The method with its numbers."""
        return f"{self.method}, comfort {self.comfort:g}" if self.comfort else self.method


def sweep(lab: WalkingLab, show: Callable[[float, str], object] = lambda done, text: None) -> list[SweptRun]:
    """Walks of all families; those that the lab knows already are not played again."""
    todo = [
        (family, method, comfort)
        for family, methods in FAMILIES.items()
        for method in methods
        for comfort in (COMFORT if family in ("method 1", "method 2") else COMFORT[:1])
    ]
    most, out = STEADY * lab.outcome("still").z.peak_to_peak, []
    for k, (family, method, comfort) in enumerate(todo):
        show(k / len(todo), method)
        constrained = family == "constrained"
        z = lab.outcome(method, gains=None if constrained else FreeJointGains(comfort=comfort)).z
        out.append(SweptRun(family, method, 0.0 if constrained else comfort, z, broken_limit(z, most)))
    return out


def broken_limit(z: Measures, most: float) -> str:
    """The first limit that a walk breaks, in a word; empty where it keeps all.

    Args:
        z: its measures. most: by which its momentum may differ from that of the cycle before [kg m^2/s].
    """
    limits = {
        "range": z.beyond_limit > 1e-9,
        "speed": z.speed_share > 1 + 1e-9,
        "acceleration": z.acceleration > CONSTRAINED.acceleration * (1 + 1e-6),
        "contact": z.clearance <= 0,
        "not steady": z.repeats > most,
    }
    return next((word for word, broken in limits.items() if broken), "")


def best(runs: Sequence[SweptRun], family: str) -> SweptRun | None:
    """The run of a family with the least peak-to-peak momentum, of those that keep every limit."""
    good = [r for r in runs if r.family == family and not r.broken]
    return min(good, key=lambda r: r.z.peak_to_peak, default=None)


def front(runs: Sequence[SweptRun]) -> list[SweptRun]:
    """Runs that keep every limit and that no other beats in both momentum and speed of the arms, by that speed."""
    out: list[SweptRun] = []
    for run in sorted((r for r in runs if not r.broken), key=lambda r: (r.z.arm_speed, r.z.peak_to_peak)):
        if not out or run.z.peak_to_peak < out[-1].z.peak_to_peak:
            out.append(run)
    return out


def sweep_parts(runs: Sequence[SweptRun]) -> list[ReportTable | str]:
    """The front and the best of each family as a table, all runs as another, and what follows from them."""
    on = front(runs)
    bests = [b for f in FAMILIES if (b := best(runs, f))]
    chosen = [r for r in runs if r in on or r in bests]
    title = "best settings of each method, and Pareto front of momentum and arm motion"
    return [ReportTable(title, COLUMNS, [_line(r, on) for r in chosen]), conclusion(runs)]


def all_runs(runs: Sequence[SweptRun]) -> ReportTable:
    """Every run of the sweep."""
    on = front(runs)
    return ReportTable("the sweep", COLUMNS, [_line(r, on) for r in runs])


def conclusion(runs: Sequence[SweptRun]) -> str:
    """The order of the methods by the least momentum, and where the constrained solver stands, in words."""
    bests = sorted((b for f in FAMILIES if (b := best(runs, f))), key=lambda r: r.z.peak_to_peak)
    order = ", ".join(f"{r.family} {r.z.peak_to_peak:.3g} ({r.z.arm_speed:.2f} rad/s)" for r in bests)
    on = front(runs)
    where = ", ".join(f"{f} {sum(r.family == f for r in on)}" for f in FAMILIES)
    return (
        f"lowest L_z pp [kg m²/s] of each method, with the rms speed of the arms: {order}. Runs on the front: {where}."
    )


def _line(run: SweptRun, on: Sequence[SweptRun]) -> list[object]:
    z = run.z
    numbers = [z.peak_to_peak, z.rms, z.rate_peak_to_peak, z.rate_rms, z.arm_speed, z.arm_swing, z.acceleration]
    told = [float(f"{x:.3g}") for x in numbers]
    return [
        run.method,
        run.comfort or "",
        *told,
        round(z.speed_share, 2),
        run.broken or "kept",
        "x" if run in on else "",
    ]


def front_plot(runs: Sequence[SweptRun], title: str) -> bytes:
    """A PNG: momentum against the speed of the arms, every run a point, hollow where it breaks a limit."""
    figure, (axes,) = subplots(1, 1, 7.0, 4.6)
    for k, family in enumerate(FAMILIES):
        these = [r for r in runs if r.family == family]
        for good in (True, False):
            part = [r for r in these if bool(r.broken) != good]
            axes.scatter(
                [r.z.arm_speed for r in part],
                [r.z.peak_to_peak for r in part],
                s=28,
                facecolors=SERIES[k] if good else "none",
                edgecolors=SERIES[k],
                label=family if good else None,
            )
    on = front(runs)
    axes.plot([r.z.arm_speed for r in on], [r.z.peak_to_peak for r in on], color="#888888", linewidth=1.0, zorder=0)
    axes.set_yscale("log")
    axes.set_xlabel("rms speed of the arms' joints [rad/s]")
    axes.set_ylabel("L_z, peak to peak [kg m²/s]")
    axes.set_title(f"{title}; hollow: violates a limit; line: Pareto front")
    axes.legend(frameon=False, fontsize=8)
    return png(figure)
