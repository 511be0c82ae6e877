"""What there is to plan with, as documents: lists, and one of each with its sources."""
