"""Quantities: how texts and numbers of them are read and shown, and what a plan has of each."""
