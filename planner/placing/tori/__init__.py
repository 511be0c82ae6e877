"""Replicas on a torus: slices of it, wherever they lie among what is free."""
