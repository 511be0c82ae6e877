"""Devices, clusters and models: what the files say, as records.

records     frozen dataclasses in SI units; what everything above reads
reading     `load_device`, `load_cluster`, `load_model`
listing     `list_clusters`, `list_models`: names and titles, without validation
finding     where files are, and what names mean
patterns    cluster files that describe many clusters by one name
tables      TOML, as dictionaries
schemas     what a file may say, section by section
values      what one value of it may be
faults      what pydantic found, as problems with remedies
coherence   what no single value shows: heads that do not divide, broken networks
"""
