"""From tables of measured kernels to the constants of closed forms, and how far to trust them."""
