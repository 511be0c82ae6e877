"""MT-NLG 530B on A100 servers: tensor parallel over how many, and a pipeline or not?"""

from planner import Targets, Workload, load_model, load_topology, plan

best = plan(
    load_model("mt-nlg-530b"),
    load_topology("dgx-a100-x4"),
    workload=Workload(n_input_tokens=128, n_output_tokens=32),
    targets=Targets(tpot_s=0.120),
)

print(best)
print(f"{best.deployment.mesh.label}, {best.deployment.prefill.mfu_fraction:.0%} MFU in prefill")
