"""`humanoid runs`: kept logs and recordings, their sizes, removal of the oldest."""

from __future__ import annotations

import argparse

from humanoid_control.cli.parser import refuse_unused, require_range
from humanoid_control.session import list_runs, prune_runs
from humanoid_control.session.runs import GB, runs_dir, size_limit
from humanoid_control.terminal import console, print_json, table

EXAMPLES = """examples:
  humanoid runs                        list the runs, newest first, with sizes
  humanoid runs --prune --keep 5       keep only the newest five
  humanoid runs --prune --limit 0.2    remove the oldest until the total is at most 0.2 GB
  humanoid runs --json

Each new run removes the oldest runs above a total of 1 GB (HUMANOID_RUNS_LIMIT=5: 5 GB; inf: no limit). The newest run
and runs in use (a running stack, a playing recording) are never removed.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--prune", action="store_true", help="remove the oldest runs above the limit")
    parser.add_argument("--keep", type=int, metavar="N", help="with --prune: number of runs to keep at most")
    parser.add_argument("--limit", type=float, metavar="GB", help="with --prune: total size to keep at most [GB]")
    parser.add_argument("--json", action="store_true", help="print JSON, with sizes in bytes")


def run(args: argparse.Namespace) -> int:
    if not args.prune:
        refuse_unused(args, ["keep", "limit"], "--prune")
    require_range("keep", args.keep, 1, 1e9)
    require_range("limit", args.limit, 0, 1e9)
    removed = []
    if args.prune:
        none_given = args.keep is None and args.limit is None
        limit = size_limit() if none_given else float("inf") if args.limit is None else args.limit
        removed = prune_runs(limit, args.keep)
    runs = list_runs()
    total = sum(r.size for r in runs)
    if args.json:
        rows = [{"run": r.path.name, "bytes": r.size, "recording": r.recorded, "in_use": r.in_use} for r in runs]
        print_json({"folder": str(runs_dir()), "bytes": total, "runs": rows, "removed": [r.path.name for r in removed]})
        return 0
    for r in removed:
        console.print(f"removed: {r.path.name} ({r.size / GB:.3f} GB)")
    cells = [
        [r.path.name, round(1e-6 * r.size, 1), "yes" if r.recorded else "", "in use" if r.in_use else ""] for r in runs
    ]
    table(f"runs in {runs_dir()}", ["run", "MB", "recording", ""], cells)
    console.print(f"{len(runs)} runs, {total / GB:.2f} GB")
    return 0
