"""The judge of every answer: each figure that a user reads, counted anew from the request.

It is written from the documentation and shares no code with what finds answers: records, units
and plain scalar arithmetic, one deployment, one replica, one stage at a time.

rules         which field is counted, which is chosen, and which nobody can verify
findings      what does not hold: the place, what it says, what is so
deployments   a deployment;  meshes, phases, layout_names, scalar: its parts
runtimes      what deployments of each runtime are counted by, behind one protocol
plans         a plan, whichever runtime;  rivals: the best of each;  certificates: what of a proof
              can be counted
frontiers     their points;  comparisons: their rows;  audits: what runs
placements    replicas on a cluster;  sites, grounds, fabrics, tori, widths: where they stand
repairs       what moves, and from where
"""
