"""Deployments of layouts counted anew: meshes, phases, names, stations, predictions."""
