"""Commands for a robot that is put to use: driven through its hardware, and tried by faults."""
