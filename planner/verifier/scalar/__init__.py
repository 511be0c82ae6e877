"""One phase of one deployment, counted once more in plain scalar arithmetic.

This is the judge of every answer. It is written from the documentation, not from the array
code, shares nothing with it but the input records, and knows neither NumPy nor tables: one
mesh, one layout, one batch, and formulas that can be followed with a pocket calculator.

    stage = roofline(compute, weights) + max(attention FLOP, KV traffic) + network + overhead
    pass  = (M + S − 1) stage

Axes are numbered 0, 1, 2; a set of axes is a bit mask (1, 2, 4). Everything is counted for
the busiest device. Source: [Pope2022] §2-3 and appendix A; pipelines: [Huang2019]; latents
and dispatch: [DeepSeek2024] §2-3; experts that a batch touches: [Erdil2025] Eq. 22.
"""
