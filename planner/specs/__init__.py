"""What is known and what is asked: files and requests, as frozen records in SI units.

records      devices, clusters, models, engines, number formats: what files and users speak of
ask          requests: their parts, what is asked where nothing is said, what cannot be planned
files        TOML, CSV and JSON as records: found by name or path, every fault at once
huggingface  a `config.json` as an architecture
traffic      classes of requests: traces, lengths, arrivals, percentiles
options      options of the command line, and where each means something
region       which settings were compared with measurements
validation   what comes in from files, calls and saved answers, held against its type
"""
