"""Parsing of command lines: errors are one line with exit code 2, and an unknown flag names its nearest known one."""

import argparse
import difflib

from dogwood_lib.errors import AskedWrongly


class Parser(argparse.ArgumentParser):
    """argparse that raises AskedWrongly, prints no usage with it, and accepts no abbreviated flags."""

    def __init__(self, **options):
        super().__init__(allow_abbrev=False, **options)

    def error(self, message):
        raise AskedWrongly(f"{message}; see {self.prog} --help")

    def parse_args(self, args=None, namespace=None):
        arguments, unknown = self.parse_known_args(args, namespace)
        if unknown:
            known = [flag for action in self._actions for flag in action.option_strings]
            self.error(f"unknown argument {quote(unknown[0])}{nearest(unknown[0].split('=')[0], known)}")
        return arguments


def quote(text):
    return f'"{text}"'


def nearest(word, known):
    """', did you mean "x"?' if a known word is close, else nothing."""
    close = difflib.get_close_matches(word, known, 1)
    return f", did you mean {quote(close[0])}?" if close else ""


def number(low, high, kind=float):
    """An argparse type: one number in [low, high]."""
    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{quote(text)} is not {what} from {low} to {high}")
        return value
    return parse


def list_of(parse):
    """An argparse type: distinct values separated by commas, in the order given."""
    def parse_list(text):
        values = [parse(part) for part in text.split(",")]
        if len(set(values)) < len(values):
            raise argparse.ArgumentTypeError(f"{quote(text)} names something twice")
        return values
    return parse_list


def one_of(*choices):
    """An argparse type: one of these words."""
    def parse(text):
        if text not in choices:
            raise argparse.ArgumentTypeError(f"{quote(text)} is not one of {', '.join(choices)}"
                                             f"{nearest(text, choices)}")
        return text
    return parse
