"""Settings of the tendon controller."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError, UnknownNameError

LAWS = {
    "hybrid": "winches follow the joint references and converge to the tensions of the distribution",
    "stiffness": "tensions of the distribution, raised where a tendon is longer than its reference; needs no angles",
    "torque": "computed torque of the joints, distributed over the tensions",
    "length": "winches are servoed to the lengths of the references, stretch included; needs no angles",
}
NEEDS_ANGLES = ("hybrid", "torque")
WEIGHTS = ("even", "activation", "heat")
STOPS = ("hold", "pay_out", "off")
RANGES = {  # minimum, maximum
    "kappa": (0.0, 40.0),
    "k_i": (0.0, 10.0),
    "admittance": (2e-4, 4e-3),
    "stiffness": (1e3, 2e5),
    "load_cutoff": (0.0, 20.0),
    "load_most": (0.0, 200.0),
    "least": (0.0, 500.0),
    "co_contraction": (0.0, 500.0),
    "governor": (0.0, 100.0),
}


@dataclass(frozen=True)
class TendonControllerSettings:
    """Settings of `TendonController`.

    Attributes:
        law: one of `LAWS`.
        kappa: joint speed per angle error, hybrid [1/s].
        k_i: integral gain, hybrid [1/s].
        admittance: winding speed per tension error, hybrid [m/s/N].
        stiffness: tension per excess length, law stiffness [N/m].
        load_cutoff: filter of the measured load [Hz]; 0: ignored.
        load_most: maximum load torque beyond the model's [N m].
        least: added to the minimum tension of every used tendon, a hard bound [N]; too much costs joint torque.
        co_contraction: preferred tension above the minimum [N], a wish: joint torques and maximum tensions precede it.
        governor: missed torque that holds references [N m]; 0: off.
        weights: 'even', 'activation' (by maximum tension) or 'heat'.
        stop: 'hold' (servo lengths), 'pay_out' or 'off'.
    """

    law: str = "hybrid"
    kappa: float = 8.0
    k_i: float = 1.0
    admittance: float = 1e-3
    stiffness: float = 24000.0
    load_cutoff: float = 5.0
    load_most: float = 10.0
    least: float = 0.0
    co_contraction: float = 0.0
    governor: float = 0.3
    weights: str = "heat"
    stop: str = "hold"

    def __post_init__(self) -> None:
        for what, choices in (("law", tuple(LAWS)), ("weights", WEIGHTS), ("stop", STOPS)):
            if getattr(self, what) not in choices:
                raise UnknownNameError(what, getattr(self, what), choices)
        for what, (low, high) in RANGES.items():
            value = getattr(self, what)
            if not (np.isfinite(value) and low <= value <= high):
                raise ConfigError(f"tendon controller: {what} must be {low:g} to {high:g}, got {value:g}")
