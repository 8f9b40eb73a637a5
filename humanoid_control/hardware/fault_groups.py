"""Joint groups that stop alone after a fault.

Such a group has no joint between root and foot and shares no bus. Any other fault stops the robot.
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
    """Return joints between the root link and a foot."""
    model, out = robot.model, set[str]()
    for foot in robot.feet:
        joint = model.frames[model.getFrameId(foot.link)].parentJoint
        while joint > 0:
            out.add(model.names[joint])
            joint = model.parents[joint]
    return frozenset(out)


class FaultGroups:
    """Groups that have stopped while the rest of the robot continues.

    Attributes:
        stopped: reason by group.
    """

    def __init__(self, hardware: Hardware, buses: Buses, transmission: Transmission, quick_stop: float) -> None:
        """Determine the groups that may stop alone.

        Args:
            quick_stop: time in which drives come to rest [s].
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
        """Stop groups with faults; return faults that stop the whole robot."""
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
        """Repeat quick stops (a frame may be lost); then brake and remove power."""
        for group, since in self._since.items():
            for bus in self._own[group]:
                if now - since <= self._quick_stop:
                    self._buses.transports[bus].quick_stop()
                else:
                    self._buses.switch_off(bus)

    def summarise(self, findings: Sequence[WatchFinding]) -> list[WatchFinding]:
        """Replace the findings of stopped joints by one warning a group."""
        if not self.stopped:
            return list(findings)
        kept = [f for f in findings if not self.joints[f.joint]]
        rows = [self._rows[group][0] for group in self.stopped]
        return kept + [WatchFinding(WARN, k, "group", text) for k, text in zip(rows, self.reasons(), strict=True)]

    def commanded(self, command: JointCommand) -> JointCommand:
        """Remove the stopped joints from a command."""
        return JointCommand(*(np.where(self.joints, np.nan, x) for x in command)) if self.stopped else command

    def stay(self, reference: LimiterReference, q: np.ndarray) -> None:
        """Set the reference of stopped joints to measured q (n,) [rad]."""
        if self.stopped:
            np.copyto(reference.q, q, where=self.joints & np.isfinite(q))
            reference.v[self.joints] = 0.0

    def reasons(self) -> list[str]:
        """Return a line for each stopped group."""
        return [f"group {group} stopped: {text}" for group, text in self.stopped.items()]

    def clear(self) -> None:
        """Reset all groups, without power."""
        self.stopped.clear()
        self._since.clear()
        self._buses.held.clear()
        self.joints[:] = False


def device_findings(driver: Any, follows: bool) -> list[WatchFinding]:
    """Return faults of drives and encoders, and lost power.

    Args:
        follows: the drives should have power.
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
