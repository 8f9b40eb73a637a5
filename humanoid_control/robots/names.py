"""Names of the robots in the package, without loading one."""

from __future__ import annotations

CATALOGUE = ("armar3", "hrp2", "suralp", "wabian2", "we4rii", "lola")  # robots that exist
MODELS = ("recommended",)  # study models, never built
REFERENCES = ("kengoro_upper",)  # reference models of a mechanism, never built; not made to imitate
KNOWN = CATALOGUE + MODELS + REFERENCES
HUMANOIDS = "humanoids"  # a set too: models found on this machine
SETS = {"all": CATALOGUE, "dube2012": ("armar3", "hrp2", "suralp", "wabian2", "we4rii", *MODELS)}  # by one name
