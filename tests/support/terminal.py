"""terminal.py: what a program writes to a pseudo-terminal, for tests."""
import os
import pty
import subprocess


def has_terminals():
    """Whether the machine has pseudo-terminals; a container may have none."""
    try:
        for end in pty.openpty():
            os.close(end)
    except OSError:
        return False
    return True


def environment():
    """Of a user at a terminal, not of a CI job."""
    wanted = {k: v for k, v in os.environ.items() if k not in ("CI", "NO_COLOR")}
    return dict(wanted, TERM="xterm")


def written(command, **streams):
    """Runs the command with a terminal as the streams that are given as True
    (stdout, stderr). Returns the exit code and the bytes that it wrote."""
    leader, follower = pty.openpty()
    text = b""
    with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, env=environment(),
            **{name: follower if wanted is True else wanted
               for name, wanted in streams.items()}) as process:
        os.close(follower)
        while True:
            try:
                part = os.read(leader, 1 << 16)
            except OSError:  # the other end is closed
                part = b""
            if not part:
                break
            text += part
    os.close(leader)
    return process.returncode, text
