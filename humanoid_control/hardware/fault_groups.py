"""Groups of joints that stop alone when one of them fails, and faults that drives themselves tell.

A group stops alone where it carries nothing, that is, has no joint between the root and a foot, and where its buses are
its own: what stops drives stops all of a bus. Whatever else fails stops the robot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from humanoid_control.hardware.buses import Buses
from humanoid_control.hardware.commands.command_stream import JointCommand
from humanoid_control.hardware.commands.limiter import LimiterReference
from humanoid_control.hardware.hardware_file import Hardware
from humanoid_control.hardware.supervision import FAULT, WARN, WatchFinding
from humanoid_control.hardware.transmission import Transmission
from humanoid_control.robots import Robot


def carrying_joints(robot: Robot) -> frozenset[str]:
    """Joints between the root link and a foot."""
    model, out = robot.model, set[str]()
    for foot in robot.feet:
        joint = model.frames[model.getFrameId(foot.link)].parentJoint
        while joint > 0:
            out.add(model.names[joint])
            joint = model.parents[joint]
    return frozenset(out)


class FaultGroups:
    """Groups of the hardware file that have stopped while the rest of the robot goes on.

    Attributes:
        stopped: reason by group. joints: (n,) True where a joint is in one of them.
    """

    def __init__(self, hardware: Hardware, buses: Buses, transmission: Transmission, quick_stop: float) -> None:
        """Find out which groups may stop alone.

        Args:
            hardware, buses, transmission: of the robot. quick_stop: time in which drives come to rest [s].
        """
        self.stopped: dict[str, str] = {}
        self.joints = np.zeros(len(hardware.names), dtype=bool)
        self._buses, self._quick_stop = buses, quick_stop
        self._since: dict[str, float] = {}
        self._rows, self._own = dict[str, list[int]](), dict[str, tuple[str, ...]]()
        carrying = carrying_joints(hardware.robot)
        bus_of = [bus.spec.name for bus in hardware.buses for _ in bus.spec.actuators]
        joint_buses = [{bus_of[a] for a in transmission.actuators_of(k)} for k in range(len(hardware.names))]
        for group, names in hardware.groups.items():
            rows = [hardware.names.index(n) for n in names]
            own = set[str]().union(*(joint_buses[k] for k in rows))
            others = set[str]().union(*(b for k, b in enumerate(joint_buses) if k not in rows))
            if rows and not carrying & set(names) and not own & others:
                self._rows[group], self._own[group] = rows, tuple(own)

    def take(self, findings: Sequence[WatchFinding], now: float) -> list[str]:
        """Stop the groups that findings ask for; texts of those that must stop the whole robot.

        Args:
            findings: of this cycle. now: monotonic time [s].
        """
        rest = []
        for f in findings:
            if f.level != FAULT:
                continue
            group = next((g for g, rows in self._rows.items() if f.joint in rows), None)
            if group is None:
                rest.append(f.text)
            elif group not in self.stopped:
                self.stopped[group], self._since[group] = f.text, now
                self.joints[self._rows[group]] = True
                self._buses.held.update(self._own[group])
        return rest

    def proceed(self, now: float) -> None:
        """Stop drives of stopped groups, again and again: a frame may be lost; then brakes, and no power."""
        for group, since in self._since.items():
            for bus in self._own[group]:
                if now - since <= self._quick_stop:
                    self._buses.transports[bus].quick_stop()
                else:
                    self._buses.switch_off(bus)

    def told(self, findings: Sequence[WatchFinding]) -> list[WatchFinding]:
        """Findings without those of stopped joints, and a warning for each stopped group."""
        if not self.stopped:
            return list(findings)
        kept = [f for f in findings if not self.joints[f.joint]]
        rows = [self._rows[group][0] for group in self.stopped]
        return kept + [WatchFinding(WARN, k, "group", text) for k, text in zip(rows, self.reasons(), strict=True)]

    def commanded(self, command: JointCommand) -> JointCommand:
        """A command without the stopped joints: nobody moves them."""
        return JointCommand(*(np.where(self.joints, np.nan, x) for x in command)) if self.stopped else command

    def stay(self, reference: LimiterReference, q: np.ndarray) -> None:
        """Let the reference of stopped joints be where they are; q: (n,) measured [rad]."""
        if self.stopped:
            np.copyto(reference.q, q, where=self.joints & np.isfinite(q))
            reference.v[self.joints] = 0.0

    def reasons(self) -> list[str]:
        """A line for each group that has stopped."""
        return [f"group {group} stopped: {text}" for group, text in self.stopped.items()]

    def clear(self) -> None:
        """Forget that groups have stopped; they get no power by it."""
        self.stopped.clear()
        self._since.clear()
        self._buses.held.clear()
        self.joints[:] = False


def device_findings(driver: Any, follows: bool) -> list[WatchFinding]:
    """Faults that drives of a `Driver`, which imports this file, tell, or their encoders, and power that they lost.

    Args:
        driver: of the robot. follows: drives have power, and should have it.
    """
    j, names, findings = driver.joints, driver.hardware.names, list[WatchFinding]()
    off = driver.fresh & ~j.enabled & ~j.failed & ~driver.groups.joints
    if follows and off.any():
        k = int(off.argmax())
        findings.append(WatchFinding(FAULT, k, "power", f"{names[k]} lost its power"))
    for k in np.flatnonzero(driver.jumps.failed()).tolist():
        findings.append(WatchFinding(FAULT, k, "encoder", f"{names[k]} encoder jumps"))
    for k in np.flatnonzero(j.failed).tolist():
        worst = max(driver.transmission.actuators_of(k), key=lambda a: int(driver.buses.state.code[a]))
        findings.append(WatchFinding(FAULT, k, "drive", f"{names[k]} drive: {driver.buses.fault_text(worst)}"))
    return findings
