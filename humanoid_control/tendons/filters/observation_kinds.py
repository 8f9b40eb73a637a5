"""The observations by their names in the settings."""

from __future__ import annotations

from humanoid_control.tendons.filters.filter_settings import FilterSettings
from humanoid_control.tendons.filters.moments import Moments, SincePowerOn
from humanoid_control.tendons.filters.observations import Lengths, Observation, Steps
from humanoid_control.tendons.mappings.mapping import JointMuscleMapping

KINDS: dict[str, type[Observation]] = {
    "absolute": Lengths,
    "literal": Steps,
    "r1": Steps,
    "r2": Moments,
    "r3": SincePowerOn,
}


def observation_of(mapping: JointMuscleMapping, settings: FilterSettings) -> Observation:
    """The observation that the settings name."""
    return KINDS[settings.observation](mapping, settings)
