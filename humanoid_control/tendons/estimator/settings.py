"""Settings of the estimator of tendon-driven joints: observation, noise, limits, gate."""

from __future__ import annotations

from dataclasses import dataclass
from math import radians

from humanoid_control.errors import ConfigError, UnknownNameError

OBSERVATIONS = {
    "absolute": "calibrated lengths, z = f(theta), eq. (2)",
    "literal": "relative as printed, eqs (11), (12): dead reckoning, kept to show it",
    "r1": "relative by the differentiated mapping: dz = G(theta) dtheta, the state in G",
    "r2": "relative against the estimate some steps ago, carried along: dz = f(theta) - f(theta before)",
    "r3": "relative against the estimate at power-on, carried along; hurt by an encoder that slips",
}


@dataclass(frozen=True)
class EstimatorSettings:
    """Settings of every group's filter; Kawaharazuka 2018 gives none of these numbers.

    Attributes:
        observation: one of `OBSERVATIONS`; the equations are those of Kawaharazuka 2018.
        length_noise: standard deviation of a measured length, model error included [m].
        step_noise, borrowed_noise: what an owned and a borrowed angle may stray in one step [rad].
        motion_noise: what the prediction may be wrong by, as a share of the motion that the lengths admit.
        fastest: an angle moves no more than this in one step [rad].
        start_noise, borrowed_start: uncertainty of the first estimate [rad].
        predict: "tendons" by eq. (7); "hold": the angles stay and become less sure the more the lengths change; "auto":
            hold with absolute lengths, which take the noise of the changes in once less, else by the tendons.
        cutoff: singular values of the Jacobian below this share of the largest count as zero in eq. (7).
        every: steps between the two estimates that r2 compares.
        limits: "soft" pulls an estimate beyond a joint limit back, "hard" clips it, "off" lets it be.
        limit_noise: how soft [rad].
        share: estimate own angles only and borrow the rest, eqs (7)-(10); False is the conventional filter.
        gate: innovation at which a tendon is left out [standard deviations]; 0 leaves none out, updates once as the
            printed filter does, and never searches.
        slack_tension: a tendon with less tension is left out, where tensions are known [N].
        largest_step: a joint moves no farther than this, and 0.1 rad for noise, from one sample to the next [rad]. A
            sample that implies more is left out, until three in a row agree; 0: none is, as with a `gate` of 0.
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
                raise ConfigError(f"tendon filter: {what} is {getattr(self, what)}, must be above 0")
        noises = ("borrowed_noise", "motion_noise", "borrowed_start", "cutoff")
        for what in (*noises, "gate", "slack_tension", "largest_step"):
            if not getattr(self, what) >= 0:
                raise ConfigError(f"tendon filter: {what} is {getattr(self, what)}, must not be negative")

    @property
    def by_tendons(self) -> bool:
        """True where the changes of the lengths move the angles, eq. (7)."""
        return self.predict == "tendons" or (self.predict == "auto" and self.observation != "absolute")
