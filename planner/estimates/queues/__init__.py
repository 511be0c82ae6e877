"""Percentiles of a station's times from formulas, and the largest rate within targets."""
