"""Layouts on a machine: seconds, bytes and dollars, all candidates at once."""
