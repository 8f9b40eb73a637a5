"""The worlds behind the interface `engine.Engine`: ideal drives, real drives, MuJoCo."""
