"""Which slice, layout and batch serve PaLM 540B at 30 ms a token for the least money?"""

from planner import Targets, load_model, load_topology, plan

best = plan(
    load_model("palm-540b"),
    load_topology("tpu-v4-4x8x8"),
    targets=Targets(tpot_s=0.030),
)

print(best)
for part, seconds in best.deployment.decode.step.parts():
    print(f"{part:>10}  {seconds * 1e3:6.2f} ms")
for other in best.alternatives:
    print(f"loses {other.loss_fraction:6.1%}: {other.deployment.summary}")
