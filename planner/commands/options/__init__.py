"""Options of the command line: how they are written, and what they mean.

written     every option of `plan` as text, with its help
arguments   argv, freed of what no option can mean
reading     text to numbers, all faults at once
several     the same for commands that answer with several plans
counts      whole numbers and lists of them
"""
