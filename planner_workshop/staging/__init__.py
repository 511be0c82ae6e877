"""A model over unequal devices: cut into stages, or its layers placed on machines."""
