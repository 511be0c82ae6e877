"""One validation: what comes in from files, calls and saved answers is held against its type."""
