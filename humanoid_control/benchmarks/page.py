"""The page of all benches, `docs/benchmarks.md`: a section each, with the numbers of one run and what they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from humanoid_control.benchmarks import BENCHES, COLUMNS, Row, load_bench

ByName = Mapping[str, Row]
MICROSECONDS = "µs"


def markdown_page(results: Mapping[str, list[Row]], machine: Mapping[str, Any]) -> str:
    """The page as Markdown.

    Args:
        results: rows of some benches, by the names of these.
        machine: what they were measured on, as `terminal.machine` tells it.
    """
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    parts = [
        "# Measured",
        "Written by `humanoid bench all`; every section is one run of one bench, whose command stands above its table. "
        "Medians and 99th percentiles: of the slow side, also where more is better.",
        f"Machine: {machine['cpu']}, {machine['cores']} cores, {machine['system']}; Python {machine['python']}, "
        f"{versions}; one thread a library.",
    ]
    for name in BENCHES:
        if name in results:
            rows = results[name]
            notes = load_bench(name).notes(rows)
            section = SECTIONS.get(name, _plain)
            parts += [f"## {TITLES[name]}", f"`humanoid bench {name}`", section({_key(r): r for r in rows})]
            parts.append(" ".join(line.strip() for line in notes))
    return "\n\n".join(parts) + "\n"


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(_cell(c) for c in line) + " |" for line in lines)


def _cell(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def _key(row: Row) -> str:
    return str(row.get("name") or row["volume"])


def _plain(rows: ByName) -> str:
    """Every row with the columns that all benches have, or with those of the first row that are no collections."""
    first = next(iter(rows.values()))
    columns = [c for c in COLUMNS if c in first] or [c for c, v in first.items() if not isinstance(v, dict)]
    return markdown_table(columns, [[r[c] for c in columns] for r in rows.values()])


def _with_unit(row: Row, column: str = "median") -> str:
    unit = {"us": MICROSECONDS}.get(row["unit"], row["unit"])
    return f"{_cell(float(row[column]))} {unit}"


def _told(rows: ByName, words: Mapping[str, str]) -> str:
    """Rows that have words, with median and 99th percentile."""
    lines = [
        [f"{text} (`{name}`)", _with_unit(rows[name]), _with_unit(rows[name], "p99")]
        for name, text in words.items()
        if name in rows
    ]
    return markdown_table(["", "median", "99th percentile"], lines)


def _stack(rows: ByName) -> str:
    words = {
        "ik_tick": "tick of the inverse kinematics",
        "marker_to_command": "marker in to command out",
        "missed_ticks_percent": "missed ticks, all nodes; the worst node",
        "cores": "processor, all nodes",
        "memory_mb": "memory, all nodes",
        "memory_simulator_mb": "memory, the simulator alone",
        "start_s": "start to first motion",
        "ready_simulator_s": "simulator ready",
    }
    return "All five nodes with the built-in dance:\n\n" + _told(rows, words)


def _ik(rows: ByName) -> str:
    words = {
        "tick_qp": ("quadratic program, angular momentum among its tasks, stopping path checked", ""),
        "tick_nullspace": ("null-space solver, momentum tracked by the arms", ""),
        "tick_qp_peers": ("quadratic program, the peers' tasks, all pairs", ""),
        "mink_all_pairs": ("mink, all pairs", "ours_to_mink_all_pairs"),
        "pink_all_pairs": ("pink, all pairs", "ours_to_pink_all_pairs"),
        "tick_no_collision": ("quadratic program, no collisions", ""),
        "mink_no_collision": ("mink, no collisions", "ours_to_mink_no_collision"),
        "pink_no_collision": ("pink, no collisions", "ours_to_pink_no_collision"),
    }
    lines = []
    for name, (text, ratio) in words.items():
        if name in rows:
            r = rows[name]
            times = f"{rows[ratio]['median']:g} times slower" if ratio in rows else ""
            lines.append([f"{text} (`{name}`)", r["rows"], _with_unit(r), _with_unit(r, "p99"), times])
    head = "One tick of whole-body inverse kinematics on a floating base, beside what a user would take instead:\n\n"
    return head + markdown_table(["", "task rows", "median", "99th percentile", ""], lines)


def _distance(rows: ByName) -> str:
    names = {"pp": "point-point", "pl": "point-line", "pt": "point-triangle", "ll": "line-line"}
    names |= {"lt": "line-triangle", "tt": "triangle-triangle"}
    measured = [rows[k]["median"] for k in names]
    published = [rows[k]["published_ns"] for k in names]
    lines = [["this package", *measured, rows["coal_capsule_pair"]["median"]]]
    lines.append(["Schwienbacher 2014, table 6.9 (Core2 Duo, 32 bit)", *published, ""])
    whole = [
        [name, _with_unit(r), _with_unit(r, "p99"), r["near_pairs"]] for name, r in rows.items() if "segments" in r
    ]
    return (
        "Swept-sphere volumes, nanoseconds a pair in a batch, with witness points:\n\n"
        + markdown_table(["ns", *names.values(), "coal, two capsules"], lines)
        + "\n\nA whole robot, with poses, witness points and gradients:\n\n"
        + markdown_table(["", "median", "99th percentile", "near pairs"], whole)
    )


def _loop(rows: ByName) -> str:
    words = {
        "command_latency": "targets to command",
        "period_error": "error of the period",
        "tick": "tick",
    }
    missed = rows["missed_ticks"]
    head = "`whole_body_ik` at 500 Hz in a closed loop with simulator, estimator and streamer:\n\n"
    return f"{head}{_told(rows, words)}\n\n{missed['median']:.0f} of {missed['n']} ticks missed."


def _dynamics(rows: ByName) -> str:
    from humanoid_control.benchmarks.dynamics import PUBLISHED

    words = {"type2": "rigid gears", "type3": "elastic gears"}
    lines = []
    for kind, text in words.items():
        on, dense, sparse = (float(rows[f"fd_{kind}_{s}"]["median"]) for s in ("on", "dense", "sparse"))
        published = ", ".join(f"{min(c):.3g} to {max(c):.3g}" for c in zip(*PUBLISHED[kind], strict=True))
        dof = rows[f"fd_{kind}_on"]["dof"]
        lines.append([f"{kind}, {text}, {dof} degrees of freedom", on, dense / on, sparse / on, published])
    peers = {
        "pinocchio_constrained_type2": "pinocchio, constrained, rotors as armature",
        "pinocchio_aba_tree": "pinocchio, articulated bodies without rotors and loops",
        "world_step_lola": "a step of 1 ms of the whole world, ideal drives",
        "world_step_lola_rigid": "motors and rigid gears",
        "world_step_lola_elastic": "elastic gears",
        "mujoco_step_lola": "MuJoCo, ideal drives",
    }
    columns = ["µs", "O(n)", "dense / O(n)", "sparse / O(n)", "Schwienbacher 2014, table 2.6: O(n), dense, sparse"]
    return (
        "Forward dynamics of Lola with 24 motors as bodies, one call from Python, one core, beside the C++ of the "
        "publication on five machines of 2008 to 2012 and pinocchio in the same run:\n\n"
        + markdown_table(columns, lines)
        + "\n\n"
        + _told(rows, peers)
    )


def _tendons(rows: ByName) -> str:
    words = {
        "jmm_neck_s": "data and polynomials of table I, neck",
        "jmm_scapula_s": "scapula",
        "jmm_shoulder_s": "shoulder",
        "update_8x10": "update of 8 joints by 10 tendons",
        "update_60x80": "of 60 by 80, each across 6 joints",
        "update_60x80_dense": "of 60 by 80, each across all",
        "three_groups": "steps a second of three groups, relative",
        "three_groups_absolute": "absolute",
    }
    lines = []
    for name, text in words.items():
        r = rows[name]
        beside = f"{r['source']} s (Kawaharazuka, construction + regression)" if r["source"] else ""
        beside = f"{r['ratio']:g} times slower (filterpy)" if r["ratio"] else beside
        lines.append([f"{text} (`{name}`)", _with_unit(r), _with_unit(r, "p99"), beside])
    head = "Joint angles from tendon lengths, `kengoro_upper`, one core:\n\n"
    return head + markdown_table(["", "median", "99th percentile", "beside"], lines)


def _retarget(rows: ByName) -> str:
    lines = []
    for name, who in (("ours", "converged"), ("ours_one_step", "one solver step a frame")):
        closest = rows["ours_closest"]["median"]
        lines.append([who, rows[f"{name}_fps"]["median"], "", rows[f"{name}_error"]["median"], closest])
    for peer in ("mink", "pink"):
        if f"{peer}_fps" in rows:
            fps, error, closest = (rows[f"{peer}_{k}"]["median"] for k in ("fps", "error", "closest"))
            lines.append([f"{peer}, one step", fps, f"{rows[f'ours_to_{peer}']['median']:g}", error, closest])
    live, five = rows["ours_live_tick"], rows["five_robots_s"]
    columns = ["", "frames a second", "times slower", "error, median cm", "closest shapes mm"]
    return (
        "Retargeting the built-in dance, every limit and collision pair in each frame:\n\n"
        + markdown_table(columns, lines)
        + f"\n\nA live frame takes {_with_unit(live)} (99th percentile {_with_unit(live, 'p99')}); the clip for five "
        f"robots {_with_unit(five)}."
    )


TITLES = {
    "stack": "The whole stack",
    "retarget": "Retargeting",
    "bounding_volumes": "Bounding volumes",
    "self_distance": "Distances between a robot's shapes",
    "ik": "Whole-body inverse kinematics",
    "loop": "Closed loop at 500 Hz",
    "dynamics": "Forward dynamics",
    "distance": "Swept-sphere volumes",
    "tendons": "Tendons",
}
SECTIONS: dict[str, Callable[[ByName], str]] = {
    "stack": _stack,
    "retarget": _retarget,
    "ik": _ik,
    "loop": _loop,
    "dynamics": _dynamics,
    "distance": _distance,
    "tendons": _tendons,
}
