"""Browser editor of a robot's swept-sphere volumes."""
