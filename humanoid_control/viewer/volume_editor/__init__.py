"""The segment editor: a robot's swept-sphere volumes drawn, changed and saved in a browser page (section 4.12)."""
