"""All benches one after the other, and their page `evidence/docs/benchmarks.md`: a section each, of measured rows.

Every bench runs in a process of its own and its results are kept in a file at once, so that one that fails or is
stopped does not cost the others.
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evidence.benchmarks import BENCHES, COLUMNS, Row
from evidence.benchmarks.placo_peer import placo_folder
from humanoid_control import __version__
from humanoid_control.errors import ConfigError
from humanoid_control.files import whole_file

ByName = Mapping[str, Row]
Result = dict[str, Any]
"""What `humanoid bench NAME --json` prints, with its `date`; of a bench that failed only `bench` and `failed`."""
MICROSECONDS = "µs"
TIMEOUT = 900.0  # [s] for one bench


# -------- Measuring


def measure_all(
    names: Iterable[str], kept: Path, run: Callable[[str], Result] | None = None, say: Callable[[str], object] = print
) -> list[Result]:
    """Results of benches; those whose file is in `kept` already are not measured again.

    Args:
        names: of benches. kept: folder, made where it is missing, of one JSON file a bench.
        run: measures one; default: in a process of its own.
        say: told what happens.
    """
    kept.mkdir(parents=True, exist_ok=True)
    results = []
    for name in names:
        path = kept / f"{name}.json"
        if path.exists():
            results.append(json.loads(path.read_text(encoding="utf-8")))
            say(f"bench {name}: measured on {results[-1]['date']}, kept in {path}")
            continue
        say(f"bench {name}: {BENCHES[name].task}")
        begin = time.monotonic()
        result = (run or run_bench)(name)
        if "failed" in result:
            say(f"bench {name} failed after {time.monotonic() - begin:.0f} s: {result['failed']}")
        else:
            result["date"] = time.strftime("%Y-%m-%d")
            with whole_file(path) as part:
                part.write_text(json.dumps(result, indent=1), encoding="utf-8")
        results.append(result)
    return results


def run_bench(name: str) -> Result:
    """One bench with its default options, in a process of its own."""
    short = BENCHES[name].page if name in BENCHES else ()
    command = [sys.executable, "-m", "humanoid_control.cli.main", "bench", name, *short, "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return {"bench": name, "failed": f"not finished after {TIMEOUT:.0f} s"}
    said = [line for line in done.stderr.splitlines() if line.strip()]
    try:
        result: Result = json.loads(done.stdout) if done.returncode == 0 else {}
    except ValueError:
        result = {}
    if "rows" not in result:
        return {"bench": name, "failed": said[-1] if said else f"ended with {done.returncode}"}
    return result


# -------- Page


def markdown_page(results: Sequence[Result]) -> str:
    """The page as Markdown, from results in any order."""
    by_name = {str(r["bench"]): r for r in results}
    good = [r for r in results if "failed" not in r]
    parts = [
        "# Measured",
        "`make bench` writes this page from the output of the benches. Each section is one run of the command above "
        "its table. Medians and 99th percentiles count the slow side, also for rates. Results of studies are in "
        "[studies](studies.md).",
        *sorted({_machine(r) for r in good}),
    ]
    for name in BENCHES:
        if name in by_name:
            parts += [
                f"## {TITLES[name]}",
                f"`{' '.join(('humanoid bench', name, *BENCHES[name].page))}`",
                *_section(name, by_name[name]),
            ]
    return "\n\n".join(parts) + "\n"


def _machine(result: Result) -> str:
    m = result["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in m["versions"].items())
    return (
        f"{result['date']}: {m['cpu']}, {m['cores']} cores, {m['system']}; humanoid_control {__version__}, Python "
        f"{m['python']}, {versions}{_placo_version()}; one thread per library."
    )


def _placo_version() -> str:
    """PlaCo's version, with that of the pinocchio it brings."""
    found = importlib.metadata.distributions(path=[str(placo_folder())])
    versions = {d.metadata["Name"]: d.version for d in found}
    return f", placo {versions['placo']} with pin {versions.get('pin', '?')}" if "placo" in versions else ""


def _section(name: str, result: Result) -> list[str]:
    if "failed" in result:
        return [f"Not measured: {result['failed']}"]
    rows: list[Row] = result["rows"]
    by_name = {_key(r): r for r in rows}
    try:
        text = SECTIONS.get(name, _plain)(by_name)
    except KeyError:  # a row is missing that its section is made of
        text = _plain(by_name)
    notes = list(result["notes"])
    if beside := result.get("yardstick"):
        notes.append(f"`{beside['name']}` of Lola in the same run: {_with_unit(beside)}.")
    return [text, "\n".join(f"- {note}" for note in notes)]


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
    """Every row with the columns that all benches have, or with those of the first row that are no collections.

    Where rows say in words what they are, these stand for names and numbers of values.
    """
    first = next(iter(rows.values()))
    if "what" in first:
        return _told(rows, {name: r["what"] for name, r in rows.items()})
    columns = [c for c in COLUMNS if c in first] or [c for c, v in first.items() if not isinstance(v, (dict, list))]
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


# -------- Sections


def _stack(rows: ByName) -> str:
    words = {
        "ik_tick": "tick of the inverse kinematics",
        "marker_to_command": "marker in to command in another process",
        "marker_to_publish": "marker in to command out",
        "command_transport": "command's stamp to its arrival in another process",
        "following_error": "largest following error of any joint, per second",
        "missed_ticks_percent": "missed ticks of all nodes; of the worst node",
        "cores": "processor, all nodes and their supervisor",
        "memory_mb": "memory (PSS), all nodes and their supervisor",
        "memory_simulator_mb": "memory, the simulator alone",
    }
    return "All five nodes with the built-in dance:\n\n" + _told(rows, words)


def _ik(rows: ByName) -> str:
    words = {
        "tick_qp": "quadratic program, angular momentum among its tasks, stopping path checked",
        "tick_nullspace": "null-space solver, momentum tracked by the arms",
        "tick_qp_peers": "quadratic program, the peers' tasks, all pairs, stopping path checked",
        "placo_all_pairs": "PlaCo, all pairs",
        "mink_all_pairs": "mink, all pairs",
        "pink_nearest_10": "pink, the 10 nearest pairs",
        "pink_all_pairs": "pink, all pairs",
        "tick_no_collision": "quadratic program, no collisions",
        "tick_qp_saturated_lola": "quadratic program, hands out of reach, Lola",
        "tick_qp_saturated_hrp2": "quadratic program, hands out of reach, HRP-2",
        "tick_qp_saturated_wabian2": "quadratic program, hands out of reach, WABIAN-2",
        "tick_100_joints_far": "quadratic program, a chain of 100 joints whose end is out of reach",
        "placo_no_collision": "PlaCo, no collisions",
        "mink_no_collision": "mink, no collisions",
        "pink_no_collision": "pink, no collisions",
    }
    lines = []
    for name, text in words.items():
        if name in rows:
            r = rows[name]
            ratio = rows.get(f"{name}_to_ours")
            told = [r.get("pairs", ""), r.get("active_pairs", "")]
            told += [_with_unit(r, column) for column in ("median", "p99_warm", "cold", "p99")]
            lines.append([f"{text} (`{name}`)", r["rows"], *told, _times(float(ratio["median"])) if ratio else ""])
    head = "One tick of whole-body inverse kinematics on a floating base, compared with other solvers:\n\n"
    columns = ["", "task rows", "monitored pairs", "rows of pairs", "median", "99th percentile, tick after tick"]
    columns += ["first tick of a turn", "99th percentile of all", "relative to this package"]
    return head + markdown_table(columns, lines)


def _times(ratio: float) -> str:
    return f"{ratio:.3g} times"


def _distance(rows: ByName) -> str:
    names = {"pp": "point-point", "pl": "point-line", "pt": "point-triangle", "ll": "line-line"}
    names |= {"lt": "line-triangle", "tt": "triangle-triangle"}
    lines = [
        ["this package", *(rows[k]["median"] for k in names)],
        ["Schwienbacher 2014, table 6.9 (Core2 Duo, 32 bit)", *(rows[k]["published_ns"] for k in names)],
    ]
    words: dict[str, str] = {}
    for name, text in (
        ("capsule_pair", "two capsules"),
        ("capsule_box_pair", "capsule and box, separate"),
        ("capsule_box_deep", "capsule and box, overlapping"),
        ("box_pair", "two boxes, separate"),
        ("box_deep", "two boxes, overlapping"),
        ("ellipsoid_box_pair", "ellipsoid and box, separate"),
    ):
        words |= {name: f"this package, {text}", f"coal_{name}": f"coal, {text}"}
    whole = [
        [name, _with_unit(r), _with_unit(r, "p99"), r["near_pairs"]] for name, r in rows.items() if "segments" in r
    ]
    return (
        "Swept-sphere volumes, nanoseconds per pair in a batch of packed pairs, with witness points:\n\n"
        + markdown_table(["ns", *names.values()], lines)
        + "\n\nScattered pairs, neither side packed, all in one call from Python; nanoseconds per pair:\n\n"
        + _told(rows, words)
        + "\n\nA whole robot, with poses, witness points and gradients:\n\n"
        + markdown_table(["", "median", "99th percentile", "near pairs"], whole)
    )


def _loop(rows: ByName) -> str:
    words = {
        "command_latency": "targets to command in another process",
        "publish_latency": "targets to command out",
        "command_transport": "command's stamp to its arrival in another process",
        "period_error": "error of the period",
        "tick": "tick",
    }
    missed = rows["missed_ticks"]
    head = "`whole_body_ik` at 500 Hz in a closed loop with simulator, estimator and streamer:\n\n"
    return f"{head}{_told(rows, words)}\n\n{missed['median']:.0f} of {missed['n']} ticks missed."


def _dynamics(rows: ByName) -> str:
    from evidence.benchmarks.dynamics import PUBLISHED

    words = {"type2": "rigid gears", "type3": "elastic gears"}
    lines = []
    for kind, text in words.items():
        on, dense, sparse = (float(rows[f"fd_{kind}_{s}"]["median"]) for s in ("on", "dense", "sparse"))
        published = ", ".join(f"{min(c):.3g} to {max(c):.3g}" for c in zip(*PUBLISHED[kind], strict=True))
        dof = rows[f"fd_{kind}_on"]["dof"]
        lines.append([f"{kind}, {text}, {dof} degrees of freedom", on, dense / on, sparse / on, published])
    peers = {
        "pinocchio_constrained_type2": "pinocchio, constrained, plain rotors as armature",
        "pinocchio_aba_armature": "pinocchio, articulated bodies, plain rotors as armature",
        "pinocchio_aba_tree": "pinocchio, articulated bodies without rotors and loops",
        "mujoco_forward": "MuJoCo, `mj_forward`, rotors as armature, in the air",
    }
    worlds = {
        "world_step_lola": "ideal drives",
        "world_step_lola_stiff": "the same on 50 times stiffer ground",
        "mujoco_step_lola": "MuJoCo, ideal drives",
        "world_step_lola_rigid": "motors and rigid gears",
        "world_step_lola_elastic": "motors and elastic gears",
    }
    steps = [
        [f"{text} (`{name}`)", _with_unit(rows[name]), _with_unit(rows[name], "p99"), rows[name]["sole_depth_mm"]]
        for name, text in worlds.items()
        if name in rows
    ]
    columns = ["µs", "O(n)", "dense / O(n)", "sparse / O(n)", "Schwienbacher 2014, table 2.6: O(n), dense, sparse"]
    return (
        "Forward dynamics of Lola with 24 motors as bodies, one call from Python, one core, compared with the C++ of "
        "the publication on five machines of 2008 to 2012, and others in the same run:\n\n"
        + markdown_table(columns, lines)
        + "\n\n"
        + _told(rows, peers)
        + "\n\nA step of 1 ms of the whole world, Lola on her feet:\n\n"
        + markdown_table(["", "median", "99th percentile", "sole penetration, mm"], steps)
    )


def _tendons(rows: ByName) -> str:
    words = {
        "jmm_neck_s": "data and polynomials of table I, neck",
        "jmm_scapula_s": "scapula",
        "jmm_shoulder_s": "shoulder",
        "update_8x10": "update of 8 joints by 10 tendons, with a consistency test of each tendon",
        "filterpy_8x10": "filterpy, extended Kalman filter",
        "information_8x10": "information form in numpy",
        "numba_8x10": "plain loop in numba",
        "update_60x80": "of 60 by 80, each across 6 joints",
        "update_60x80_dense": "of 60 by 80, each across all",
        "filterpy_60x80": "filterpy, extended Kalman filter",
        "information_60x80": "information form in numpy",
        "numba_60x80": "plain loop in numba, each across 6 joints",
        "numba_60x80_dense": "plain loop in numba, each across all",
        "update_200x300": "of 200 by 300, each across 6 joints",
        "update_200x300_dense": "of 200 by 300, each across all",
        "three_groups": "steps per second of three groups, relative",
        "three_groups_absolute": "absolute",
    }
    lines = []
    for name, text in words.items():
        if name in rows:
            r = rows[name]
            beside = f"{r['source']} s (Kawaharazuka 2018, construction + regression)" if r["source"] else ""
            ratios = ", ".join(f"{peer} {_times(float(ratio))}" for peer, ratio in r.get("ratios", {}).items())
            lines.append([f"{text} (`{name}`)", _with_unit(r), _with_unit(r, "p99"), beside or ratios])
    head = "Joint angles from tendon lengths, `kengoro_upper`, one core:\n\n"
    return head + markdown_table(["", "median", "99th percentile", "compared"], lines)


def _reaching(rows: ByName) -> str:
    words = {
        "reach_5_ms": "least torque, 5 joints, 8 segments",
        "reach_5_free_ms": "the same without ranges of joints",
        "crocoddyl_5_ms": "crocoddyl, 5 joints, 60 nodes, without ranges",
        "reach_7_ms": "least torque, 7 joints, 8 segments",
        "reach_7_free_ms": "the same without ranges of joints",
        "crocoddyl_7_ms": "crocoddyl, 7 joints, 60 nodes, without ranges",
        "mtc_4_ms": "least torque change, 4 joints, 4 segments",
        "swing_2_ms": "least torque, 2 joints, 4 segments",
    }
    lines = [
        [f"{text} (`{name}`)", _with_unit(r), _with_unit(r, "p99"), r["cost"], r["gap_percent"]]
        for name, text in words.items()
        if (r := rows.get(name))
    ]
    head = "A reach of a person's arm, from its end postures to the trajectory:\n\n"
    return head + markdown_table(["", "median", "99th percentile", "cost", "above the best of ten, %"], lines)


METHODS = {
    "ours_3_steps": "this package, at most 3 steps a frame",
    "ours_1_step": "this package, 1 step",
    "placo_all_pairs": "PlaCo, 1 step, all pairs",
    "placo_no_collision": "PlaCo, 1 step, no collisions",
    "mink_3_steps": "mink, 3 steps, all pairs",
    "mink_1_step": "mink, 1 step, all pairs",
    "pink_nearest_10": "pink, 1 step, 10 nearest pairs",
    "batch_3_steps": "this package, whole clip in one call, at most 3 steps",
    "batch_1_step": "this package, whole clip in one call, 1 step",
}


def _retarget(rows: ByName) -> str:
    columns = [
        "",
        "per frame, median",
        "99th percentile",
        "error, cm",
        "95 % below, cm",
        "closest, mm",
        "overlap, % frames",
    ]
    columns += ["peak acceleration, rad/s²", "rms, rad/s²", "largest share of a speed limit, %"]
    robots = list(dict.fromkeys(n.removesuffix("_ours_3_steps") for n in rows if n.endswith("_ours_3_steps")))
    parts = []
    for robot in robots:
        lines = []
        for name, text in METHODS.items():
            if r := rows.get(f"{robot}_{name}"):
                lines.append([text, _with_unit(r), _with_unit(r, "p99"), *(r[c] for c in QUALITY)])
        clip = rows[f"{robot}_ours_3_steps"]["clip"]
        parts.append(f"`{robot}`, clip '{clip}':\n\n" + markdown_table(columns, lines))
    parts.append(f"The clip for five robots, from loading to trajectories: {_with_unit(rows['five_robots_s'])}.")
    return "A frame of retargeting, all methods on the same frames:\n\n" + "\n\n".join(parts)


QUALITY = ("error_cm", "error_p95_cm", "closest_mm", "touching_percent", "peak_rad_s2", "rms_rad_s2", "speed_percent")
TITLES = {
    "stack": "The whole stack",
    "start": "Start",
    "retarget": "Retargeting",
    "whole_body": "Retargeting of the whole body",
    "batch": "Whole libraries",
    "bounding_volumes": "Bounding volumes",
    "self_distance": "Distances between a robot's shapes",
    "ik": "Whole-body inverse kinematics",
    "loop": "Closed loop at 500 Hz",
    "latency": "Latency part by part",
    "policy": "A learned policy as a node",
    "dynamics": "Forward dynamics",
    "distance": "Swept-sphere volumes",
    "tendons": "Tendons",
    "reaching": "Optimal reaches",
    "human": "A recorded person",
    "human_node": "A person live",
    "driver": "The driver of a real robot",
    "walk": "Walking",
    "perform": "Performing a dance",
}
SECTIONS: dict[str, Callable[[ByName], str]] = {
    "stack": _stack,
    "retarget": _retarget,
    "ik": _ik,
    "loop": _loop,
    "dynamics": _dynamics,
    "distance": _distance,
    "tendons": _tendons,
    "reaching": _reaching,
}


# -------- The README's small table

BEGIN, END = "<!-- measured by `make bench` -->", "<!-- end of what is measured -->"
SUMMARY = (
    ("ik", "a tick of whole-body inverse kinematics, Lola, {pairs} collision pairs", "tick_qp_peers",
     {"placo_all_pairs": "PlaCo", "mink_all_pairs": "mink", "pink_nearest_10": "pink, 10 pairs"}),
    ("ik", "the same without collisions", "tick_no_collision",
     {"placo_no_collision": "PlaCo", "mink_no_collision": "mink", "pink_no_collision": "pink"}),
    ("retarget", "a frame of retargeting, WABIAN-2, all pairs", "wabian2_ours_3_steps",
     {"wabian2_placo_all_pairs": "PlaCo, 1 step", "wabian2_mink_1_step": "mink, 1 step"}),
    ("dynamics", "forward dynamics, Lola with 24 motors and rigid gears", "fd_type2_on",
     {"pinocchio_constrained_type2": "pinocchio, constrained"}),
    ("tendons", "joint angles from tendons, an update of 8 joints by 10 tendons", "update_8x10",
     {"numba_8x10": "plain numba loop without gate", "information_8x10": "numpy", "filterpy_8x10": "filterpy"}),
    ("start", "from the command to five nodes and a robot that moves, HRP-2", "start_s",
     {"alone_s": "each node started by itself"}),
)  # fmt: skip


def summary_table(results: Sequence[Result]) -> str:
    """A line for each of the most asked-for numbers that were measured, with those of others next to them."""
    by_bench = {r["bench"]: {_key(row): row for row in r["rows"]} for r in results if "failed" not in r}
    sticks = {r["bench"]: r.get("yardstick") for r in results if "failed" not in r}
    lines = []
    for bench, text, own, others in SUMMARY:
        rows = by_bench.get(bench, {})
        if own in rows:
            beside = ", ".join(f"{who} {_with_unit(rows[name])}" for name, who in others.items() if name in rows)
            words = text.format(pairs=rows[own].get("pairs", ""))
            spent, multiple = _with_unit(rows[own]), _multiple(rows[own], sticks[bench])
            lines.append([f"{words} (`humanoid bench {bench}`)", spent, multiple, beside])
    return markdown_table(["", "", "multiple of the yardstick", "other libraries"], lines)


def _multiple(row: Row, yardstick: Row | None) -> str:
    """How many times the yardstick of the same run a row takes, which compares between machines and their hours."""
    if not yardstick or row["unit"] != yardstick["unit"]:
        return ""
    return f"{float(row['median']) / float(yardstick['median']):.3g} x"


def write_summary(path: Path, results: Sequence[Result]) -> None:
    """Put the small table between its two marks in a file.

    Raises:
        ConfigError: the file does not have the marks.
    """
    text = path.read_text(encoding="utf-8")
    before, found, rest = text.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not (found and closed):
        raise ConfigError(f"{path} lacks the marks {BEGIN} and {END}")
    with whole_file(path) as part:
        part.write_text(f"{before}{BEGIN}\n{summary_table(results)}\n{END}{after}", encoding="utf-8")


def write_page(path: Path | None, results: Sequence[Result]) -> str:
    """The page, also written to a file where one is named."""
    text = markdown_page(results)
    if path is not None:
        with whole_file(path) as part:
            part.write_text(text, encoding="utf-8")
    return text
