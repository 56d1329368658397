"""python -m fragsim.run -p POLICY -- PROGRAM...: the command `fragsim run`. The
module has no other use: the function fragsim.run runs any command."""
import sys

if __name__ != "__main__":
    raise ImportError("fragsim.run is the function of the package fragsim, or "
                      "the command `python -m fragsim.run`; import fragsim")

from fragsim.__main__ import main

sys.argv.insert(1, "run")
main()
