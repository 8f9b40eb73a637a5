"""Page of a person's motion: residuals, angles, moments, forces and a filmstrip in one HTML file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import numpy as np
from matplotlib.axes import Axes

from humanoid_control import __version__
from humanoid_control.evaluation.plug_in_gait import GaitComparison
from humanoid_control.evaluation.report.page import STYLE, grid
from humanoid_control.evaluation.report.plots import INK, SERIES, subplots, svg
from humanoid_control.evaluation.report.small_multiples import Curve, PlotPanel, small_multiples
from humanoid_control.human.analysis import Analysis
from humanoid_control.human.models.robot_motion import RobotMotion, robot_rows
from humanoid_control.human.records import marker_ranking, residual_table, tracking_summary
from humanoid_control.terminal import ReportTable

WIDTH = 10.0
GUESS = ".guess { color: #b3261e; font-weight: 600; }"
COLUMNS = 4
PHASES = 8  # postures in the filmstrip
FORCE_SCALE = 1 / 1500  # [m/N] length of a force arrow
SIDES = {"_r": SERIES[1], "_l": SERIES[5], "": SERIES[2]}
SEEN = 0.8  # [rad, m] standard deviation above which the band is omitted
STRETCH = 0.55  # [m] between postures of a person in place


def person_page(
    a: Analysis, command: str = "", robots: Sequence[RobotMotion] = (), beside: GaitComparison | None = None
) -> str:
    """Return the self-contained HTML.

    Args:
        command: command that reproduces the analysis.
    """
    rms = 1e3 * float(np.sqrt(np.nanmean(a.fit.rms**2)))
    parts = [
        f"<h1>“{escape(a.clip.name)}” by {escape(a.person.name)}</h1>",
        f"<p>{a.clip.n_frames} frames at {a.clip.rate:g} Hz, {len(a.fit.labels)} markers, {a.person.n} coordinates, "
        f"{a.person.mass:.1f} kg; filter {a.settings.cutoff:g} Hz. Markers lie {rms:.1f} mm from the model's "
        f"(root mean square); moments are known in {int(a.explained.sum())} frames.</p>",
        *([f"<p>{escape(_verdict(a))}</p>"] if a.loads is not None and a.explained.any() else []),
        *(f'<p class="guess">{escape(g[0].upper() + g[1:])}.</p>' for g in a.guesses),
        "<h2>The motion</h2>",
        _motion(a),
        "<h2>Detected and assumed values</h2>",
        "<ul>" + "".join(f"<li>{escape(w)}.</li>" for w in a.warnings) + "</ul>" if a.warnings else "<p>Nothing.</p>",
        "<h2>Markers</h2>",
        _residuals(a),
        f"<details><summary>markers, worst first</summary>{grid(_markers(a))}</details>",
        "<h2>Joint angles</h2>",
        '<p class="note">Band: two standard deviations, computed from the marker residuals; degrees or metres.</p>',
        _curves(a, moments=False),
    ]
    if a.loads is not None and a.explained.any():
        parts += ["<h2>Joint moments</h2>", '<p class="note">N m per kg of the person.</p>', _curves(a, moments=True)]
        parts += ["<h2>Forces and root residual</h2>", _forces(a), grid(_root(a)), grid(_contacts(a))]
    if a.tracking is not None:
        parts += ["<h2>Forward tracking with the measured forces</h2>", grid(_tracked(a)), _tracked_curves(a)]
    if beside is not None:
        parts += ["<h2>Compared with Plug-in Gait</h2>", grid(_beside(beside)), _beside_curves(a, beside)]
    if robots:
        parts += ["<h2>The same markers on robots</h2>", grid(_robots(a, robots)), _robot_curves(a, robots)]
        parts += [
            "<ul>" + "".join(f"<li>{escape(r.name)}: {escape(w)}.</li>" for r in robots for w in r.warnings) + "</ul>"
        ]
    if command:
        parts.append(f"<h2>Again</h2><pre>{escape(command)}</pre>")
    parts.append(f'<p class="note">humanoid_control {__version__}, humanoid analyse.</p>')
    head = (
        f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(a.clip.name)}</title>'
    )
    body = "\n".join(parts)
    head += f"<style>{STYLE}{GUESS}</style>"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


def _verdict(a: Analysis) -> str:
    force = residual_table(a)["force_of_weight"]
    before, after, good = (100 * force[k] for k in ("before", "after", "good_below"))
    word = "below" if before < good else "above"
    return (
        f"Residual force at the root: {before:.1f} % of the weight as measured, {word} the {good:.0f} % "
        f"that Hicks et al. 2015 call good; {after:.1f} % after the accelerations were corrected"
    )


def _markers(a: Analysis) -> ReportTable:
    place = {m.name: m for m in a.person.markers}
    rows = [[name, place[name].body, round(mm, 1)] for name, mm in marker_ranking(a)]
    return ReportTable("markers", ["marker", "body", "rms mm"], rows)


def _root(a: Analysis) -> ReportTable:
    rows = [
        [name, round(v["before"], 2), round(v["after"], 3)]
        for name, v in residual_table(a).items()
        if name != "force_of_weight"
    ]
    return ReportTable("root", ["residual of the root, rms [N m, N]", "as measured", "corrected"], rows)


def _contacts(a: Analysis) -> ReportTable:
    assert a.loads is not None
    rows = [
        [c.plate, round(c.start, 3), round(c.end, 3), " and ".join(c.feet) or "nobody", round(c.peak)]
        for c in a.loads.contacts
    ]
    return ReportTable("contacts", ["plate", "from [s]", "to [s]", "foot", "peak [N]"], rows)


def _robots(a: Analysis, robots: Sequence[RobotMotion]) -> ReportTable:
    heads = ["", "coordinates", "scaled by", "markers", "rms mm", "at a limit", "r of knees and elbows", "rms deg"]
    note = "The robot is scaled to the size of the person; the clip determines where its markers are."
    return ReportTable("robots", heads, [list(row.values()) for row in robot_rows(a, robots)], note)


def _tracked(a: Analysis) -> ReportTable:
    told = tracking_summary(a)
    rows = [
        [f"{name}, residual [{'N m' if a.person.rotational[k] else 'N'}]", round(v["before"], 2), round(v["after"], 3)]
        for k, (name, v) in zip(a.root, told["residual"].items(), strict=True)
    ]
    rows += [
        [f"{name}, deviation from the measurement [{'deg' if a.person.rotational[k] else 'mm'}]", "", round(off, 3)]
        for k, (name, off) in zip(a.root, told["root_off"].items(), strict=True)
    ]
    rows += [
        ["all angles, deviation from the measurement [deg]", "", round(told["error_deg"], 3)],
        ["mass factor", "", round(told["mass_factor"], 4)],
        [f"centre of mass of {told['trunk']}, moved by [mm]", "", round(1e3 * told["trunk_moved_m"], 1)],
    ]
    note = "Root mean square over the frames with known forces; the motion is integrated as a whole."
    return ReportTable("tracked", ["", "as measured", "tracked"], rows, note)


def _beside(beside: GaitComparison) -> ReportTable:
    heads = [*beside.rows[0]]
    note = "Root mean square difference, without the constant offset of angles; moments in stance."
    return ReportTable("plug in gait", heads, [list(row.values()) for row in beside.rows], note)


# -------- Plots


def _residuals(a: Analysis) -> str:
    figure, (ax,) = subplots(1, 1, WIDTH, 2.2)
    ax.fill_between(a.times, 1e3 * np.nanmin(a.fit.residuals, axis=1), 1e3 * a.fit.worst, color=SERIES[1], alpha=0.2)
    ax.plot(a.times, 1e3 * a.fit.rms, color=SERIES[1])
    ax.set_ylabel("mm")
    ax.set_xlabel("time [s]")
    ax.set_ylim(bottom=0)
    return svg(figure, "residual of the markers over time", [("root mean square, and range", SERIES[1])])


def _side(name: str) -> tuple[str, str]:
    for side in ("_r", "_l"):
        if name.endswith(side):
            return name[: -len(side)], side
        if f"{side}_" in name:
            return name.replace(f"{side}_", "_", 1), side
    return name, ""


def _curves(a: Analysis, moments: bool) -> str:
    pairs: dict[str, list[int]] = {}
    for k, c in enumerate(a.person.coordinates):
        if moments and (k in a.root or not c.rotational):
            continue
        if c.locked:
            continue
        pairs.setdefault(_side(c.name)[0], []).append(k)
    panels = []
    for name, members in pairs.items():
        curves = []
        for k in members:
            scale = _scale(a, k, moments)
            values = scale * (a.tau if moments else a.motion.values)[:, k]
            band = None if moments else 2 * scale * np.where(a.fit.std[:, k] < SEEN, a.fit.std[:, k], np.nan)
            curves.append(Curve(values, SIDES[_side(a.person.names[k])[1]], band))
        seen = moments or any(np.nanmedian(a.fit.std[:, k]) < SEEN for k in members)
        panels.append(PlotPanel(name.replace("_", " ") + ("" if seen else " (hidden)"), curves))
    keys = [("right", SIDES["_r"]), ("left", SIDES["_l"]), ("no side", SIDES[""])]
    title = "joint moments over time" if moments else "joint angles over time"
    return small_multiples(a.times, panels, COLUMNS, title, keys)


def _robot_curves(a: Analysis, robots: Sequence[RobotMotion]) -> str:
    names = [n for n in dict.fromkeys(n for r in robots for n in r.alike) if n in a.person.names]
    if not names:
        return ""
    colors = [SERIES[k % len(SERIES)] for k in range(len(robots))]
    panels = []
    for name in names:
        curves = [Curve(np.rad2deg(a.fit.q[:, a.person.index(name)]), "var(--ink)")]
        for robot, color in zip(robots, colors, strict=True):
            if name in robot.alike:
                curves.append(Curve(np.rad2deg(robot.angle(name)), color))
        panels.append(PlotPanel(name.replace("_", " "), curves))
    keys = [("person", "var(--ink)"), *((r.name, c) for r, c in zip(robots, colors, strict=True))]
    return small_multiples(a.times, panels, COLUMNS, "angles of the person and of robots", keys)


def _tracked_curves(a: Analysis) -> str:
    assert a.tracking is not None
    error = a.tracking.motion.error
    panels = [
        PlotPanel(
            f"{a.person.names[k].replace('_', ' ')}, {'deg' if a.person.rotational[k] else 'mm'}",
            [Curve((180 / np.pi if a.person.rotational[k] else 1e3) * error[:, k], SIDES[""])],
        )
        for k in a.root
    ]
    return small_multiples(a.times, panels, COLUMNS, "tracked minus measured motion")


def _beside_curves(a: Analysis, beside: GaitComparison) -> str:
    colors = SERIES[7], SERIES[1]
    panels = [
        PlotPanel(f"{quantity}, {side}", [Curve(values, c) for values, c in zip(pair, colors, strict=True)])
        for (quantity, side), pair in beside.curves.items()
    ]
    keys = [("Plug-in Gait", colors[0]), ("here", colors[1])]
    return small_multiples(a.times, panels, COLUMNS, "angles [deg] and moments [N m] by Plug-in Gait and here", keys)


def _scale(a: Analysis, k: int, moments: bool) -> float:
    if moments:
        return 1 / a.person.mass
    return float(180 / np.pi) if a.person.rotational[k] else 1.0


def _forces(a: Analysis) -> str:
    assert a.loads is not None
    figure, (force, root) = subplots(2, 1, WIDTH, 3.8, sharex=True)
    for foot, wrench in a.loads.wrenches.items():
        force.plot(wrench.times, wrench.force @ a.up, color=SIDES[f"_{foot[0]}"], linewidth=1.2)
    force.axhline(a.weight, color=INK, linewidth=0.6)
    force.set_ylabel("on the feet,\nupwards [N]")
    lengths = [not a.person.rotational[k] for k in a.root]
    for values, color in ((a.residual_before, SERIES[7]), (a.residual, SERIES[2])):
        size = np.linalg.norm(values[:, lengths], axis=1)
        root.plot(a.times, size, color=color, linewidth=1.2)
    root.set_ylabel("residual\nat the root [N]")
    root.set_xlabel("time [s]")
    keys = [("right", SIDES["_r"]), ("left", SIDES["_l"]), ("as measured", SERIES[7]), ("corrected", SERIES[2])]
    return svg(figure, "forces on the feet, and residual at the root", keys)


def _motion(a: Analysis) -> str:
    """Draw postures from the side: fitted person, measured (hollow) and fitted (full) markers, force arrows."""
    frames = np.unique(np.linspace(0, a.clip.n_frames - 1, PHASES).astype(int))
    _, p = a.person.body_poses(a.motion.values[frames])
    fitted = a.person.marker_positions(a.motion.values[frames])
    columns = [a.clip.labels.index(label) for label in _clip_labels(a)]
    along, offsets = _direction(a, p)
    figure, (ax,) = subplots(1, 1, WIDTH, 3.6)
    bones = np.array(_bones(a))
    gap = np.full((len(bones), 1, 3), np.nan)
    lines, full, hollow = [], [], []  # of all postures, drawn by one call each
    for i, frame in enumerate(frames):
        shift = offsets[i]

        def flat(x: np.ndarray, shift: float = shift) -> np.ndarray:
            return np.stack([x @ along + shift, x @ a.up], axis=-1)

        lines.append(flat(np.concatenate([p[i][bones], gap], axis=1).reshape(-1, 3)))
        full.append(flat(fitted[i]))
        hollow.append(flat(a.clip.positions[frame][columns]))
        _arrows(a, ax, a.times[frame], flat)
        x, y = flat(p[i, 0] - 1.15 * a.up)
        ax.annotate(f"{a.times[frame]:.2f} s", (x, y), ha="center", fontsize=7, color=INK)
    (bx, by), (fx, fy), (hx, hy) = (np.concatenate(part).T for part in (lines, full, hollow))
    ax.plot(bx, by, color=SERIES[7], linewidth=2, solid_capstyle="round")
    ax.plot(fx, fy, ".", color=SERIES[1], markersize=2.5)
    ax.plot(hx, hy, "o", markersize=3.2, markerfacecolor="none", markeredgecolor=SERIES[0], mew=0.5)
    ax.set_aspect("equal")
    ax.grid(visible=False)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    keys = [("measured", SERIES[0]), ("fitted", SERIES[1]), ("bodies", SERIES[7]), ("forces", SERIES[2])]
    return svg(figure, "postures from the side with markers and forces", keys)


def _clip_labels(a: Analysis) -> list[str]:
    from humanoid_control.human.ik_setup import FitTasks
    from humanoid_control.human.marker_fit import match_markers

    return [a.clip.labels[k] for k, _ in match_markers(a.person, a.clip.labels, FitTasks())]


def _direction(a: Analysis, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the horizontal drawing axis, and an offset per posture that avoids overlap."""
    way = p[-1, 0] - p[0, 0]
    way = way - (way @ a.up) * a.up
    axis = np.eye(3)[0] if abs(a.up[0]) < 0.9 else np.eye(3)[1]
    if np.linalg.norm(way) < 0.3:
        way = axis
    along = way / np.linalg.norm(way)
    place = p[:, 0] @ along
    count = len(p)
    wanted = np.linspace(0, max(float(place[-1] - place[0]), STRETCH * (count - 1)), count)
    return along, wanted - place


def _bones(a: Analysis) -> list[tuple[int, int]]:
    names = a.person.body_names
    return [(names.index(j.parent), names.index(j.child)) for j in a.person.joints if j.parent in names]


def _arrows(a: Analysis, ax: Axes, time: float, flat: Callable[[np.ndarray], np.ndarray]) -> None:
    if a.loads is None:
        return
    for wrench in a.loads.wrenches.values():
        k = int(np.argmin(np.abs(wrench.times - time)))
        if wrench.normal_force[k] <= 0 or abs(wrench.times[k] - time) > 0.02:
            continue
        at = wrench.center_of_pressure()[k]
        (x0, y0), (x1, y1) = flat(at), flat(at + FORCE_SCALE * wrench.force[k])
        arrow = {"arrowstyle": "-|>", "color": SERIES[2], "linewidth": 1.4}
        ax.annotate("", (x1, y1), (x0, y0), arrowprops=arrow)
