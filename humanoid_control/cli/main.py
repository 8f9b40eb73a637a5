"""The `humanoid` command."""

from __future__ import annotations

import _thread
import importlib
import os
import sys
import threading
from collections.abc import Sequence
from typing import Any

from humanoid_control import __version__
from humanoid_control.cli.checkout import evidence_module
from humanoid_control.cli.parser import EXIT_BAD_INPUT, Parser
from humanoid_control.errors import HumanoidError, missing_package, nearest_names

COMMANDS = {
    "demo": "a simulated robot dances, reaches or walks, shown in the browser, with a report at the end",
    "up": "start a stack of nodes, watch it, stop it",
    "hardware": "a real robot: its file drafted and checked, what answers on its buses, one joint moved",
    "robots": "the robots: a table, joints and limits, how often meshes touch; what a new URDF needs, guessed",
    "segments": "edit a robot's collision volumes in the browser, or list them",
    "tendons": "a robot's tendons and the groups of its joints; mappings fitted to them",
    "clip": "what is in a motion file: labels, rate, a stick figure, the nearest marker sets; drafts a marker set",
    "retarget": "turn a motion clip into a joint trajectory: CSV, NPZ or MCAP",
    "perform": "a clip becomes a motion that obeys physics, and a simulated robot performs it on its own feet",
    "reach": "the motion of an arm that costs least, from posture to posture, or beside one that was measured",
    "policy": "a learned policy on one page: observations, joints, gains, what was assumed, what contradicts",
    "score": "how well robots imitate a clip: errors, collisions, limits; tables, JSON, a page with plots",
    "analyse": "a recorded person: joint angles from markers, moments from force plates, a page about both",
    "study": "published conclusions, tried on these models: holds, does not hold, cannot be decided",
    "bench": "how fast: solvers, dynamics, distances, the whole stack, beside other libraries",
    "soak": "a stack runs while nodes are killed and nonsense arrives: what was promised beside what was seen",
    "dance": "robots dance side by side in the browser, without ROS, or in a recording to share",
    "picture": "a picture of the viewer at one moment of a clip, or a film of it",
    "warm": "compile the kernels ahead, so that nothing waits for the compiler",
    "ros2_control": "files with which ros2_control drives a robot: URDF, controllers, launch file",
    "doctor": "check this machine and say what to do about what is wrong",
    "record": "record topics to an MCAP bag",
    "replay": "play a recorded bag",
    "why": "what was violated first in a recorded run, the time line of all that followed, how two runs differ",
    "runs": "the runs that are kept, their sizes; the oldest removed",
    "docs": "write the generated pages and default parameter files",
}
FOLDERS = {
    "doctor": "machine",
    "warm": "machine",
    "hardware": "deployment",
    "ros2_control": "deployment",
    "why": "deployment",
    "analyse": "motion",
    "dance": "motion",
    "perform": "motion",
    "reach": "motion",
}
"""Folders of commands that are not in the folder of this file."""
OF_EVIDENCE = ("study", "bench", "soak")
"""Commands in `evidence.commands`, which only a checkout has."""
EXIT_INTERRUPTED = 130
ENDED_BY_CTRL_C = ("up", "record", "dance", "segments", "replay --loop")
"""They run until Ctrl-C and say so: it is their usual end, with exit code 0. All others are cut off by it."""
EXIT_CODES = f"""exit codes:
  0    done; also after Ctrl-C where that is how it ends ({", ".join(ENDED_BY_CTRL_C)})
  1    done, and what was looked at is not good, or part of it failed
  2    bad input, or something is missing on this machine: one line says what
  130  cut off by Ctrl-C; demo and soak that have begun report on what they saw instead
"""
INTERRUPT_DELAY = 0.05  # [s]


def build_parser() -> Parser:
    """Create the parser with all command names; commands add arguments on use."""
    lines = "\n".join(f"  {name:10} {task}" for name, task in COMMANDS.items())
    parser = Parser(
        prog="humanoid",
        description="Real-time humanoid robot control on ROS 2.",
        epilog=f"commands:\n{lines}\n\n{EXIT_CODES}\n`humanoid COMMAND --help` explains a command and shows examples.",
    )
    parser.add_argument("--version", action="version", version=f"humanoid_control {__version__}")
    parser.add_argument("command", help="one of the commands below", metavar="COMMAND")
    return parser


def command_module(name: str) -> Any:
    """Return the module of a command: its examples, `add_arguments` and `run`.

    Raises:
        EnvironmentProblem: if a study or benchmark has no checkout.
    """
    if name in OF_EVIDENCE:
        return evidence_module(f"commands.{name}")
    folder = f".{FOLDERS[name]}" if name in FOLDERS else ""
    return importlib.import_module(f"humanoid_control.cli{folder}.{name}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a sub-command; return the exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if not argv or argv[0].startswith("-"):
        build_parser().parse_args(argv or ["--help"])
        return 0
    name = argv[0]
    if name not in COMMANDS:
        near = nearest_names(name, COMMANDS)
        offer = f"did you mean {' or '.join(near)}?" if near else f"commands: {', '.join(COMMANDS)}"
        print(f"humanoid: unknown command '{name}': {offer}", file=sys.stderr)
        return EXIT_BAD_INPUT
    keep_interrupts()
    try:
        module = command_module(name)
        parser = Parser(
            prog=f"humanoid {name}",
            description=COMMANDS[name][0].upper() + COMMANDS[name][1:] + ".",
            epilog=module.EXAMPLES,
        )
        module.add_arguments(parser)
        return int(module.run(parser.parse_args(argv[1:])))
    except ModuleNotFoundError as e:
        if (problem := missing_package(e)) is None:
            raise
        print(f"humanoid {name}: {problem}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except HumanoidError as e:
        print(f"humanoid {name}: {e}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except SystemError as e:  # numba's form of an interrupt during the creation of a nested record
        if not isinstance(e.__cause__, KeyboardInterrupt):
            raise
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # `humanoid robots | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def keep_interrupts() -> None:
    """Raise KeyboardInterrupt again if it was lost.

    Compiled code calls back into Python, for instance when a kernel loads; an exception there is only reported
    ("Exception ignored"), and the command would ignore the interrupt.
    """
    sys.unraisablehook = _interrupt_again


def _interrupt_again(unraisable: Any) -> None:
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    timer = threading.Timer(INTERRUPT_DELAY, _thread.interrupt_main)  # later, since it would be lost here again
    timer.daemon = True
    timer.start()


if __name__ == "__main__":
    sys.exit(main())
