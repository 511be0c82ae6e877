"""Devices, clusters and models: what the files say, as records.

records     frozen dataclasses in SI units: devices, clusters, workloads, and the next two
models      the shape of a model, and the parameters and bytes that it implies
provenance  where a value comes from
architecture  a decoder as classes of equal layers
mixers      how a layer mixes tokens: attention of several kinds, recurrences
huggingface   a `config.json` as an architecture
correspondence  architectures and the models that layouts shard, one as the other
reading     `load_device`, `load_cluster`, `load_model`, `load_architecture`
building    checked files as records
listing     `list_clusters`, `list_models`: names and titles, without validation
places      where files may be, and which of them ship
finding     what names mean
ledger      files that a request used, and what is to be said of them
pools       servers below leaves and a spine, of one kind or of several: `load_pool`
state       what of a cluster is busy, failed, slow or down: `load_state`
naming      what the names of a state stand for
patterns    cluster files that describe many clusters by one name
engines     `load_engine`, and rules of what engines start
tables      TOML, as dictionaries
schemas     what a file may say, section by section
fabric_schemas  the same of fabrics and states
values      what one value of it may be
faults      what pydantic found, as problems with remedies
targets     what a request may ask for: limits, fixed degrees, drafts, how to solve
request     a request with its defaults filled in
defaults    what is asked where nothing is said
checking    what cannot be planned for, whatever the program says
arguments   arguments of the library that have a wrong type
quality     which number formats a limit on lost quality leaves
commands    the command line of a request
coherence   what no single value of a machine shows: networks in two pieces
model_coherence  the same of models: heads that do not divide, parameters that do not add up
"""
