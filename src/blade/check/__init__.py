"""Turn any report into assertions: supported, contradicted or unverifiable by what the rows say."""
