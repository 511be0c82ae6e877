"""The cluster as a graph of devices and links, and what follows from it.

    graph     the graph itself, and the faults of graphs that people bring
    paths     hops and bandwidths, read off any graph
    domains   which devices share the fastest fabric
    slices    the sub-slices of a torus, and where they fit
    meshes    every way to use the pool, as one table of arrays
    pools     servers below leaves and a spine as a graph, in whatever state they are
    inventory what is free of a graph, and what each device can do from where it is
    costs     costs of groups that somebody brings

`meshes` answers from the records alone, in milliseconds; that the graph says the
same is what the tests of this floor are for.
"""
