"""Settings of all tests: no deadline for one example, because machines are noisy."""

from hypothesis import settings

settings.register_profile("gate", deadline=None)
settings.load_profile("gate")
