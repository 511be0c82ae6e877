"""Serving engines as files say them: what they spend and hold, and what they start.

files        engines, by a name or a path
rules        what an engine starts, as conditions on named quantities of a deployment
rule_files   rules that ship, and what a user's file changes of them
"""
