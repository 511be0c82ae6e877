"""Experts over ranks: which rank has which, how often, so that the fullest has least to do."""
