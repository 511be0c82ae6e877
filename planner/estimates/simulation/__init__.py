"""Requests served one by one, on arrays: the oracle of queues that a search can afford to ask."""
