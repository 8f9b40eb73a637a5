"""Settings of the tendon estimator."""

from __future__ import annotations

from dataclasses import dataclass
from math import radians

from humanoid_control.errors import ConfigError, UnknownNameError

OBSERVATIONS = {
    "absolute": "calibrated lengths, z = f(theta), eq. (2)",
    "literal": "relative as printed, eqs (11), (12): dead reckoning, for comparison only",
    "r1": "relative by the differentiated mapping: dz = G(theta) dtheta, the state in G",
    "r2": "relative against the estimate some steps ago, carried along: dz = f(theta) - f(theta before)",
    "r3": "relative against the estimate at power-on, carried along; hurt by an encoder that slips",
}


@dataclass(frozen=True)
class EstimatorSettings:
    """Settings of each group filter; Kawaharazuka 2018 specifies no values.

    Attributes:
        observation: one of `OBSERVATIONS`.
        length_noise: deviation of a length, with model error [m].
        step_noise: process noise: deviation of own angles added in a step [rad]; it depends on the rate.
        borrowed_noise: the same of borrowed angles [rad].
        motion_noise: process noise of a motion, relative to the predicted motion.
        fastest: maximum angle change per step [rad].
        start_noise: initial deviation of own angles [rad].
        borrowed_start: initial deviation of borrowed angles [rad].
        predict: 'tendons': eq. (7); 'hold': keep the angles, with more noise for larger length changes; 'auto': 'hold'
            for absolute lengths, else 'tendons'.
        cutoff: relative cutoff of singular values in eq. (7).
        every: steps between the instants of r2.
        limits: 'soft' (pull back), 'hard' (clip) or 'off'.
        limit_noise: deviation of soft limits [rad].
        share: borrow angles, eqs (7)-(10); False: conventional filter.
        gate: innovation that excludes a tendon [standard deviations]; 0: no exclusion, one update per step, no search.
        slack_tension: minimum tension of a used tendon [N].
        largest_step: maximum joint motion between samples, plus 0.1 rad for noise [rad]; larger ones are dropped until
            three agree. 0, or `gate` 0: no check.
    """

    observation: str = "r2"
    length_noise: float = 5e-4
    step_noise: float = radians(0.2)
    borrowed_noise: float = radians(0.2)
    motion_noise: float = 0.5
    fastest: float = radians(5.0)
    start_noise: float = radians(30.0)
    borrowed_start: float = radians(5.0)
    predict: str = "auto"
    cutoff: float = 1e-3
    every: int = 10
    limits: str = "soft"
    limit_noise: float = radians(2.0)
    share: bool = True
    gate: float = 6.0
    slack_tension: float = 0.0
    largest_step: float = 0.5

    def __post_init__(self) -> None:
        choices = (("observation", tuple(OBSERVATIONS)), ("predict", ("auto", "tendons", "hold")))
        for what, known in (*choices, ("limits", ("soft", "hard", "off"))):
            if getattr(self, what) not in known:
                raise UnknownNameError(f"{what} of a tendon filter", getattr(self, what), known)
        positive = ("length_noise", "step_noise", "fastest", "start_noise", "limit_noise", "every")
        for what in positive:
            if not getattr(self, what) > 0:
                raise ConfigError(f"tendon filter: {what} must be above 0, got {getattr(self, what)}")
        noises = ("borrowed_noise", "motion_noise", "borrowed_start", "cutoff")
        for what in (*noises, "gate", "slack_tension", "largest_step"):
            if not getattr(self, what) >= 0:
                raise ConfigError(f"tendon filter: {what} must not be negative, got {getattr(self, what)}")

    @property
    def by_tendons(self) -> bool:
        """True if length changes move the angles, eq. (7)."""
        return self.predict == "tendons" or (self.predict == "auto" and self.observation != "absolute")
