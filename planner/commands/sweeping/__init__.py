"""Many requests at once: a grid, shared among workers, kept as rows that outlast a kill."""
