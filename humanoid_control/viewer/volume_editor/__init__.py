"""Browser editor of swept-sphere volumes of a robot."""
