"""python -m fragsim.dry [OPTION...] train.py [ARGUMENT...]: the command `fragsim
dry` with the program and this Python; `-m MODULE` in place of the program's file
works too. `python -m fragsim.dry [OPTION...] -- COMMAND...` runs any command. The
module has no other use: the function fragsim.dry says what to do instead."""
import os
import sys

if __name__ != "__main__":
    raise ImportError("fragsim.dry is the command `python -m fragsim.dry train.py`: "
                      "a program runs without a GPU only if that is decided "
                      "before it imports torch")

from fragsim._tool import tool_path

# The options of `fragsim dry` that are followed by a value.
VALUED = ("--gpu", "--gpus", "--memory", "--try", "--assume", "--values", "--json",
          "--setup", "--color", "--output", "-o")


def command(words: list[str]) -> list[str]:
    """The command line of the tool for these words."""
    at = 0
    while at < len(words) and words[at].startswith("-") \
            and words[at] not in ("--", "-m", "-c"):
        at += 2 if words[at] in VALUED else 1
    if at >= len(words) or words[at] == "--":
        return ["dry", *words]
    return ["dry", *words[:at], "--", sys.executable, *words[at:]]


sys.stdout.flush()
os.execv(tool_path(), ["fragsim", *command(sys.argv[1:])])
