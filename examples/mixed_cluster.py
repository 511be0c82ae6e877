"""Gemma 3 27B on two H100 and two L40S: which layers on which, for the most tokens a second?"""

from planner import Workload, cut_stages, load_architecture

# Five layers in six attend to a window; a device twice as fast does not get twice the layers.
best = cut_stages(
    load_architecture("tests/specs/huggingface/configs/gemma-3-27b-it_config.json"),
    "h100-sxm:tp2,l40s:tp1x2",
    workload=Workload(n_input_tokens=2048, n_output_tokens=512),
    batch=32,
)

print(best.summary)
print(f"{best.tokens_per_s:.0f} token/s, a pass every {best.bottleneck_s:.4f} s;")
print(f"no cut has less than {best.certificate.bound:.4f} s")
