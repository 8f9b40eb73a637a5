"""C9: an arm of another maker, moved by MuJoCo with winches on its own spatial tendons instead of its muscles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evidence.studies.tendon_control.closed_loop import LoopSettings, LoopTrace, minimum_jerk
from humanoid_control.compiled.packed import Packed
from humanoid_control.errors import ConfigError, EnvironmentProblem
from humanoid_control.simulation.drives.winches import WinchTable, explicit_tensions_at
from humanoid_control.simulation.worlds.mujoco_winches import SHORT
from humanoid_control.tendons.control.commands import HOLD, WinchCommand, WinchStates
from humanoid_control.tendons.control.laws import TendonController
from humanoid_control.tendons.control.winch_loop import WinchLoop
from humanoid_control.tendons.files.mjcf import read_mjcf
from humanoid_control.tendons.tendon import TendonSet
from humanoid_control.tendons.unit import MuscleUnit

LEAST, MOST = 4.0, 500.0  # [N] of tendons whose file has muscles, not tensions
LOOP_EVERY = 4  # steps between two runs of the drives' loops


def arm_files(folder: Path) -> list[Path]:
    """MuJoCo models of elbows in a folder.

    Raises:
        ConfigError: there is none.
    """
    if not folder.is_dir():
        raise ConfigError(f"the folder {folder} does not exist: give --models")
    found = sorted(folder.rglob("myoelbow_2dof6muscles*.xml"))
    if not found:
        raise ConfigError(f"no myoelbow_2dof6muscles*.xml in {folder}")
    return found[:1]


class MuscleArm:
    """The arm, its winches, and a controller that knows the file.

    Attributes:
        geometry: of its tendons by this package. loop: of the drives. model, data: of MuJoCo.
    """

    def __init__(self, path: Path, settings: LoopSettings, seed: int = 0) -> None:
        """Read the file twice: for the controller, and as MuJoCo moves it.

        Raises:
            RobotError: no model with tendons. EnvironmentProblem: MuJoCo is not installed.
        """
        read, self.settings, self.rng = read_mjcf(path), settings, np.random.default_rng(seed)
        limited = tuple(replace(t, min_tension=LEAST, max_tension=MOST) for t in read.tendons)
        tendons = TendonSet(limited, where=str(path), couplings=read.tendons.couplings)
        self.geometry = replace(read, tendons=tendons).geometry()
        names, m = self.geometry.tendon_names, len(limited)
        units = [MuscleUnit()] * m
        self.loop = WinchLoop(names, units, np.full(m, LEAST), np.full(m, MOST))
        self._mujoco(path, names)
        law = replace(settings.controller, law=settings.law)
        self.controller = TendonController(read.model, self.geometry, units, law)
        none, flags = [np.zeros(m) for _ in range(12)], [np.zeros(m, dtype=np.int64) for _ in range(3)]
        self.record = WinchTable(
            loop=self.loop.record, unit=self.loop.record.unit, path_friction=np.zeros(1),
            wire=none[0], speed=none[1], slipped=none[2], tension=none[3], sensed=none[4],
            snapped=flags[0], deaf=flags[1], length=none[5], rate=none[6], arms=np.zeros((m, 1)),
            factor=np.ones(m), zero=none[7], rest=none[8], slope=none[9], friction=none[10],
            taut=flags[2], first=np.zeros(m + 1, dtype=np.int64), crossed=np.zeros(0, dtype=np.int64),
        )  # fmt: skip
        self._packed, self._pull = Packed(self.record), np.zeros(m)

    def _mujoco(self, path: Path, names: tuple[str, ...]) -> None:
        """MuJoCo's model with one motor a tendon instead of its muscles."""
        try:
            import mujoco
        except ImportError:
            raise EnvironmentProblem("C9 needs MuJoCo: pip install 'humanoid_control[mujoco]'") from None
        self.mj: Any = mujoco
        spec = mujoco.MjSpec.from_file(str(path))
        for kind in ("keys", "sensors", "actuators"):
            for element in list(getattr(spec, kind)):
                spec.delete(element)
        for name in names:
            gear = [-1.0, 0, 0, 0, 0, 0]
            spec.add_actuator(name=f"pull {name}", target=name, trntype=mujoco.mjtTrn.mjTRN_TENDON, gear=gear)
        spec.option.timestep = SHORT
        spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        joints = [self.model.joint(n) for n in self.geometry.joint_names]
        self._q, self._v = np.array([j.qposadr[0] for j in joints]), np.array([j.dofadr[0] for j in joints])
        self._tendon = np.array([self.model.tendon(n).id for n in names])

    @property
    def joints(self) -> np.ndarray:
        """Angles (D,) [rad]."""
        return self.data.qpos[self._q].copy()

    def lengths_error(self) -> float:
        """Largest difference of a path's length between MuJoCo and this package here [m]."""
        self.mj.mj_fwdPosition(self.model, self.data)
        ours = self.geometry.lengths(self.joints) + self.geometry.zero
        return float(np.abs(self.data.ten_length[self._tendon] - ours).max())

    def posture(self) -> np.ndarray:
        """A random posture (D,) within the share of the ranges around their middle [rad]."""
        low, high = self.geometry.limits.T
        return 0.5 * (low + high) + self.settings.share * 0.5 * (high - low) * self.rng.uniform(-1, 1, len(low))

    def start(self) -> None:
        """Put the arm into the middle of its ranges, its wires at the tensions that hold it, and let it settle."""
        r, middle = self.record, self.geometry.limits.mean(axis=1)
        self.mj.mj_resetData(self.model, self.data)
        self.data.qpos[self._q] = middle
        self.mj.mj_forward(self.model, self.data)
        held = self.controller.governor.holdable.margin(middle).tensions.copy()
        r.tension[:], r.speed[:] = held, 0.0
        r.wire[:] = self.data.ten_length[self._tendon] - held / r.unit.stiffness
        self.loop.reset()
        self.loop.begin(held)
        self.loop.record.kind[:] = HOLD
        self._count = 0
        self.step(800)
        self.controller.reset(self.joints, self.states())

    def states(self) -> WinchStates:
        """What the drives measure, with noise."""
        r, s, m = self.record, self.settings, len(self._tendon)
        wire = r.wire + s.length_noise * self.rng.standard_normal(m)
        tension = np.maximum(0.0, self.loop.seen + s.tension_noise * self.rng.standard_normal(m))
        return WinchStates(wire, r.speed.copy(), tension)

    def step(self, steps: int) -> None:
        """Steps of 0.25 ms."""
        r, d = self.record, self.data
        for _ in range(steps):
            self.mj.mj_fwdPosition(self.model, d)
            self.mj.mj_fwdVelocity(self.model, d)
            r.length[:], r.rate[:] = d.ten_length[self._tendon], d.ten_velocity[self._tendon]
            run = LOOP_EVERY if self._count % LOOP_EVERY == 0 else 0
            explicit_tensions_at(self._packed.table, SHORT, run, self._pull)
            self._count += 1
            d.ctrl[:] = self._pull
            self.mj.mj_step(self.model, d)

    def run(self, goal: np.ndarray) -> LoopTrace:
        """Move to a posture (D,) and hold it, by true angles or none."""
        self.start()
        s, begin = self.settings, self.controller.reference.copy()
        rows: list[tuple[float, np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        waiting: list[WinchCommand] = []
        for k in range(round((s.move + s.hold) * s.rate)):
            time, states, angles = k / s.rate, self.states(), self.joints
            reference = minimum_jerk(begin, goal, time / s.move, s.move)
            given = self.controller.step(reference, None if s.angles == "none" else angles, states, 1.0 / s.rate)
            waiting.append(WinchCommand(*(row.copy() for row in given)))
            if len(waiting) > s.late:
                self.loop.command(waiting.pop(0))
            rows.append((time, reference.position, self.joints, angles, self.record.tension.copy()))
            self.step(round(1.0 / s.rate / SHORT))
        columns = [np.array(column) for column in zip(*rows, strict=True)]
        return LoopTrace(columns[0], columns[1], columns[2], columns[3], columns[4], s)
