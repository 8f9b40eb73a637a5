"""Settings of the controller of tendon-driven joints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError, UnknownNameError

LAWS = {
    "hybrid": "winches wind as the joints should move, and are led to the tensions of the distribution",
    "stiffness": "tensions of the distribution, and more where a tendon is longer than it should be; needs no angles",
    "torque": "computed torque of the joints, distributed over the tensions",
    "length": "winches are servoed to the lengths of the references, stretch included; needs no angles",
}
NEEDS_ANGLES = ("hybrid", "torque")
WEIGHTS = ("even", "activation", "heat")
STOPS = ("hold", "pay_out", "off")
RANGES = {  # least and greatest value
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
        kappa: joint speed for an error of the angle, of law hybrid [1/s].
        k_i: share of the integral of that error [1/s].
        admittance: winding speed for an error of the tension, in the drive, of law hybrid [m/s/N].
        stiffness: of law stiffness [N/m]: tension for a tendon that is longer than it should be.
        load_cutoff: of the filter that takes the load from the tensions [Hz]; 0: payloads and pushes are not seen.
        load_most: largest torque by which that load may differ from the model's [N m].
        least: added to each tendon's least tension [N]. co_contraction: bias above it [N].
        governor: torque missed by a joint beyond which references are held [N m]; 0: they never are.
        weights: of the tensions in the distribution: 'even', 'activation' (by the greatest tension) or 'heat'.
        stop: how winches stop: 'hold' (lengths servoed), 'pay_out' or 'off'.
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
