"""The command line: parse, call one stage, print."""
