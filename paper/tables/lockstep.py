#!/usr/bin/env python3
"""lockstep.py: runs programs in turns, and computes intervals for the ratios of
their times.

On a shared machine, two runs differ by more than the effect to be measured. So
all programs start at once and advance in turn, one step each; this is a round.
A disturbance of the machine slows down all programs of the round, and ratios
are computed within a round. The order within the rounds goes through a Williams
design, in which each program follows each other program equally often. Less
important programs run only in every fourth round, a full round.

A program that takes part prints JSON, one object per line. It prints {"ready":
true} when it can start its turns. For each line on its stdin ("turn", or "full"
in a full round) it runs one step and prints {"seconds": ...} with its other
counts. At the end of its stdin it runs to its end without turns and prints
{"end": {...}}. If the end comes during a turn, this is also the answer to that
turn.
"""
import itertools
import json
import math
import os
import random
import select
import statistics
import subprocess
import time

FULL = 4  # every fourth round


class Gone(Exception):
    """Raised if a program ended too early or does not answer."""


class Program:
    """A program that runs in turns. Its stderr goes to the file `log`."""

    def __init__(self, name, command, env, log):
        self.name, self.log, self.rest, self.end = name, log, b"", None
        with open(log, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                command, env=env, stdin=subprocess.PIPE, stderr=errors,
                stdout=subprocess.PIPE, bufsize=0)

    def answer(self, seconds):
        """The next line that is an answer; all other lines are ignored."""
        until = time.monotonic() + seconds
        while True:
            line = self.line(until)
            if line.startswith(b'{"'):
                found = json.loads(line)
                self.end = found.get("end", self.end)
                return found

    def line(self, until):
        output = self.process.stdout.fileno()
        while b"\n" not in self.rest:
            left = max(0, until - time.monotonic())
            if not select.select([output], [], [], left)[0]:
                raise Gone(f"{self.name}: no answer in time; {self.words()}")
            more = os.read(output, 1 << 16)
            if not more:
                raise Gone(f"{self.name}: exit {self.process.wait()}; "
                           f"{self.words()}")
            self.rest += more
        line, self.rest = self.rest.split(b"\n", 1)
        return line

    def words(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()[-800:].strip()

    def turn(self, word, seconds=120):
        self.process.stdin.write(word + b"\n")
        return self.answer(seconds)

    def release(self):
        self.process.stdin.close()

    def finish(self, seconds=180):
        """The program's last answer. Call release() first."""
        while self.end is None:
            self.answer(seconds)
        if self.process.wait(seconds):
            raise Gone(f"{self.name}: exit {self.process.returncode}; "
                       f"{self.words()}")
        return self.end

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def orders(count):
    """A Williams design: rows of 0..count-1 in which each number follows each
    other number equally often, and has each position equally often."""
    first = [0]
    for step in range(1, count):
        first.append((first[-1] + (step if step % 2 else -step)) % count)
    rows = [[(x + shift) % count for x in first] for shift in range(count)]
    return rows + [row[::-1] for row in rows] if count % 2 else rows


def attempt(programs, act, failed):
    """Calls act(program) for each program. A program that fails is stopped,
    reported and left out of the returned list."""
    left = []
    for program in programs:
        try:
            act(program)
            left.append(program)
        except (Gone, OSError, subprocess.TimeoutExpired) as error:
            program.stop()
            failed(program.name, str(error))
    return left


def take_turns(programs, seconds, rounds, failed, start=120, rare=()):
    """Runs rounds for the given seconds, but at most the given number. Yields
    one dictionary of answers by name for each round. Programs named in rare run
    in full rounds only. If a program fails, failed(name, message) is called and
    the program is left out from then on."""
    programs = attempt(programs, lambda p: p.answer(start), failed)
    until, done = time.monotonic() + seconds, 0
    designs = {}  # by number of programs: each number has its own design
    while programs and done < rounds and time.monotonic() < until:
        full = bool(rare) and done % FULL == FULL - 1
        present = [p for p in programs if full or p.name not in rare]
        design = designs.setdefault(len(present),
                                    itertools.cycle(orders(len(present))))
        answers, word = {}, b"full" if full else b"turn"

        def turn(program, answers=answers, word=word):
            answers[program.name] = program.turn(word)

        left = attempt([present[i] for i in next(design)], turn, failed)
        programs = [p for p in programs if p in left or p not in present]
        if any("end" in a for a in answers.values()):
            break
        done += 1
        yield answers
    attempt(programs, Program.release, failed)


# ---- statistics of the rounds ----

def median_interval(values, confidence=0.95):
    """The median, and order statistics that contain the true median with at
    least that confidence for any distribution (the inverse of the sign test).
    The interval is None if there are too few values."""
    ordered, n = sorted(values), len(values)
    below, rank = 0.0, 0  # below: P(fewer than rank + 1 of n coins)
    while rank < n:
        below += math.comb(n, rank) / 2 ** n
        if 2 * below > 1 - confidence:
            break
        rank += 1
    interval = (ordered[rank - 1], ordered[n - rank]) if rank else None
    return statistics.median(ordered), interval


def total_interval(pairs, confidence=0.95, draws=2000):
    """The sum of the first values divided by the sum of the second values of
    the pairs, and the interval of a bootstrap over the pairs with a fixed seed.
    """
    draw, n = random.Random(1), len(pairs)

    def ratio(chosen):
        return sum(a for a, _ in chosen) / sum(b for _, b in chosen)

    found = sorted(ratio(draw.choices(pairs, k=n)) for _ in range(draws))
    cut = int((1 - confidence) / 2 * draws)
    return ratio(pairs), (found[cut], found[-1 - cut])
