"""Serving engines under load as others measured them, replayed by the simulator as each was run."""
