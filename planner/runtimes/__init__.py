"""What executes and times a deployment: each runtime behind one protocol.

candidates          the protocol, and several of them as one program
registry            those that a request names
roofline            layouts of a model on a mesh, timed by rooflines and collectives
engines             deployments of serving engines, timed by their measured kernels
engine_source       their program, of those that an aim may want
engine_requests     a request in an engine's words
predicting          one given deployment of an engine: what it cannot be, and its account
erdil2025           decode by the reference model of [Erdil2025]
erdil_requests      a request in the reference model's records
describe            a choice as its account writes it, with which the arrays have to agree
loads, simulation   what a deployment does at the rate that arrives
"""
