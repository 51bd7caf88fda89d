"""The command line: parse, call, print; one command per file."""
