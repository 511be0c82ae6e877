"""Tools beside the planner, on its records, files and closed forms; a README each.

calibration  constants of kernels fitted to measurements, and of engines to serving runs
measuring    measurements of kernels, taken on a device
importing    topologies of what clusters' own tools say

Nothing of the planner imports them but the commands that they answer.
"""
