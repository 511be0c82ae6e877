"""Requests: what a user may ask, what it means where nothing is said, and what cannot be."""
