"""Tools beside the planner, on its records and closed forms; a README each.

experts      copies of experts over ranks, by their loads
staging      models cut into stages, and layers placed on mixed machines

No module of the planner imports them but the commands, and what proves an answer once more.
"""
