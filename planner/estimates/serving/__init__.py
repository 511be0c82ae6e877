"""Serving as engines do it: passes of a deployment, kernel by kernel, for many at once."""
