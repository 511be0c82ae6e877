"""Replicas on nodes below leaves and a spine: parts of nodes, wherever there is room for them."""
