"""Read artifacts into rollouts and traces: add a format as a module here and to the FORMATS table."""

from blade.formats import nemo_gym

# name -> the module that reads it; what a member offers stands in `nemo_gym`.
FORMATS = {"nemo_gym": nemo_gym}
