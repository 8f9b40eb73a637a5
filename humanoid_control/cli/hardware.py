"""`humanoid hardware`: draft and check the file of a real robot, scan its buses, move one joint."""

from __future__ import annotations

import argparse
import os
import select
import sys
import termios
import tty
from pathlib import Path
from typing import Any

from humanoid_control.cli.parser import add_commands, file_path, given, require_range
from humanoid_control.errors import ConfigError, EnvironmentProblem, first_few
from humanoid_control.files import check_file, whole_file
from humanoid_control.hardware.calibration import missing_calibration, named_calibration, read_calibration
from humanoid_control.hardware.commissioning import Jog, bus_rows, draft_file, run_cycles, scan_rows, tendon_rows
from humanoid_control.hardware.driver import Driver
from humanoid_control.hardware.hardware_file import Hardware, read_hardware_file
from humanoid_control.hardware.muscle_units.driver import TendonDriver
from humanoid_control.hardware.muscle_units.file import TendonHardware, is_of_tendons, read_tendon_hardware
from humanoid_control.hardware.power import REQUESTS, PowerState
from humanoid_control.hardware.realtime import become_real_time
from humanoid_control.nodes import require_ros
from humanoid_control.nodes.base.ros_env import check_namespace
from humanoid_control.robots.catalogue import load_robot
from humanoid_control.robots.tendons import tendon_geometry
from humanoid_control.terminal import console, table

EXAMPLES = """examples:
  humanoid hardware new --robot hrp2 --bus loopback -o hrp2.hardware.yaml
  humanoid hardware check hrp2.hardware.yaml               only the file; opens no bus
  humanoid hardware check hrp2.hardware.yaml --live        opens the buses and measures for 1 s; no power
  humanoid hardware scan hrp2.hardware.yaml                responding devices compared with the file
  humanoid hardware jog hrp2.hardware.yaml l_elbow_flexion --to 0.5
  humanoid hardware call enable                            a running robot_driver; also disable, stop, clear

More: docs/hardware.md.
"""
TASKS = {
    "new": "draft a hardware file with every joint on one bus; GUESS marks values to check",
    "check": "check a hardware file: joints, limits, bus load, calibration; never switches power on",
    "scan": "scan the buses of a hardware file and compare the responses with it; never switches power on",
    "call": "call a service of a running robot_driver: enable, disable, stop, ...",
    "jog": "SWITCH POWER ON and move one joint at up to 0.2 rad/s while ENTER is held",
}
PRIORITY = 50  # SCHED_FIFO, as for nodes
ANSWER_TIME = 5.0  # [s]
LIVE_TIME = 1.0  # [s]
SHOWN_EVERY = 0.2  # [s]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = add_commands(parser, "action", TASKS)
    commands["new"].add_argument("--robot", type=given, required=True, help="robot name or path of a URDF")
    commands["new"].add_argument("--bus", type=given, required=True, help="transport of the bus: loopback, ...")
    commands["new"].add_argument("-o", "--output", type=file_path, required=True, help="hardware file to write")
    commands["call"].add_argument("service", choices=tuple(REQUESTS), help=f"request: {', '.join(REQUESTS)}")
    commands["call"].add_argument("--namespace", type=given, help="namespace of the driver")
    for name in ("check", "scan", "jog"):
        commands[name].add_argument("file", type=file_path, help="hardware file")
    for name in ("check", "jog"):
        commands[name].add_argument(
            "--calibration", type=file_path, help="file of the zeros (default: next to the hardware file)"
        )
    commands["check"].add_argument("--live", action="store_true", help="open the buses and measure for 1 s")
    commands["jog"].add_argument("joint", type=given)
    commands["jog"].add_argument("--to", type=float, required=True, metavar="ANGLE", help="[rad]")
    commands["jog"].add_argument(
        "--late-tolerance", type=float, default=1.0, help="tolerated multiple of the usual cycle lateness (default: 1)"
    )


def run(args: argparse.Namespace) -> int:
    if args.action == "new":
        return _new(args.robot, args.bus, args.output)
    if args.action == "call":
        return _call(*REQUESTS[args.service], args.namespace or "")
    if is_of_tendons(args.file):
        return _tendons(read_tendon_hardware(args.file), args)
    hardware = read_hardware_file(args.file)
    if args.action == "scan":
        table("devices", ["bus", "answers", "expected"], scan_rows(hardware))
        return 0
    zeros = read_calibration(named_calibration(args.file, args.calibration), hardware.actuators)
    if args.action == "jog":
        require_range("--late-tolerance", args.late_tolerance, 1.0, 100.0)
        driver = Driver(hardware, zeros, late_tolerance=args.late_tolerance)
        return _jog(driver, args.joint, args.to)
    return _check(hardware, Driver(hardware, zeros), args.live)


def _tendons(hardware: TendonHardware, args: argparse.Namespace) -> int:
    if args.action == "jog":
        raise ConfigError("jog moves single joints: tendon_driver moves all tendons together")
    if args.action == "scan":
        table("devices", ["bus", "answers", "expected"], scan_rows(hardware))
        return 0
    if args.calibration is not None:
        raise ConfigError("--calibration applies to joints only: the zeros of tendons are in the hardware file")
    columns = ["bus", "transport", "actuators", "load %", "drives on communication loss"]
    table("buses", columns, bus_rows(hardware))
    columns = ["tendon", "bus", "id", "mode", "wire m", "tension N", "measured by"]
    table("muscle units", columns, tendon_rows(hardware))
    undriven = [n for n in tendon_geometry(hardware.robot).tendon_names if n not in hardware.actuators]
    console.print(f"{len(hardware.rows)} driven tendons" + (f", not {first_few(undriven)}" if undriven else ""))
    return _measure_tendons(TendonDriver(hardware)) if args.live else 0


def _measure_tendons(driver: TendonDriver) -> int:
    """Open the buses and measure for a second; 1 if power would be refused."""
    driver.open()
    try:
        end = driver.clock() + LIVE_TIME
        run_cycles(driver, driver.cycle, lambda: driver.clock() < end)
        s, fresh = driver.states, driver.fresh
        rows = [
            (name, float(s.wire[k]), float(s.speed[k]), float(s.tension[k]), "yes" if fresh[k] else "no")
            for k, name in enumerate(driver.names)
        ]
        table("measured", ["tendon", "wire m", "winding m/s", "tension N", "fresh"], rows)
        refusals = driver.refusals()
    finally:
        driver.close()
    console.print("power would be refused: " + "; ".join(refusals) if refusals else "no reason to refuse power")
    return 1 if refusals else 0


def _new(robot: str, bus: str, output: Path) -> int:
    check_file(output)
    if output.exists():
        raise ConfigError(f"{output} exists already, perhaps with manual corrections: give another file name")
    text = draft_file(load_robot(robot, "fixed"), robot, bus)
    with whole_file(output) as part:
        part.write_text(text, encoding="utf-8")
    console.print(f"written: {output}; correct the lines marked GUESS, then run `humanoid hardware check {output}`")
    return 0


def _call(service: str, on: bool | None, namespace: str) -> int:
    """Call a service of the driver and print the answer; 1 if refused."""
    check_namespace("--namespace", namespace)
    require_ros()
    import rclpy
    from std_srvs.srv import SetBool, Trigger

    rclpy.init()
    node = rclpy.create_node("humanoid_hardware", namespace=namespace)
    try:
        name = f"robot_driver/{service}"
        client: Any = node.create_client(Trigger if on is None else SetBool, name)
        answer = None
        if client.wait_for_service(ANSWER_TIME):
            request = client.call_async(Trigger.Request() if on is None else SetBool.Request(data=on))
            rclpy.spin_until_future_complete(node, request, timeout_sec=ANSWER_TIME)
            answer = request.result()
        if answer is None:
            raise EnvironmentProblem(
                f"no response from {name}: is the driver running, in this ROS domain and namespace?"
            )
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
    console.print(answer.message or "done")
    return 0 if answer.success else 1


def _check(hardware: Hardware, driver: Driver, live: bool) -> int:
    columns = ["bus", "transport", "actuators", "load %", "drives on communication loss"]
    table("buses", columns, bus_rows(hardware))
    console.print(f"{len(hardware.joints)} driven joints, {len(hardware.fixed)} fixed")
    missing = missing_calibration(driver.zeros, driver.buses.serials(), hardware.needs_calibration)
    console.print("calibration: " + ("; ".join(missing) or "nothing is missing"))
    return _measure(driver) if live else 0


def _measure(driver: Driver) -> int:
    driver.open()
    try:
        end = driver.clock() + LIVE_TIME
        run_cycles(driver, driver.cycle, lambda: driver.clock() < end)
        j = driver.joints
        rows = [
            (name, float(j.q[k]), float(j.v[k]), float(j.temperature[k]), "yes" if driver.fresh[k] else "no")
            for k, name in enumerate(driver.hardware.names)
        ]
        table("measured", ["joint", "q rad", "v rad/s", "deg C", "fresh"], rows)
        refusals = [r for r in driver.refusals() if not r.startswith("no guardian")]  # starts with the driver
    finally:
        driver.close()
    console.print("power would be refused: " + "; ".join(refusals) if refusals else "no reason to refuse power")
    return 1 if refusals else 0


def _jog(driver: Driver, joint: str, angle: float) -> int:
    jog = Jog(driver, joint, angle)
    if not sys.stdin.isatty():
        raise ConfigError("jog needs a terminal: ENTER must be held while the joint moves")
    driver.open()
    become_real_time(PRIORITY)
    try:
        driver.start_guardian()
        _settle(driver)
        if reason := driver.enable():
            raise ConfigError(f"no power: {reason}")
        _move(driver, jog, joint)
    finally:
        driver.close()
    return 0 if jog.arrived() else 1


def _settle(driver: Driver) -> None:
    end = driver.clock() + 0.2
    run_cycles(driver, driver.cycle, lambda: driver.clock() < end)


def _move(driver: Driver, jog: Jog, joint: str) -> None:
    """Cycle while keys are read; finally stop the robot and cut power."""
    console.print(f"hold ENTER to move {joint} to {jog.angle:g} rad; q quits")
    before, shown, ends = termios.tcgetattr(sys.stdin), 0.0, False

    def cycle() -> None:
        nonlocal shown, ends
        if not ends and select.select([sys.stdin], [], [], 0)[0]:
            keys = os.read(sys.stdin.fileno(), 64)
            if b"\n" in keys or b"\r" in keys:
                jog.press()
            ends = b"q" in keys
        if (ends or jog.arrived()) and driver.machine.state is not PowerState.STOPPING:
            ends = True
            driver.disable()
        jog.cycle()
        if driver.clock() - shown > SHOWN_EVERY:
            shown = driver.clock()
            print(f"\r{driver.machine!s:60.60} {joint} {jog.position():+.3f} rad", end="", flush=True)

    try:
        tty.setcbreak(sys.stdin)
        run_cycles(driver, cycle, lambda: driver.machine.powered)
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        print()
    console.print(f"{driver.machine}; {joint} {jog.position():+.3f} rad")
