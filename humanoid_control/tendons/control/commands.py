"""Commands of winches and what their drives measure: arrays in the order of the robot's tendons.

Signs: the moment arms are G = dl/dq, tendons of tension T give the joint torques -G^T T, and a winch that winds at the
speed w takes in wire, so that the wire out of it changes by -w. A tendon of a stiff wire that follows its path winds at
-G v.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

OFF, HYBRID, TENSION, LENGTH, HOLD, PAY_OUT = range(6)
KIND_NAMES = ("off", "hybrid", "tension", "length", "hold", "pay_out")


class WinchCommand(NamedTuple):
    """Commands of M winches.

    Attributes:
        kind: (M,) int64. OFF: no current. HYBRID: winds at `speed` and is led to `tension` by an admittance. TENSION:
            holds `tension` about the forward `speed`. LENGTH: servoes the wire to `length` with `tension` forward.
            HOLD: servoes the wire to where it is when this kind is first commanded. PAY_OUT: lets `tension` fall to
            that commanded, within the speed limit.
        speed: (M,) winding speed w_c [m/s], positive taking in.
        tension: (M,) f [N].
        length: (M,) wire out of the winch, unstretched, x_ref [m].
    """

    kind: np.ndarray
    speed: np.ndarray
    tension: np.ndarray
    length: np.ndarray


class WinchStates(NamedTuple):
    """What the drives of M winches measure.

    Attributes:
        wire: (M,) wire out of the winch, unstretched, x [m]; an encoder on the drum sees it. The path is longer by the
            stretch T/k.
        speed: (M,) winding speed w = -dx/dt [m/s].
        tension: (M,) T [N] at the sensor.
    """

    wire: np.ndarray
    speed: np.ndarray
    tension: np.ndarray


def no_command(tendons: int) -> WinchCommand:
    """Return commands of M winches that are off, to be filled.

    Args:
        tendons: M.
    """
    return WinchCommand(np.zeros(tendons, dtype=np.int64), *np.zeros((3, tendons)))


def no_states(tendons: int) -> WinchStates:
    """Return states of M winches at rest with no wire and no tension, to be filled.

    Args:
        tendons: M.
    """
    return WinchStates(*np.zeros((3, tendons)))
