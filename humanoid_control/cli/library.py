"""`humanoid retarget FOLDER`: a clip library by several robots, resumable, with a manifest."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from humanoid_control.cli.parser import clip_options, file_path, given, is_folder, require_range
from humanoid_control.errors import ConfigError, EnvironmentProblem, HumanoidError
from humanoid_control.evaluation.stretching import AUTO
from humanoid_control.files import check_file, check_folder, whole_file
from humanoid_control.performing import DYNAMIC
from humanoid_control.retargeting import INTERCHANGE, LIVE, RetargetSettings
from humanoid_control.terminal import console, print_json, progress, table, warn

LIBRARY_OPTIONS = ("jobs", "scheduler", "html")
"""Options of a library; each is None if not given."""
FAILED_SOME, MOST_JOBS = 1, 1024


def add_library_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a folder of clips."""
    parser.add_argument("--jobs", type=int, help="for a folder: number of processes (default: one per core)")
    parser.add_argument("--scheduler", type=given, help="for a folder: address of a Dask cluster, tcp://host:8786")
    parser.add_argument(
        "--html", type=file_path, help="for a folder: HTML page of animated figures to write, worst grade first"
    )


def run_library(args: argparse.Namespace, solver: RetargetSettings) -> int:
    """Retarget all clips of a folder, pattern or list; 1 if any failed.

    Args:
        args: of `humanoid retarget`.
        solver: settings of the upper body.
    """
    from humanoid_control.clip_library import LibrarySettings, WorkerRobot, find_clips, library_jobs, place_for
    from humanoid_control.clip_library.cluster import check_scheduler
    from humanoid_control.clip_library.places import is_address

    require_range("jobs", args.jobs, 1, MOST_JOBS)
    if args.jobs is not None and args.scheduler is not None:
        raise ConfigError("--jobs (local processes) and --scheduler (a cluster) exclude each other: give one of them")
    if args.scheduler is not None:
        check_scheduler(args.scheduler)
    _check_outputs(args)
    marker_set, reading = clip_options(args)
    own_set = Path(marker_set).read_bytes() if marker_set and Path(marker_set).is_file() else None
    settings = LibrarySettings(
        args.whole_body,
        solver,
        args.acceleration,
        args.speed,
        args.raw,
        _suffix(args.format),
        marker_set,
        own_set,
        **reading,
        method=args.method if args.whole_body else LIVE,
        feasible=args.feasible,
        pace=args.pace or 0.0,
        lead_in=args.lead_in,
        stretch=args.stretch == AUTO,
        layout=args.format if args.format in (*INTERCHANGE, DYNAMIC) else "",
    )
    robots = [WorkerRobot.of(spec) for spec in _robot_specs(args)]
    if args.scheduler is not None:
        robots = [robot.packed() for robot in robots]
    local = not is_address(args.output)
    clips = find_clips(args.clip, Path(args.output) if local else None)
    place = place_for(args.output)
    with _executor(args, settings) as executor:
        place.open()
        try:
            with progress("reading", 1.0, quiet=args.json) as show:
                jobs, failed = library_jobs(clips, robots, settings, show)
            return _run(args, (jobs, failed), place, executor)
        finally:
            place.close()


def _suffix(name: str | None) -> str:
    """Return the file suffix of a format; .npz by default."""
    if name in INTERCHANGE:
        return INTERCHANGE[name].suffix
    return f".{name}" if name and name != DYNAMIC else ".npz"


def _run(args: argparse.Namespace, work: tuple[Any, Any], place: Any, executor: Any) -> int:
    from humanoid_control.clip_library import retarget_library

    try:
        with progress("retargeting", 1.0, quiet=args.json) as show:
            report = retarget_library(*work, place, executor, show)
    except (HumanoidError, KeyboardInterrupt) as e:
        advice = "finished clips are kept: run the same command to resume"
        if isinstance(e, KeyboardInterrupt):
            warn(f"stopped; {advice}")
            raise
        raise type(e)(f"{e}; {advice}") if type(e) in (ConfigError, EnvironmentProblem) else e from None
    if args.html is not None:
        _write_page(args.html, place)
    _print_report(args, report)
    return FAILED_SOME if report.failures else 0


def _robot_specs(args: argparse.Namespace) -> list[str]:
    """Return checked arguments of `load_robot`; whole bodies need legs and soles."""
    from humanoid_control.retargeting.whole_body.scaling import Legs
    from humanoid_control.robots import load_robots
    from humanoid_control.robots.names import SETS

    names = [str(name) for name in args.robot or ["hrp2"]]
    for robot in load_robots(names, "floating" if args.whole_body else "fixed", imitate=True):
        if args.whole_body:
            Legs.of(robot)
    return list(dict.fromkeys(one for name in names for one in SETS.get(name, (name,))))


def _check_outputs(args: argparse.Namespace) -> None:
    from humanoid_control.clip_library.places import is_address

    if args.output is None:
        raise ConfigError(
            "a folder of clips needs -o FOLDER/ for its results, or an address such as s3://bucket/folder"
        )
    if not is_address(args.output):
        if not is_folder(args.output):
            raise ConfigError(
                f"for a folder of clips -o must be a folder, got {args.output} (a folder is {args.output}/)"
            )
        check_folder(Path(args.output))
    if args.html is not None:
        if args.html.suffix.lower() not in (".html", ".htm"):
            raise ConfigError(f"the page must be a .html file, got {args.html}")
        if is_address(args.output) or args.html.absolute().parent != Path(args.output).absolute():
            check_file(args.html, "page")  # checked early; a missing folder is created


@contextmanager
def _executor(args: argparse.Namespace, settings: Any) -> Iterator[Any]:
    from humanoid_control.clip_library import Cluster, LocalWorkers
    from humanoid_control.clip_library.places import is_address
    from humanoid_control.clip_library.work import compile_for

    if args.scheduler is None:
        compile_for(settings)  # once, not per worker
        yield LocalWorkers(args.jobs)
        return
    cluster = Cluster(args.scheduler, args.output if is_address(args.output) else "")
    try:
        yield cluster
    finally:
        cluster.close()


def _write_page(path: Path, place: Any) -> None:
    from humanoid_control.clip_library import Records, gallery_page

    records = Records(place)
    with whole_file(path) as part, part.open("w", encoding="utf-8") as file:
        file.writelines(gallery_page(records.rows(), records.figure))


# -------- Summary


def _print_report(args: argparse.Namespace, report: Any) -> None:
    from humanoid_control.clip_library.library import duration_text
    from humanoid_control.evaluation.clip_quality import GRADES

    where = str(args.output).rstrip("/")
    failures = report.failures
    if args.json:
        counts = {"clips": len(report.rows), "done": report.done, "kept": report.kept, "failed": len(failures)}
        print_json({**counts, "seconds": round(report.seconds, 2), "grades": report.grades(), "rows": report.rows})
        return
    found = report.grades()
    columns = [*GRADES, *(["failed"] if failures else [])]
    rows = [
        [robot, *(counts.get(g, 0) for g in GRADES), *([counts.get("-", 0)] if failures else [])]
        for robot, counts in sorted(found.items())
    ]
    table("clips by grade", ["robot", *columns], rows)
    kept = f", {report.kept} already present" if report.kept else ""
    console.print(f"{report.done} done in {duration_text(report.seconds)}{kept}")
    for name in report.files:
        console.print(f"written: {where}/{name}")
    if args.html is not None:
        console.print(f"written: {args.html}")
    if failures:
        console.print(f"failed: {len(failures)} of {len(report.rows)}")
        for line in failure_lines(failures):
            console.print(line)


def failure_lines(failures: list[dict[str, Any]]) -> list[str]:
    """Return a line per failed clip, grouping robots by reason."""
    robots: dict[tuple[str, str], list[str]] = {}
    for r in failures:
        robots.setdefault((r["clip"], r["reason"]), []).append(r["robot"])
    return [f"  {clip} ({', '.join(names)}): {_without(clip, reason)}" for (clip, reason), names in robots.items()]


def _without(clip: str, reason: str) -> str:
    return reason.removeprefix(f"{clip}: ")
