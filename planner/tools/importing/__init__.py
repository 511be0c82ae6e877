"""Clusters from what their own tools say of them: topology files, and the state of their nodes."""
