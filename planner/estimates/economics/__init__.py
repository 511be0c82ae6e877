"""Deployable layouts under the cost model of [Erdil2025]: integers in place of real degrees.

    conversion   our models and pools as that model's records
    degrees      which integers may be deployed
    grids        the network of ranks in two dimensions
    passes       time of one decode pass, every layout at every batch
    memory       what each layout holds
    tables       both for target and draft; which draft layouts matter
    choices      the fastest layout that fits, for every split of devices and every batch

The equations are those of `planner.equations.economics`; what is ours is the choice: devices,
stages, ranks, grids and batches are integers that divide what they cut, or are padded, and
memory is that of the busiest device with everything that is in flight.
"""
