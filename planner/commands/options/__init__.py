"""argv to requests, by the table of options in `planner.specs.options`.

commands    each command, and the names of its options
said        what a command line says
parsing     its words to texts of options, all faults at once
helping     pages of help and completions of shells
reading     values to arguments of the library
traffic     the same of classes of traffic
"""
