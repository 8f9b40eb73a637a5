"""Power states of a robot and their transitions.

Only `Event.ENABLE` in MONITOR switches power on: no restart, reconnected bus, vanished fault or released emergency stop
does.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

MOVING_SPEED = 0.05  # [rad/s] above which a joint must not get power
LOST_SAMPLES = 0.01  # share of lost samples above which power is refused


class PowerState(enum.Enum):
    """Power state, common to all drives."""

    OFFLINE = "buses closed"
    MONITOR = "measured, no power"
    ENABLING = "drives go through their enable sequence; the reference is the measured position"
    HOLD = "powered, the reference is constant"
    BLEND = "moves from the held posture to the commands"
    RUN = "commands are followed inside the limits"
    STOPPING = "every joint comes to rest at its acceleration limit"
    FAULT = "stopped by the drives; latched"
    ESTOP = "stopped by the drives, then without power; latched"


class Event(enum.Enum):
    """Events that may change the power state."""

    CONFIGURE = "buses are open, devices and limits are those of the file"
    CLOSE = "buses are closed"
    ENABLE = "power was requested, and nothing prevents it"
    ENABLED = "all drives report power"
    COMMANDED = "commands have arrived for a while"
    BLENDED = "the blend is complete"
    STEPPED = "commands jumped away from the reference"
    STOP = "commands ceased, a cycle was late, or a request to stop or to switch off; HOLD or power off follows"
    RESTED = "all joints are at rest"
    UNPOWERED = "all drives report that they are off"
    FAIL = "a fault of a joint, a bus or this computer"
    ESTOP = "a source of the emergency stop is active"
    CLEAR = "faults without a remaining cause were cleared, and no source of the emergency stop is active"


POWERED = frozenset({PowerState.ENABLING, PowerState.HOLD, PowerState.BLEND, PowerState.RUN, PowerState.STOPPING})
"""States in which this computer may keep the drives powered."""

MOVING = frozenset({PowerState.BLEND, PowerState.RUN})
"""States in which commands move the robot."""

FOLLOWING = frozenset({PowerState.HOLD, *MOVING})
"""States in which commands are followed, now or once they are steady."""

_S, _E = PowerState, Event
TRANSITIONS: dict[tuple[PowerState, Event], PowerState] = {
    (_S.OFFLINE, _E.CONFIGURE): _S.MONITOR,
    (_S.MONITOR, _E.CLOSE): _S.OFFLINE,
    (_S.MONITOR, _E.ENABLE): _S.ENABLING,
    (_S.ENABLING, _E.ENABLED): _S.HOLD,
    (_S.ENABLING, _E.STOP): _S.STOPPING,
    (_S.HOLD, _E.COMMANDED): _S.BLEND,
    (_S.HOLD, _E.STOP): _S.STOPPING,
    (_S.BLEND, _E.BLENDED): _S.RUN,
    (_S.BLEND, _E.STEPPED): _S.BLEND,
    (_S.BLEND, _E.STOP): _S.STOPPING,
    (_S.RUN, _E.STEPPED): _S.BLEND,
    (_S.RUN, _E.STOP): _S.STOPPING,
    (_S.STOPPING, _E.RESTED): _S.HOLD,
    (_S.STOPPING, _E.UNPOWERED): _S.MONITOR,
    (_S.FAULT, _E.CLEAR): _S.MONITOR,
    (_S.FAULT, _E.CLOSE): _S.OFFLINE,
    (_S.ESTOP, _E.CLEAR): _S.MONITOR,
    (_S.ESTOP, _E.CLOSE): _S.OFFLINE,
    **{(s, _E.FAIL): _S.FAULT for s in PowerState if s not in (_S.OFFLINE, _S.ESTOP, _S.FAULT)},
    **{(s, _E.ESTOP): _S.ESTOP for s in PowerState if s not in (_S.OFFLINE, _S.ESTOP)},
}

REQUESTS: dict[str, tuple[str, bool | None]] = {
    "enable": ("enable", True),
    "disable": ("enable", False),
    "stop": ("stop", None),
    "estop": ("emergency_stop", True),
    "release": ("emergency_stop", False),
    "clear": ("clear_faults", None),
    "home": ("home", None),
    "zero": ("set_zero", None),
}
"""User request -> service, and data of the request or None."""

Listener = Callable[[PowerState, PowerState], None]


class PowerMachine:
    """Power state and its reason.

    Attributes:
        since: monotonic time of the last transition [s].
    """

    def __init__(self, listener: Listener | None = None) -> None:
        """Start in OFFLINE; `listener` gets old and new state."""
        self.state, self.reason, self.since = PowerState.OFFLINE, "", 0.0
        self._listener = listener

    def handle(self, event: Event, now: float, reason: str = "") -> bool:
        """Make the transition of an event; False if there is none.

        Args:
            reason: kept until the next transition.
        """
        after = TRANSITIONS.get((self.state, event))
        if after is None:
            return False
        before, self.state, self.reason, self.since = self.state, after, reason, now
        if self._listener is not None:
            self._listener(before, after)
        return True

    @property
    def powered(self) -> bool:
        """True in states with power."""
        return self.state in POWERED

    def __str__(self) -> str:
        return f"{self.state.name}: {self.reason}" if self.reason else self.state.name


def refusals_of(driver: Any) -> list[str]:
    """Return reasons against power of a `Driver`."""
    # imported here: showing the power state needs no compiler
    from humanoid_control.hardware.calibration import missing_calibration
    from humanoid_control.hardware.supervision import FAULT

    out = []
    if driver.machine.state is not PowerState.MONITOR:
        out.append(f"state is {driver.machine}")
    out += driver.estop.values()
    if driver.hardware.estop_heartbeat and driver.last_heartbeat == -np.inf:
        out.append(f"no heartbeat on {driver.hardware.estop_topic}")
    if text := driver.buses.trouble():
        out.append(text)
    out += [f.text for f in driver.findings if f.level == FAULT] + driver.groups.reasons()
    out += missing_calibration(driver.zeros, driver.buses.serials(), driver.hardware.needs_calibration)
    names, q, limits = driver.hardware.names, driver.joints.q, driver.supervision.limits
    beyond, unhomed = np.maximum(limits.lower - q, q - limits.upper), driver.encoders.missing()
    for k, name in enumerate(names):
        if not np.isfinite(q[k]):
            out.append(f"{name} not measured")
        elif beyond[k] > limits.margin and name not in unhomed:
            out.append(f"{name} {beyond[k]:.2f} rad outside its range")
        if abs(driver.joints.v[k]) > MOVING_SPEED:
            out.append(f"{name} moves at {abs(driver.joints.v[k]):.2f} rad/s")
    if driver.machine.state is PowerState.MONITOR and driver.joints.enabled.any():
        others = [n for n, on in zip(names, driver.joints.enabled, strict=True) if on]
        out.append(f"drives were powered by another program: {', '.join(others[:3])}")
    if (worst := float(driver.buses.missed.max(initial=0.0))) > LOST_SAMPLES:
        name = driver.buses.names[int(driver.buses.missed.argmax())]
        out.append(f"{100 * worst:.1f} % of the samples of {name} are lost")
    guarded = driver.guard.buses if driver.guard is not None and driver.guard.alive() else ()
    if lonely := [name for name in driver.to_guard() if name not in guarded]:
        out.append(f"no guardian for bus {', '.join(lonely)}")
    return out


def passed_over(driver: Any) -> str:
    """Return why a `Driver` discards commands now; empty: it does not."""
    if driver.machine.state not in FOLLOWING:
        return f"state is {driver.machine}"
    if driver.stopped:
        return "stop was requested; enable resumes"
    if driver.encoders.homing is not None:
        return "drives are homing"
    return "not homed: commands are ignored" if driver.encoders.waits else ""
