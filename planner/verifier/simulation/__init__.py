"""Requests that are served one by one, event by event: what becomes of percentiles."""
