"""Planning a decode deployment with the cost model of [Erdil2025].

planning    from a request to a verified plan
asking      a request in the words of `plan`, and in the reference model's records
describing  a choice in words and seconds, recounted and judged
limiting    what limits cost, and why there is no plan
"""
