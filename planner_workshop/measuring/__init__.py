"""Kernels timed on the machine at hand: which ones, how often, and what is said of their spread."""
