"""The transport as the controller of the vendor's own simulator and its G1, where they are on this machine."""

import time

import numpy as np
import pytest

pytest.importorskip("cyclonedds", reason="needs cyclonedds, the DDS binding of Unitree's robots")

from humanoid_control.hardware.transport import Flag
from humanoid_control.hardware.unitree.models import G1
from test.hardware.unitree.conftest import Drive, row

pytestmark = pytest.mark.drives

NAMES = [m.name for m in G1.motors]
PERIOD = 0.004  # [s] of a cycle
ASIDE = np.array([0.2 * (n == "left_shoulder_roll") - 0.2 * (n == "right_shoulder_roll") for n in NAMES])
AMPLITUDE = {"shoulder_pitch": 0.4, "elbow": 0.4, "wrist_roll": 0.3, "knee": 0.3, "hip_pitch": -0.2}
SIZE = np.array([next((a for n, a in AMPLITUDE.items() if m.endswith(n)), 0.0) for m in NAMES])
REST = np.zeros(len(NAMES))


def motion(t):
    """Positions and velocities (29,) of a small motion of arms and legs, from rest and back in four seconds."""
    w = np.pi / 2  # [rad/s]
    return ASIDE + SIZE * (1 - np.cos(w * t)) / 2, SIZE * w * np.sin(w * t) / 2


def cycles(d, seconds, each=None):
    """Cycles; the largest difference (29,) between command and measurement."""
    begin = due = time.monotonic()
    worst = REST.copy()
    while (t := time.monotonic() - begin) < seconds:
        due = max(due + PERIOD, time.monotonic())
        d.bus.read(d.state, due)
        if each is not None:
            d.command.q[:], d.command.v[:] = each(t)
        worst = np.maximum(worst, np.abs(d.command.q - d.state.q))
        d.bus.write(d.command)
        time.sleep(max(0.0, due - time.monotonic()))
    return worst


def test_a_g1_of_the_vendor_holds_and_moves_with_the_vendors_gains(vendor_simulator):
    """Enable where it hangs, go to zero, hold, move: within 0.2 rad of the command, and off again."""
    d = Drive(row("g1", simulated=True))
    d.bus.open()
    try:
        cycles(d, 0.5)
        assert d.state.have(Flag.FRESH).any() or np.isfinite(d.state.q).all()
        d.command.q[:] = begin = d.state.q.copy()
        d.enable()
        assert d.bus.figures()["readers"] == 1 and d.bus.trouble() == ""
        cycles(d, 1.0)
        way = cycles(d, 4.0, lambda t: (begin + (ASIDE - begin) * t / 4, (ASIDE - begin) / 4))
        held = cycles(d, 1.0, lambda t: (ASIDE, REST))
        moved = cycles(d, 4.0, motion)
        stamp, imu = d.bus.imu()
        assert abs(np.linalg.norm(imu.orientation) - 1) < 1e-3 and time.monotonic() - stamp < 0.5
        print(f"following error [rad]: way {way.max():.3f}, hold {held.max():.3f}, motion {moved.max():.3f}")
        assert max(way.max(), held.max(), moved.max()) < 0.2
        knee = NAMES.index("left_knee")
        cycles(d, 1.5, lambda t: motion(2 * min(t, 1.0)))
        assert d.state.q[knee] > 0.15, "it has moved"
        assert d.until(lambda: d.bus.power(False))
    finally:
        d.bus.close()
