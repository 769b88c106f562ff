"""Read artifacts into rollouts and traces: add a format as a module here and to the FORMATS table."""

from blade.formats import nemo_gym

# name -> the module that reads it; what a member offers stands in `nemo_gym`. A file is read by the first whose
# `matches` knows one of its first rows, and by the first of all where none does.
FORMATS = {"nemo_gym": nemo_gym}
