"""Options of the command line, as the command and messages of the library know them.

option      what a row says: name, help, reader, and what of a request it sets
table       every option, by its heading in help
readers     texts to values
counts      whole numbers and lists of them, and back
meanings    which options mean something to which command, under which runtime
"""
