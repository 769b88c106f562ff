"""The nouns: every value that passes between stages."""

from blade.model.comparisons import *  # noqa: F403
from blade.model.conclusions import *  # noqa: F403
from blade.model.enums import *  # noqa: F403
from blade.model.measurements import *  # noqa: F403
from blade.model.run_rows import *  # noqa: F403
