"""A second account of an engine's pass over one group of devices, kernel by kernel, in scalars.

Only the closed forms of kernels are shared with who plans: constants were fitted to them. Which
kernels there are, with which shapes, messages, and what is held in memory is counted here anew.
"""
