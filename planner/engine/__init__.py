"""Planning the deployment of a serving engine with its kernel-calibrated estimates.

planning    from a request to a verified plan
asking      arguments as a request, a request as a command
describing  a choice in words and seconds, evaluated again and judged
limiting    what limits cost, and why there is no plan
"""
