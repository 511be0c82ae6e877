"""The choice of a fleet: its program, what is tried by simulation, bounds, what else there is."""
