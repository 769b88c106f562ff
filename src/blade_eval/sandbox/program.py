"""Run the solution as the main program: the entry of a box that reads its input."""

import builtins
import sys

from blade_eval.sandbox import names

if __name__ in ("__main__", "__mp_main__"):  # the second is what a worker process makes of the first
    with open("/tmp/box/solution.py", encoding="utf-8", errors="surrogatepass") as _file:
        _code = compile(_file.read(), "solution.py", "exec")
    builtins.exit = builtins.quit = sys.exit  # type: ignore[assignment]  # which `site` would have set
    names.given(_code, globals())
    exec(_code, globals())
