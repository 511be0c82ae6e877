"""What the reference model of [Erdil2025] is asked, in its own records.

records  a Transformer, a GPU and its collectives, as that model has them
request  a decode deployment that is wanted
"""
