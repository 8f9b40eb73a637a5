"""Dancing: upper body and steps follow a recorded or live person."""
