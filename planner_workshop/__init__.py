"""Tools beside the planner, on its records, files and closed forms; a README each.

calibration  constants of kernels fitted to measurements, and of engines to serving runs
measuring    measurements of kernels, taken on a device
importing    topologies of what clusters' own tools say, and deployments of what runs
exploring    requests as a form in a browser of this machine
experts      copies of experts over ranks, by their loads
staging      models cut into stages, and layers placed on mixed machines

Nothing of the planner imports them but the commands that they answer, and what proves an answer
once more.
"""
