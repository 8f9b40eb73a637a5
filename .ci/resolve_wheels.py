#!/usr/bin/env python3
"""Which Pythons and processors this package resolves on with wheels alone: a table, by pip's own resolver.

usage: python .ci/resolve_wheels.py [--extras viewer,report] [--python 3.10,3.14] [--machine x86_64,aarch64] [--pinned]

Nothing is installed. Each cell is one `pip install --dry-run --only-binary=:all: --platform ... --python-version ...`.
pip evaluates markers such as `platform_machine` for the machine that it runs on, not for the one that is asked about.
They are evaluated here, and the requirements that remain are given to pip. Exit code 1 where a cell fails.
"""

from __future__ import annotations

import argparse
import json
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
PLATFORMS = {
    "x86_64": ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    "aarch64": ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
}
LONGEST = 600.0  # [s] of one cell
SOURCES_ONLY = ("empy",)  # pure Python that is published as sources alone: needed by ROS, and made a wheel here first


def requirements() -> dict[str, list[str]]:
    """Extra -> requirements of setup.py, which is run without setting anything up; '' is the library itself."""
    with mock.patch("setuptools.setup") as setup:
        runpy.run_path(str(ROOT / "setup.py"))
    given = setup.call_args.kwargs
    return {"": given["install_requires"], **given["extras_require"]}


def holding(lines: list[str], python: str, machine: str) -> list[str]:
    """The requirements whose markers hold on that Python and machine, without their markers."""
    from packaging.requirements import Requirement

    there = {"python_version": python, "python_full_version": f"{python}.0", "platform_machine": machine}
    kept = []
    for line in lines:
        one = Requirement(line)
        if one.marker is None or one.marker.evaluate(there):
            one.marker = None
            kept.append(str(one))
    return kept


def build(names: list[str], folder: str) -> None:
    """Make wheels of packages that are published as sources alone.

    Raises:
        CalledProcessError: pip cannot.
    """
    words = [
        "wheel",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-binary",
        ",".join(names),
        "-w",
        folder,
    ]
    subprocess.run([sys.executable, "-m", "pip", *words, *names], check=True, timeout=LONGEST)


def pins() -> list[str]:
    """The versions of constraints.txt, with their markers."""
    lines = (line.partition("#")[0].strip() for line in (ROOT / "constraints.txt").read_text().splitlines())
    return [line for line in lines if line]


def runs_on(requires_python: str, python: str) -> bool:
    """Whether a package with this Requires-Python installs on that Python."""
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(requires_python).contains(f"{python}.99")


def resolve(
    lines: list[str], python: str, machine: str, own: str = "", pinned: bool = False
) -> tuple[bool, str, list[str]]:
    """Ask pip: whether it finds wheels of everything, its last words, and name-version of what it would install.

    Args:
        lines: requirements.
        python: that is asked about.
        machine: that is asked about.
        own: folder with more wheels; empty: none.
        pinned: the requirements are versions, and all that is needed.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        argv = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--disable-pip-version-check"]
        argv += ["--only-binary=:all:", "--implementation", "cp", "--python-version", python]
        argv += ["--target", folder, "--report", str(report), "--ignore-installed"]
        argv += [word for p in PLATFORMS[machine] for word in ("--platform", p)]
        argv += ["--find-links", own] if own else []
        # pip compares Requires-Python with the Python that it runs on: of pins, it is compared below instead.
        argv += ["--no-deps", "--ignore-requires-python"] if pinned else []
        try:
            done = subprocess.run([*argv, *lines], capture_output=True, text=True, timeout=LONGEST)
        except subprocess.TimeoutExpired:
            return False, f"no answer within {LONGEST:.0f} s", []
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            return False, (errors or done.stderr.splitlines() or ["no words"])[-1], []
        rows = [r["metadata"] for r in json.loads(report.read_text())["install"]]
    refused = [f"{r['name']}=={r['version']}" for r in rows if not runs_on(r.get("requires_python", ""), python)]
    if pinned and refused:  # of versions that pip chose itself, pip on that Python would choose an older one
        return False, f"not for Python {python}: {', '.join(refused)}", []
    return True, "", sorted(f"{r['name']}=={r['version']}" for r in rows)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extras", default="", help="comma-separated; default: the library alone")
    parser.add_argument("--python", default=",".join(PYTHONS))
    parser.add_argument("--machine", default=",".join(PLATFORMS))
    parser.add_argument(
        "--pinned", action="store_true", help="the versions of constraints.txt, instead of what setup.py asks for"
    )
    parser.add_argument("--json", type=Path, help="every package of every cell")
    args = parser.parse_args()
    known, extras = requirements(), [e for e in args.extras.split(",") if e]
    if unknown := [e for e in extras if e not in known]:
        parser.error(f"no extra '{unknown[0]}': there are {', '.join(e for e in known if e)}")
    lines = [line for name in ("", *extras) for line in known[name]]
    machines, found, good = args.machine.split(","), {}, True
    print(f"| Python | {' | '.join(machines)} |\n|---|{'---|' * len(machines)}", flush=True)
    with tempfile.TemporaryDirectory() as own:
        if "ros" in extras or args.pinned:
            build(list(SOURCES_ONLY), own)
        for python in args.python.split(","):
            cells = []
            for machine in machines:
                wanted = holding(pins() if args.pinned else lines, python, machine)
                ok, why, packages = resolve(wanted, python, machine, own, args.pinned)
                found[f"{python} {machine}"] = packages or why
                good = good and ok
                cells.append(f"{len(packages)} wheels" if ok else f"no: {why.removeprefix('ERROR: ')}")
            print(f"| {python} | {' | '.join(cells)} |", flush=True)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
