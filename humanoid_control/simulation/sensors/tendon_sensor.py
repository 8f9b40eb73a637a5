"""Tendon sensors of a simulated robot: elastic wires, encoder errors, faults."""

from __future__ import annotations

import numpy as np

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.simulation.drives.tendon_plant import EncoderErrors, TendonEncoders, TendonStates
from humanoid_control.simulation.sensors.sensor_model import Imperfection, Sensor

FAULTS = {
    "slack": "wire hangs loose: no tension, and the encoder reads more than the path is long",
    "broken": "wire is reeled in: no tension, and the encoder reads less than the path is long",
    "stuck": "encoder repeats its first length",
    "missing": "nothing is measured",
}
WINCH_FAULTS = {
    "slack": "wire of this length [m] is let out, as the encoder sees",
    "snapped": "wire is torn",
    "broken": "wire is torn",
    "slipped": "wire of this length [m] slips off the drum, and the encoder does not see it",
    "deaf": "tension sensor gives zero, to the drive too",
    "stuck": "encoder repeats its first length, but not to the drive",
    "missing": "nothing is measured, except by the drive",
}
SIZES = {"slack": 0.03, "slipped": 0.02}  # [m] default sizes of faults
LOOSE, REELED = 0.03, 0.05  # [m] excess reading of a slack tendon, deficit of a broken one
WINDING = 0.5  # [m/s] winding speed after a fault, since encoders do not jump


def parse_faults(text: str, names: tuple[str, ...]) -> dict[str, str]:
    """Parse faults such as 'l_biceps=slack,r_triceps=stuck'.

    Raises:
        UnknownNameError: if a tendon or fault is unknown.
        ConfigError: if the syntax is wrong.
    """
    out = {}
    for part in (p.strip() for p in text.split(",")):
        name, equals, fault = (t.strip() for t in part.partition("="))
        if not part:
            continue
        if not equals:
            raise ConfigError(f"tendon_faults must be tendon=fault, for example {names[0]}=slack, got '{part}'")
        for what, value, known in (("tendon", name, names), ("fault of a tendon", fault, tuple(FAULTS))):
            if value not in known:
                raise UnknownNameError(what, value, known)
        out[name] = fault
    return out


def parse_winch_faults(text: str, names: tuple[str, ...]) -> dict[str, tuple[str, float]]:
    """Parse faults such as 'l_biceps=snapped,r_triceps=slipped=0.02' to tendon -> (one of WINCH_FAULTS, size [m]).

    Raises:
        UnknownNameError: if a tendon or fault is unknown.
        ConfigError: if the syntax or a size is wrong.
    """
    out = {}
    for part in (p.strip() for p in text.split(",")):
        if not part:
            continue
        name, _, rest = (t.strip() for t in part.partition("="))
        fault, _, size = (t.strip() for t in rest.partition("="))
        if not fault:
            raise ConfigError(f"tendon_faults must be tendon=fault, for example {names[0]}=snapped, got '{part}'")
        for what, value, known in (("tendon", name, names), ("fault of a tendon", fault, tuple(WINCH_FAULTS))):
            if value not in known:
                raise UnknownNameError(what, value, known)
        if size and fault not in SIZES:
            raise ConfigError(f"tendon_faults: '{fault}' has no size, got '{part}'")
        try:
            length = float(size or SIZES.get(fault, 0.0))
        except ValueError:
            length = np.nan
        if not 0 <= length <= 0.2:
            raise ConfigError(f"tendon_faults: the size in '{part}' must be 0..0.2 m")
        out[name] = (fault, length)
    return out


class TendonSensor:
    """Tendon sensor; a wire is shorter than its path by its stretch, l = path - t / k.

    Attributes:
        faults: tendon -> one of FAULTS; may change at any time.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        wrong: Imperfection,
        seed: int = 0,
        stiffness: float = 0.0,
        drift: float = 0.0,
        spikes: float = 0.0,
        period: float = 0.004,
    ) -> None:
        """Create the sensor.

        Args:
            wrong: errors of 'length' [m] and 'tension' [N]; delay and dropout of 'tendon_states'.
            stiffness: k of every wire [N/m]; 0: rigid.
            drift: standard deviation in a second [m].
            spikes: share of lengths, 0..1.
            period: between measurements [s].

        Raises:
            ConfigError: if a number is out of range.
        """
        if not (0 <= stiffness < np.inf and 0 < period < np.inf):
            raise ConfigError(
                f"tendon sensor: stiffness must be at least 0 and period above 0, got {stiffness} N/m and {period} s"
            )
        self.names = names
        self.faults: dict[str, str] = {}
        self._stiffness, self._seed, self._wound = stiffness, seed, WINDING * period
        self._errors = EncoderErrors(drift=drift * float(np.sqrt(period)), spikes=spikes)
        self._sensor = Sensor("tendon_states", (len(names),) * 2, wrong, seed)
        self.reset()

    def reset(self) -> None:
        """Restart with the same random numbers; faults stay, fully developed."""
        self._encoders = TendonEncoders(len(self.names), self._errors, self._seed)
        self._sensor.reset()
        self._held: dict[str, float] = {}
        self._started = False

    def read(self, time: float, states: TendonStates) -> TendonStates | None:
        """Return measured tendons without missing ones; None if the sample is lost."""
        lengths, tensions = states.lengths.copy(), states.tensions.copy()
        for name, fault in self.faults.items():
            if fault in ("slack", "broken"):
                tensions[self.names.index(name)] = 0.0
        if self._stiffness:
            lengths -= tensions / self._stiffness
        more = self._unwound() - self._encoders.slack
        self._encoders.slack += np.clip(more, -self._wound, self._wound) if self._started else more
        self._started = True
        read = self._sensor.read(time, self._encoders.measure(lengths), tensions)
        if read is None:
            return None
        lengths, tensions = (np.array(values) for values in read)
        self._hold(lengths)
        keep = [k for k, name in enumerate(self.names) if self.faults.get(name) != "missing"]
        rates = None if states.rates is None else states.rates[keep]
        return TendonStates(tuple(self.names[k] for k in keep), lengths[keep], tensions[keep], rates)

    def _unwound(self) -> np.ndarray:
        more = {"slack": LOOSE, "broken": -REELED}
        return np.array([more.get(self.faults.get(name, ""), 0.0) for name in self.names])

    def _hold(self, lengths: np.ndarray) -> None:
        stuck = [name for name, fault in self.faults.items() if fault == "stuck"]
        self._held = {name: self._held.get(name, lengths[self.names.index(name)]) for name in stuck}
        for name, value in self._held.items():
            lengths[self.names.index(name)] = value
