"""Text tables and numbers as people read them. An absent value is empty, not zero."""

_TIMES = (("µs", 1.0), ("ms", 1e3), ("s", 1e6))


def format_us(microseconds):
    """Three digits and the unit that suits: 7000 reads "7 ms"."""
    if microseconds is None:
        return ""
    for unit, size in _TIMES:
        text = f"{microseconds / size:.3g}"
        if float(text) < 1000:
            return f"{text} {unit}"
    return f"{microseconds / 1e6:.0f} s"


def format_rate(per_second):
    return "" if per_second is None else f"{per_second:,.0f}"


def format_batch(records):
    """A mean size: whole if it is large."""
    return "" if records is None else f"{records:.0f}" if records >= 10 else f"{records:.1f}"


def format_ratio(ratio):
    if ratio is None:
        return ""
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.1g}"


def format_count(count):
    return "" if count is None else f"{count:,}"


def render(titles, rows):
    """Columns of text: the words to the left, the figures to the right, under titles and a rule."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *cells)]
    left = [all(not cell[:1].isdigit() for cell in column) for column in zip(*cells)] if cells else [True] * len(titles)

    def line(parts):
        aligned = [part.ljust(width) if is_left else part.rjust(width)
                   for part, width, is_left in zip(parts, widths, left)]
        return "  ".join(aligned).rstrip()

    return "\n".join([line(titles), "  ".join("-" * width for width in widths), *map(line, cells)])
