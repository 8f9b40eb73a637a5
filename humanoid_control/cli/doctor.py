"""`humanoid doctor`: missing parts of this machine, and remedies."""

from __future__ import annotations

import argparse

from humanoid_control.cli.parser import refuse_unused, require_range
from humanoid_control.session.machine_checks import FAIL, WARN, check_machine, check_real_time
from humanoid_control.session.shared_memory import remove_leftovers
from humanoid_control.terminal import console, print_json

EXAMPLES = """examples:
  humanoid doctor              check everything
  humanoid doctor --clean      also remove stale shared memory of killed processes
  humanoid doctor --json
  humanoid doctor --realtime   lateness of a 500 Hz loop, with advice to reduce it
  humanoid doctor --realtime --seconds 60 --rate 1000
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=8080, help="port of the viewer (default: 8080)")
    parser.add_argument("--clean", action="store_true", help="remove stale shared memory")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--realtime", action="store_true", help="measure and explain the lateness of a real-time loop instead"
    )
    parser.add_argument("--seconds", type=float, help="with --realtime: duration of the measurement [s] (default: 10)")
    parser.add_argument("--rate", type=float, help="with --realtime: loop rate [Hz] (default: 500)")


def run(args: argparse.Namespace) -> int:
    require_range("port", args.port, 1, 65535)
    if not args.realtime:
        refuse_unused(args, ["seconds", "rate"], "--realtime")
    require_range("seconds", args.seconds, 1, 3600)
    require_range("rate", args.rate, 10, 5000)
    removed = remove_leftovers() if args.clean else None
    if removed is not None and not args.json:
        console.print(f"removed {removed} stale files")
    findings = []
    checks = check_real_time(args.rate or 500.0, args.seconds or 10.0) if args.realtime else check_machine(args.port)
    for finding in checks:
        findings.append(finding)
        if not args.json:
            line = f"{finding.state:5} {finding.check}: {finding.found}"
            console.print(line + (f"\n      -> {finding.advice}" if finding.advice else ""))
    failed, warned = ([f.check for f in findings if f.state == state] for state in (FAIL, WARN))
    if args.json:
        print_json({"findings": [vars(f) for f in findings], "removed": removed})
    else:
        well = f"works, with warnings: {', '.join(warned)}" if warned else "all checks passed"
        console.print(f"failed: {', '.join(failed)}" if failed else well)
    return 1 if failed else 0
