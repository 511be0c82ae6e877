"""The model of "Inference economics of language models", kept as a reference beside ours.

Everything follows [Erdil2025]: real-valued degrees of parallelism, bandwidths halved
into "all-reduce bandwidths", one context for the whole batch, no overlap of the network
with anything else. Only the equations are here; models and GPUs arrive as records.
Where the paper prints less than its published program computes, the program's form is
the one written down, and the docstring says so.

Every function broadcasts over the number of devices and the number of requests.
"""
