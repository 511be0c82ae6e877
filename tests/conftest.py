"""Settings of all tests: no deadline for one example, because machines are noisy.

The gate draws the same examples each time, so that it judges a change and not a draw;
`pytest --hypothesis-profile=search` draws new ones.
"""

from hypothesis import settings

settings.register_profile("gate", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile("gate")
