"""How long a run may take, and how it ends."""
