"""What stands in the way of 5 ms a token, and what is reachable?"""

from planner import NoPlanError, Targets, load_model, load_topology, plan

try:
    plan(load_model("palm-540b"), load_topology("tpu-v4-4x8x8"), targets=Targets(tpot_s=0.005))
except NoPlanError as error:
    for obstacle in error.conflict.obstacles:
        print(f"{obstacle.name}: asked {obstacle.asked:.4g}, reachable {obstacle.reachable:.4g}")
        print(obstacle.reason)
    print(error.conflict.command)
