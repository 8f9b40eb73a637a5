"""Angular momentum while walking: the source's methods and ours on the same steps, and its claims about them."""

from humanoid_control.studies.schwienbacher2014.momentum_claims import (
    MAIN,
    T27,
    T27_PRINTED,
    T28,
    T29,
    T30,
    T31,
    Claim,
    Judgement,
    Lab,
    Outcome,
    find_gait,
    lower_by,
)
from humanoid_control.studies.schwienbacher2014.momentum_soundness import (
    OURS,
    T32,
    T32_PRINTED,
    T33,
    T34,
    T35,
    T35_SECOND,
)

CLAIMS: dict[str, Claim] = {
    c.name: c for c in (T27, T27_PRINTED, T28, T29, T30, T31, T32, T32_PRINTED, T33, T34, T35, T35_SECOND, OURS)
}

__all__ = ["CLAIMS", "MAIN", "Claim", "Judgement", "Lab", "Outcome", "find_gait", "lower_by"]
