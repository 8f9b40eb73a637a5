"""Argument parsers whose complaints are one line with the nearest right spelling."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import time
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from humanoid_control.errors import ConfigError, EnvironmentProblem, nearest_names
from humanoid_control.robots.names import HUMANOIDS, SETS
from humanoid_control.terminal import warn

if TYPE_CHECKING:
    from humanoid_control.mocap import BodyPoints
    from humanoid_control.robots import Robot

EXIT_BAD_INPUT = 2
HOST = "127.0.0.1"  # at which pages listen
CHOICE = re.compile(r"argument (?P<what>\S+): invalid choice: '(?P<wrong>.*)' \(choose from (?P<known>.*)\)", re.S)


class Parser(argparse.ArgumentParser):
    """An argument parser that neither abbreviates options nor wraps its epilog, and complains in one line.

    Attributes:
        siblings: of a sub-command all parsers next to it, by name, so that an option of another one is told as such.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        options.setdefault("allow_abbrev", False)
        super().__init__(*args, **options)
        self.siblings: Mapping[str, argparse.ArgumentParser] = {}

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse, but a sub-command complains about unknown arguments itself: it knows the right spelling.

        Where only one of --robot and --robots is an option, the other one stands for it.
        """
        args = [self._own_robot_option(text) for text in (sys.argv[1:] if args is None else args)]
        namespace, unknown = super().parse_known_args(args, namespace)
        if unknown and self.siblings:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return namespace, unknown

    def _own_robot_option(self, text: str) -> str:
        name, equals, value = text.partition("=")
        other = {"--robot": "--robots", "--robots": "--robot"}.get(name, "")
        known = self._option_string_actions
        return f"{other}{equals}{value}" if other in known and name not in known else text

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with code 2."""
        if message.startswith("unrecognized arguments:"):
            message = self._unknown(message.split(":", 1)[1].split()[0])
        elif found := CHOICE.match(message):
            known = [name.strip(" '\"") for name in found["known"].split(",")]
            near = nearest_names(found["wrong"], known)
            offer = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
            message = f"unknown {found['what']} '{found['wrong']}': {offer}"
        self.exit(EXIT_BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def _unknown(self, wrong: str) -> str:
        option = wrong.split("=")[0]
        command, _, name = self.prog.rpartition(" ")
        for other in self.siblings.values():
            for action in other._actions:
                if option in action.option_strings:
                    return f"{action.option_strings[-1]} is not for the {command.split()[-1]} '{name}'"
        near = nearest_names(option, [o for action in self._actions for o in action.option_strings])
        return f"unknown argument '{wrong}'" + (f": did you mean {' or '.join(near)}?" if near else "")


def add_commands(parser: argparse.ArgumentParser, what: str, tasks: Mapping[str, str]) -> dict[str, Parser]:
    """A parser for each sub-command.

    Args:
        parser: of the command.
        what: the sub-commands are, 'bench'; their name is found under it in the namespace.
        tasks: name -> what it does, in one line.
    """
    group = parser.add_subparsers(dest=what, metavar=what, required=True, parser_class=Parser, help="one of:")
    parsers = {
        name: group.add_parser(name, help=task, description=f"{task[0].upper()}{task[1:]}.")
        for name, task in tasks.items()
    }
    for one in parsers.values():
        one.siblings = parsers
    return parsers


# -------- Types and checks of arguments


def given(text: str) -> str:
    """A text that is not empty; the type of arguments that name something."""
    if not text.strip():
        raise argparse.ArgumentTypeError("'' names nothing")
    return text.strip()


def comma_list(text: str) -> list[str]:
    """The words of a list that is separated by commas; as type of an option it refuses one without words."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise argparse.ArgumentTypeError(f"'{text}' names nothing")
    return words


def number_list(text: str) -> list[float]:
    """The numbers of a list that is separated by commas; as type of an option it refuses anything else."""
    try:
        return [float(word) for word in comma_list(text)]
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no number, and no list of numbers: 20,50") from None


def file_path(text: str) -> Path:
    """The path of a file to write or read; a name that ends like a folder's is refused."""
    if given(text).endswith(os.sep):
        raise argparse.ArgumentTypeError(f"'{text}' is a folder: name a file")
    return Path(text)


def folder_path(text: str) -> Path:
    """The path of a folder, with or without a slash at its end."""
    return Path(given(text))


def is_folder(text: str) -> bool:
    """True where an output, as it was typed, is a folder: it is one already, ends with a slash, or has no ending.

    `res.v1/` is a folder called `res.v1`, and `res.csv` a file, as long as no folder is called so.
    """
    return text.endswith(os.sep) or os.path.isdir(text) or not Path(text).suffix


def add_robots(parser: argparse.ArgumentParser, default: str) -> None:
    """The option that names one robot or several; `load_robots` takes what it collects, None where it is not given.

    Args:
        default: what is taken then, for the help.
    """
    parser.add_argument(
        "--robot",
        action="extend",
        type=comma_list,
        metavar="ROBOT[,ROBOT]",
        help=f"name of a robot, path of a URDF or MJCF, or {' or '.join((*SETS, HUMANOIDS))}; repeatable "
        f"(default: {default})",
    )


def tell_notes(robots: Iterable[Robot]) -> None:
    """Warn of what could not be kept of the descriptions of robots, or is wrong in them, a line each."""
    for robot in robots:
        for note in robot.notes:
            warn(note)


def require_range(option: str, value: float | None, low: float, high: float) -> None:
    """Refuse a number outside a range; None passes.

    Raises:
        ConfigError: it is outside, or not a number.
    """
    if value is not None and not low <= value <= high:
        raise ConfigError(f"--{option} must be between {low:g} and {high:g}, got {value:g}")


def require_free_port(port: int, host: str = HOST) -> None:
    """Refuse a port of the option `--port` at which something listens already.

    Raises:
        EnvironmentProblem: it is occupied. ConfigError: not a port, or not an address.
    """
    from humanoid_control.viewer import port_is_free

    if not port_is_free(host, port):
        raise EnvironmentProblem(f"port {port} is occupied: choose another with --port, or stop what listens there")


def page_answers(url: str, seconds: float) -> bool:
    """Wait until a page is there; False where it is not after so long [s]."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2.0):
            return True
        time.sleep(0.1)
    return False


def refuse_unused(args: argparse.Namespace, options: Iterable[str], belongs: str) -> None:
    """Refuse options that were given where they would do nothing.

    Args:
        args: in which an option that was not given is None, False or an empty list.
        options: their names, without dashes in front; an argument without an option is named in capitals.
        belongs: to what they belong, for the message.

    Raises:
        ConfigError: one was given.
    """
    for option in options:
        if getattr(args, option.lower().replace("-", "_")) not in (None, False, []):
            name = option if option.isupper() else f"--{option}"
            raise ConfigError(f"{name} belongs to {belongs}")


def take_settings(
    args: argparse.Namespace, settings: Mapping[str, Mapping[str, Any]], options: Mapping[str, Mapping[str, str]]
) -> None:
    """Take parameters of nodes that were given for the options of the same meaning.

    Args:
        args: in which an option that was not given is None; changed.
        settings: node -> parameter -> value, as given. options: node -> parameter -> option, without dashes in front.

    Raises:
        ConfigError: the option was given too, and is another.
    """
    for node, parameters in options.items():
        for name, option in parameters.items():
            value, key = settings.get(node, {}).get(name), option.replace("-", "_")
            if value is None or (value in ("", 0.0) and not isinstance(value, int)):  # as found, for these parameters
                continue
            if getattr(args, key) not in (None, value):
                raise ConfigError(f"--set {node}.{name}={value} contradicts --{option} {getattr(args, key)}: give one")
            setattr(args, key, value)


# -------- Clips

CLIP_HELP = (
    "dance or gentle_dance (built in), or a C3D, TRC, BVH, FBX, glTF, AMC, CSV, NPZ (SMPL, landmarks), PKL or PT "
    "file; also in a folder or an archive: clips.zip:walk.bvh"
)
RATES = (0.1, 1000.0)  # [Hz] of motion capture
CLIP_OPTIONS = ("marker-set", "unit", "scale", "rate", "up")
"""Names of the options of `add_clip_options`; each is None where it is not given."""
CLIP_PARAMETERS = {
    "marker_set": "marker-set",
    "clip_unit": "unit",
    "clip_scale": "scale",
    "clip_rate": "rate",
    "clip_up": "up",
}
"""The same options, by the parameters of the node `trajectory_streamer` that they set."""


def add_clip_options(parser: argparse.ArgumentParser) -> None:
    """The options that say how a motion file is to be read."""
    parser.add_argument("--marker-set", type=given, help="marker set of the clip, or the path of an own one")
    parser.add_argument("--unit", type=given, help="of the file's numbers: mm, cm, m, inch (default: as found)")
    parser.add_argument("--scale", type=float, help="factor on its size, for skeletons of other sizes (default: 1)")
    parser.add_argument(
        "--rate",
        type=float,
        help="frames a second, of AMC, CSV, NPZ, PKL, PT that state none, or BVH that is wrong",
    )
    parser.add_argument(
        "--up", type=given, help="axis of the file that points up: x, y, z, -x, -y, -z (default: as found)"
    )


def add_speed(parser: argparse.ArgumentParser) -> None:
    """The option for the pace of a clip, as `Targets.paced` means it."""
    parser.add_argument("--speed", type=float, default=1.0, help="pace of the clip, frames a second stay (default: 1)")


def clip_options(args: argparse.Namespace) -> tuple[str | None, dict[str, Any]]:
    """The marker set, None where none is given, and the options of `load_clip` and `load_body_points` by name."""
    scale = 1.0 if args.scale is None else args.scale
    require_range("rate", args.rate, *RATES)
    return args.marker_set, {"unit": args.unit or "", "scale": scale, "rate": args.rate, "up": args.up or ""}


def clip_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """The options of `add_clip_options` that were given, as parameters of the node `trajectory_streamer`."""
    told = {name: getattr(args, option.replace("-", "_")) for name, option in CLIP_PARAMETERS.items()}
    return {name: value for name, value in told.items() if value is not None}


def read_body(args: argparse.Namespace) -> BodyPoints:
    """Body points of the clip, cleaned unless `--raw` is given; what was found on the way is printed as warnings."""
    from humanoid_control.mocap import load_body_points, load_clip, locate_body

    marker_set, reading = clip_options(args)
    if args.raw:
        body = locate_body(load_clip(args.clip, **reading), marker_set)
    else:
        body = load_body_points(args.clip, marker_set, **reading)
    for text in body.warnings:
        warn(text)
    return body
