"""Models of Hugging Face, read from `config.json` alone: no network, no weights.

reading     `read_config`: the file as an `Architecture`, or everything that is wrong with it
locating    a file, a folder, or `org/name` in the local cache
names       the field table: what keys mean, and which mean nothing
fields      one config, asked field by field; faults are collected
families    every `model_type` that is understood
parts       attention, FFNs and experts as most families write them
softmax     families of attention: full, windows, chunks, shared caches
latent      families of latent attention, dense and sparse
recurrent   families with linear attention or state-space layers
states      the recurrences of those
pruned      families that were pruned layer by layer
layers      layers one by one, and as classes
formats     formats of weights
variants    what a model was made from
"""
