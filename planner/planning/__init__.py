"""Plans, frontiers, comparisons, audits, explanations, and what verifies a saved answer."""
