"""Placements counted anew: sites, where replicas stand, handovers, repairs."""
