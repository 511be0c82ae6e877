"""A fleet counted anew from its answer: sharing no code with who found it.

judging     the whole of it, and the staircase over demand
counting    what is true of its choices: deployments, replicas, pools, classes
references  names and numbers that have to be of something
routes      whose requests go where, and that all of them do
traffic     prompts between two lengths: how many come
stations    passes and rooms of each replica, kernel by kernel
trials      the requests, served again: as it was said, and with another seed
"""
