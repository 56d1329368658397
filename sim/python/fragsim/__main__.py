"""The command `fragsim` of the installed package, and `python -m fragsim`: the
tool takes the place of this process, so signals and exit codes are its own."""
import os
import sys

from ._tool import tool_path


def main() -> None:
    """Runs the tool with the arguments of this process."""
    try:
        path = tool_path()
    except FileNotFoundError as missing:
        print(f"fragsim: {missing}", file=sys.stderr)
        sys.exit(4)
    sys.stdout.flush()
    os.execv(path, ["fragsim", *sys.argv[1:]])


if __name__ == "__main__":
    main()
