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
    "demo": "run a simulated robot that dances, reaches or walks, show it in the browser and print a report",
    "up": "start, watch and stop a stack of nodes",
    "hardware": "draft and check hardware files, scan buses, call the driver and jog one joint of a real robot",
    "robots": "list robots, joints and limits, count mesh contacts, and draft the robot file of a new URDF",
    "segments": "edit or list the collision volumes of a robot in the browser",
    "tendons": "list the tendons and joint groups of a robot, and fit joint-muscle mappings",
    "clip": "describe a motion file (labels, rate, nearest marker sets), draw a stick figure, and draft a marker set",
    "retarget": "retarget a motion clip to robots and write joint trajectories (CSV, NPZ or MCAP)",
    "perform": "convert a clip to a physically feasible motion and perform it on a simulated robot",
    "reach": "compute optimal arm motions between two postures, or compare them with measured ones",
    "policy": "describe a learned policy (observations, joints, gains, assumptions, contradictions), check and play it",
    "score": "score how well robots imitate a clip: errors, collisions and limits, as tables, JSON or a page "
    "with plots",
    "analyse": "analyse a recorded person: joint angles from markers, joint moments from force plates",
    "study": "test published conclusions on these models: confirmed, refuted or undecided",
    "bench": "benchmark solvers, dynamics, distances and the whole stack, next to other libraries",
    "soak": "stress-test a running stack with killed nodes and invalid messages, and check the guarantees",
    "dance": "show robots dancing side by side in the browser, without ROS, or record them to a file to share",
    "picture": "render the viewer at one moment of a clip as a picture, or a clip as a film",
    "warm": "compile the kernels in advance, so that the first start does not wait for the compiler",
    "ros2_control": "write the ros2_control files of a robot: URDF, controllers, launch file",
    "moveit": "write the MoveIt configuration of a robot: groups, pairs of links, limits, controllers, launch file",
    "doctor": "check this machine and suggest fixes",
    "record": "record topics to an MCAP bag",
    "replay": "play back a recorded bag",
    "why": "find the first violation in a recorded run, print its timeline, and compare two runs",
    "runs": "list stored runs with their sizes, and remove the oldest",
    "docs": "write the generated pages and default parameter files",
}
OF_EVIDENCE = ("study", "bench", "soak")
"""Commands in `evidence.commands`, which exist only in a checkout."""
EXIT_INTERRUPTED = 130
ENDED_BY_CTRL_C = ("up", "record", "dance", "segments", "replay --loop")
"""Commands that run until Ctrl-C: it is their normal end, with exit code 0. It interrupts all others."""
EXIT_CODES = f"""exit codes:
  0    success, also after Ctrl-C for commands that run until Ctrl-C ({", ".join(ENDED_BY_CTRL_C)})
  1    done, with a failed check or a failed part
  2    invalid input or missing requirement; a one-line message names it
  130  interrupted by Ctrl-C; a running demo or soak still prints its report
"""
INTERRUPT_DELAY = 0.05  # [s]


def build_parser() -> Parser:
    """Create the parser with all command names; commands add arguments on use."""
    lines = "\n".join(f"  {name:12} {task}" for name, task in COMMANDS.items())
    parser = Parser(
        prog="humanoid",
        description="Real-time humanoid robot control on ROS 2.",
        epilog=f"commands:\n{lines}\n\n{EXIT_CODES}\n`humanoid COMMAND --help` describes a command and shows examples.",
    )
    parser.add_argument("--version", action="version", version=f"humanoid_control {__version__}")
    parser.add_argument("command", help="command to run, see the list below", metavar="COMMAND")
    return parser


def command_module(name: str) -> Any:
    """Return the module of a command: its examples, `add_arguments` and `run`.

    Raises:
        EnvironmentProblem: if a study or benchmark has no checkout.
    """
    if name in OF_EVIDENCE:
        return evidence_module(f"commands.{name}")
    return importlib.import_module(f"humanoid_control.cli.{name}")


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
