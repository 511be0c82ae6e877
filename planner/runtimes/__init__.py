"""What executes and times a deployment: each runtime behind one protocol.

candidates          the protocol, and several of them as one program
roofline            layouts of a model on a mesh, timed by rooflines and collectives
engines             deployments of serving engines, timed by their measured kernels
engine_requests     a request in an engine's words
engine_describing   an engine's choice as a deployment, evaluated again
erdil2025           decode by the reference model of [Erdil2025]
erdil_requests      a request in the reference model's records
erdil_describing    a choice of it as a deployment, recounted
"""
