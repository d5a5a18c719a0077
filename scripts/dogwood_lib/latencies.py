"""Readings of exported latency histograms, by the same rules as protocol/base/histogram.h: every power of two of
nanoseconds is cut into 64 buckets, and a percentile is the upper edge of its bucket, never more than the exact maximum."""

import math

from dogwood_lib.histograms import merge

SUB_BITS = 6
MIN_NS = 1000
MAX_NS = 200_000_000_000


def high_us(low_us):
    """The inclusive upper edge of the bucket with that lower edge."""
    low_ns = round(low_us * 1000)
    width = 1 << max(0, low_ns.bit_length() - 1 - SUB_BITS)
    return min(low_ns + width - 1, MAX_NS) / 1000


def rank_of(count, percent):
    """From 1; in whole millionths, since 0.999 * 1000 may round up to the rank after the right one."""
    return max(1, -(-count * round(percent * 10000) // 1_000_000))


class Latencies:
    """Latencies of one class of transactions, of one node or several."""

    def __init__(self, buckets=(), max_us=0.0, clamped_low=0, clamped_high=0):
        self.buckets = merge([(low, count) for low, count in buckets if count > 0])
        self.count = sum(count for _, count in self.buckets)
        self.max_us = float(max_us)
        self.clamped_low = clamped_low
        self.clamped_high = clamped_high

    @classmethod
    def of_report(cls, part):
        """From the "dist" or "local" part of a node's report."""
        return cls(part.get("hist", ()), part.get("max_us", 0.0), part.get("clamped_low", 0), part.get("clamped_high", 0))

    def __add__(self, other):
        return Latencies(self.buckets + other.buckets, max(self.max_us, other.max_us),
                         self.clamped_low + other.clamped_low, self.clamped_high + other.clamped_high)

    def percentile_us(self, percent):
        """None if there is nothing."""
        if self.count == 0:
            return None
        rank = rank_of(self.count, percent)
        if rank <= self.clamped_low:
            return min((MIN_NS - 1) / 1000, self.max_us)
        if rank > self.count - self.clamped_high:
            return self.max_us
        seen = 0
        for low, count in self.buckets:
            seen += count
            if seen >= rank:
                return min(high_us(low), self.max_us)
        raise AssertionError("a rank lies within the count")

    def hgrm(self):
        """The percentile distribution as HdrHistogram prints it, in milliseconds."""
        lines = [f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>17}", ""]
        seen = 0
        for low, count in self.buckets:
            seen += count
            share = seen / self.count
            value = min(high_us(low), self.max_us) / 1000
            inverse = "" if seen == self.count else f"{1 / (1 - share):17.2f}"
            lines.append(f"{value:12.3f} {share:14.12f} {seen:10d} {inverse}".rstrip())
        mean, deviation = self._moments_ms()
        lines += [f"#[Mean    = {mean:12.3f}, StdDeviation   = {deviation:12.3f}]",
                  f"#[Max     = {self.max_us / 1000:12.3f}, Total count    = {self.count:12d}]",
                  f"#[Buckets = {28:12d}, SubBuckets     = {1 << SUB_BITS:12d}]"]
        return "\n".join(lines) + "\n"

    def _moments_ms(self):
        """From the middles of the buckets."""
        if self.count == 0:
            return 0.0, 0.0
        middles = [((low + min(high_us(low), max(low, self.max_us))) / 2000, count) for low, count in self.buckets]
        mean = sum(middle * count for middle, count in middles) / self.count
        return mean, math.sqrt(sum(count * (middle - mean) ** 2 for middle, count in middles) / self.count)
