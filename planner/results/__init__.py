"""What the planner answers, as frozen records in SI units.

deployments  of layouts    engines  of serving engines    erdil2025  of the reference model
plans        a plan, its alternatives and limits
conflicts    why there is no plan, and the least changes of limits that have one
"""
