"""Winches in MuJoCo: its bodies, spatial tendons and integrator with our motors, wires and drives.

Wire pulls are explicit, so steps are short.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pinocchio as pin

from humanoid_control.robots import Robot
from humanoid_control.simulation.drives.position_control import DriveGains
from humanoid_control.simulation.drives.winches import explicit_tensions_at
from humanoid_control.simulation.settings import WorldSettings
from humanoid_control.simulation.worlds.mujoco_world import MujocoWorld, mjcf_text
from humanoid_control.simulation.worlds.winch_world import WinchedRobot, winch_gains
from humanoid_control.tendons.control.winch_loop import LONGEST
from humanoid_control.tendons.tendon import SPHERE, Pulley, TendonSet, ViaPoint, Wrap

SHORT = 2.5e-4  # [s] longest stable step with explicit wire pulls
LONG = 2.0  # [m] of a wrapping cylinder, endless in our files


def tendon_mjcf(text: str, robot: Robot, tendons: TendonSet) -> str:
    """Add spatial tendons, each with one actuator, to a robot's MJCF; wrapping solids become geoms without contact."""
    top = ET.fromstring(text)
    world = top.find("worldbody")
    bodies = {b.get("name", ""): b for b in top.iter("body")} | {robot.model.names[0]: world}
    spatial, actuators = ET.SubElement(top, "tendon"), top.find("actuator")
    assert actuators is not None
    for tendon in tendons:
        path = ET.SubElement(spatial, "spatial", name=tendon.name)
        for k, step in enumerate(tendon.path):
            if isinstance(step, Pulley):
                ET.SubElement(path, "pulley", divisor=repr(step.divisor))
                continue
            frame = robot.model.frames[robot.model.getFrameId(step.link, pin.FrameType.BODY)]
            body = bodies[robot.model.names[frame.parentJoint]]
            assert body is not None
            name = f"{tendon.name} {k}"
            if isinstance(step, ViaPoint):
                ET.SubElement(body, "site", name=name, pos=_point(frame, step.xyz))
                ET.SubElement(path, "site", site=name)
            else:
                _add_solid(body, path, frame, step, name)
        ET.SubElement(actuators, "motor", name=f"pull {tendon.name}", tendon=tendon.name, gear="-1")
    return ET.tostring(top, encoding="unicode")


def _add_solid(body: ET.Element, path: ET.Element, frame: pin.Frame, solid: Wrap, name: str) -> None:
    geom = ET.SubElement(body, "geom", name=name, type=solid.kind, pos=_point(frame, solid.centre))
    size = repr(solid.radius) if solid.kind == SPHERE else f"{solid.radius!r} {LONG / 2!r}"
    geom.attrib.update(size=size, contype="0", conaffinity="0", mass="0")
    if solid.kind != SPHERE:
        axis = frame.placement.rotation @ np.array(solid.axis)
        geom.set("zaxis", " ".join(repr(float(x)) for x in axis))
    step = ET.SubElement(path, "geom", geom=name)
    if solid.side is not None:
        ET.SubElement(body, "site", name=f"{name} side", pos=_point(frame, solid.side))
        step.set("sidesite", f"{name} side")


def _point(frame: pin.Frame, xyz: tuple[float, float, float]) -> str:
    return " ".join(repr(float(x)) for x in frame.placement.act(np.array(xyz)))


class MujocoWinchWorld(WinchedRobot, MujocoWorld):
    """Robot in MuJoCo moved by winches; see `engine.Engine` and `WinchedRobot`."""

    def __init__(
        self,
        robot: Robot,
        settings: WorldSettings | None = None,
        gains: DriveGains | None = None,
        tendons: TendonSet | None = None,
    ) -> None:
        """Build the world; see `WinchWorld`."""
        self._routed = tendons
        super().__init__(robot, settings or WorldSettings(), gains or winch_gains(robot))

    def _mjcf(self) -> str:
        """Return the model with tendons and a step short enough for their wires."""
        self._add_winches(self._routed)
        self._substeps = max(1, int(np.ceil(self.settings.step / SHORT - 1e-9)))
        self._loop_every = max(1, int(LONGEST / (self.settings.step / self._substeps)))
        self._since_loop = 0
        settings = replace(self.settings, step=self.settings.step / self._substeps)
        routed = self.winches.plant.geometry.tendons
        self._pull = np.zeros(len(self.winches.names))
        return tendon_mjcf(mjcf_text(self.robot, settings, self.gains), self.robot, routed)

    def _place(self) -> None:
        super()._place()
        self._since_loop = 0
        self.put_winches(self.joints)

    def _set_forces(self, h: float) -> None:
        mj, m, d, r = self.mujoco, self.mj_model, self.mj_data, self.winches.record
        mj.mj_fwdPosition(m, d)
        mj.mj_fwdVelocity(m, d)
        r.length[:] = r.zero + r.factor * (d.ten_length - r.zero)
        r.rate[:] = r.factor * d.ten_velocity
        run = self._loop_every if self._since_loop == 0 else 0
        explicit_tensions_at(self._packed_winches.table, h, run, self._pull)
        self._since_loop = (self._since_loop + 1) % self._loop_every
        d.ctrl[self.robot.n :] = r.factor * self._pull
