"""Measured kernels as others publish them, read as rows of the closed forms."""
