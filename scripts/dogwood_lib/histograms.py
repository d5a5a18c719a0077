"""Exported latency histograms: lists of (bucket_low_us, count), which merge by adding counts."""


def merge(*histograms):
    """One histogram, in rising order."""
    counts = {}
    for histogram in histograms:
        for low, count in histogram:
            counts[low] = counts.get(low, 0) + count
    return sorted(counts.items())


def cumulative(histogram):
    """(low_us, share of all values in this bucket or below), rising to 1."""
    total = sum(count for _, count in histogram)
    points = []
    seen = 0
    for low, count in histogram:
        seen += count
        points.append((low, seen / total))
    return points
