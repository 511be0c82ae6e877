"""The physics, one file a phenomenon: pure functions on arrays, each with its source.

Arguments broadcast together as NumPy does; SI units throughout. Rival models of one
phenomenon are siblings with different names.
"""
