"""What executes and times a deployment: each runtime behind one protocol.

candidates          the protocol, and several of them as one program
roofline            layouts of a model on a mesh, timed by rooflines and collectives
engines             deployments of serving engines, timed by their measured kernels
engine_requests     a request in an engine's words
predicting          one given deployment of an engine: what it cannot be, and its account
erdil2025           decode by the reference model of [Erdil2025]
erdil_requests      a request in the reference model's records
describe, engine_describing, erdil_describing
                    a choice as its account writes it, with which the arrays have to agree
agreeing            how they do
"""
