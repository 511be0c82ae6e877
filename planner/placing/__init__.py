"""Placement on a real cluster, joint with the layout: from a request to named devices."""
