"""`humanoid policy`: a learned policy on one page, with what contradicts; and the draft of a description of one."""

from __future__ import annotations

import argparse
from pathlib import Path

from humanoid_control.cli.parser import file_path, given, refuse_unused
from humanoid_control.errors import ConfigError, PolicyError
from humanoid_control.files import check_file, whole_file
from humanoid_control.terminal import console, print_json, print_parts, warn

EXIT_CONTRADICTION = 2
EXAMPLES = """examples:
  humanoid policy policy.onnx                     what it observes, drives and assumes, and what contradicts
  humanoid policy deploy.yaml --robot g1          the same against a robot: names, range, torque limits
  humanoid policy new policy.onnx -o mine.yaml    drafts a description, with a question for each missing fact
  humanoid policy twist2.yaml --network twist2_1017_20k.onnx

Formats: LEAPP, metadata of BeyondMimic, mjlab and holosoma, Unitree deploy.yaml, rl_sar, humanoid_policy/1. TorchScript
and pickles are programs, and never loaded. Exit code 2 where the file contradicts itself or the robot.
"""
NEW = "new"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", type=given, nargs="+", metavar="[new] FILE", help="an ONNX file, a YAML file, or a folder"
    )
    parser.add_argument("--robot", type=given, help="name, or path of a URDF, to check against")
    parser.add_argument(
        "--network", type=file_path, metavar="ONNX", help="in the place of the one that a description names"
    )
    parser.add_argument(
        "-o", "--output", type=file_path, metavar="YAML", help="file for the draft (default: the terminal)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    words = args.file
    if words[0] == NEW and len(words) == 2:
        refuse_unused(args, ("robot", "network", "json"), "the page of a policy, not to the draft of a description")
        return _draft(Path(words[1]), args.output)
    if len(words) != 1:
        raise ConfigError(f"give one file, or 'new' and one file, got {' '.join(words)}")
    refuse_unused(args, ("output",), "the draft of a description: humanoid policy new FILE -o YAML")
    return _explain(args)


def _explain(args: argparse.Namespace) -> int:
    from humanoid_control.policy import examine, policy_data, policy_page, read_policy

    robot = None
    if args.robot is not None:
        from humanoid_control.robots import load_robot

        robot = load_robot(args.robot, "floating")
    found = examine(*read_policy(Path(args.file[0]), args.network), robot)
    if args.json:
        print_json(policy_data(found))
    else:
        print_parts(policy_page(found))
    return EXIT_CONTRADICTION if found.contradictions else 0


def _draft(path: Path, output: Path | None) -> int:
    from humanoid_control.policy import draft_description, read_network, read_policy
    from humanoid_control.policy.formats.reader import refuse_code

    check_file(output)
    model = None
    try:
        model, network = read_policy(path)
    except PolicyError:
        refuse_code(path)
        network = read_network(path)
    if network is None:
        raise PolicyError(f"{path}: there is no network to describe")
    text = draft_description(network, model)
    if output is None:
        console.print(text, end="")
        return 0
    with whole_file(output) as part:
        part.write_text(text, encoding="utf-8")
    warn(f"{output}: {text.count('# ?')} questions; keep it beside {network.path.name}, then: humanoid policy {output}")
    return 0
