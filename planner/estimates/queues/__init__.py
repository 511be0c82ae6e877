"""Percentiles of a station's times from formulas, and the largest rate that keeps within targets."""
