"""The command line: parse, call, print; one command a file."""
