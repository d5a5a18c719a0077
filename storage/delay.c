#include "storage/delay.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define MAX_MEAN_MS   60000.0
#define MAX_SIGMA     3.0
#define DEFAULT_SIGMA 0.5

static const struct {
    const char *name;
    enum dw_delay_distribution distribution;
} names[] = {
    {"constant", DW_DELAY_CONSTANT},
    {"uniform", DW_DELAY_UNIFORM},
    {"exponential", DW_DELAY_EXPONENTIAL},
    {"lognormal", DW_DELAY_LOGNORMAL},
};

enum dw_error dw_delay_distribution_parse(const char *name, enum dw_delay_distribution *distribution)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i].name) == 0) {
            *distribution = names[i].distribution;
            return DW_OK;
        }
    }
    return DW_ERR_ARGUMENT;
}

const char *dw_delay_distribution_name(enum dw_delay_distribution distribution)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].distribution == distribution) {
            return names[i].name;
        }
    }
    return "?";
}

static enum dw_error refuse_parameter(const struct dw_delay *delay, const char *allowed, char *text,
                                      size_t size)
{
    snprintf(text, size, "delay parameter %g is not allowed with %s: give %s", delay->parameter,
             dw_delay_distribution_name(delay->distribution), allowed);
    return DW_ERR_RANGE;
}

static enum dw_error check_parameter(struct dw_delay *delay, char *text, size_t size)
{
    bool absent = isnan(delay->parameter);
    switch (delay->distribution) {
    case DW_DELAY_CONSTANT:
    case DW_DELAY_EXPONENTIAL:
        /* Zero is what an absent parameter becomes, so that a checked delay passes the check again. */
        if (!absent && delay->parameter != 0) {
            return refuse_parameter(delay, "none", text, size);
        }
        delay->parameter = 0;
        return DW_OK;
    case DW_DELAY_UNIFORM:
        delay->parameter = absent ? delay->mean_ms : delay->parameter;
        if (!(delay->parameter >= 0 && delay->parameter <= delay->mean_ms)) {
            return refuse_parameter(delay, "a half width in ms from 0 to the mean", text, size);
        }
        return DW_OK;
    case DW_DELAY_LOGNORMAL:
        delay->parameter = absent ? DEFAULT_SIGMA : delay->parameter;
        if (!(delay->parameter >= 0 && delay->parameter <= MAX_SIGMA)) {
            return refuse_parameter(delay, "sigma of the logarithm from 0 to 3", text, size);
        }
        return DW_OK;
    }
    snprintf(text, size, "delay distribution %d is unknown: give constant, uniform, exponential or lognormal",
             (int)delay->distribution);
    return DW_ERR_ARGUMENT;
}

enum dw_error dw_delay_check(struct dw_delay *delay, char *text, size_t text_size)
{
    if (!(delay->mean_ms >= 0 && delay->mean_ms <= MAX_MEAN_MS)) {
        snprintf(text, text_size, "delay mean %g is out of range: give 0 to %g milliseconds", delay->mean_ms,
                 MAX_MEAN_MS);
        return DW_ERR_RANGE;
    }
    return check_parameter(delay, text, text_size);
}

/* Reads the number before the next colon, or before the end; false if there is anything else. */
static bool parse_number(const char **cursor, double *number)
{
    char *end;
    if (**cursor == ' ' || **cursor == '\t' || **cursor == '\0') {
        return false;
    }
    *number = strtod(*cursor, &end);
    if (end == *cursor || (*end != '\0' && *end != ':') || !isfinite(*number)) {
        return false;
    }
    *cursor = end;
    return true;
}

static bool parse_name(const char **cursor, enum dw_delay_distribution *distribution)
{
    char name[16];
    size_t length = strcspn(*cursor, ":");
    if (length >= sizeof name) {
        return false;
    }
    memcpy(name, *cursor, length);
    name[length] = '\0';
    *cursor += length;
    return dw_delay_distribution_parse(name, distribution) == DW_OK;
}

enum dw_error dw_delay_parse(const char *spec, struct dw_delay *delay, char *text, size_t text_size)
{
    struct dw_delay parsed = {.distribution = DW_DELAY_CONSTANT, .parameter = NAN};
    const char *cursor = spec;
    if (!parse_number(&cursor, &parsed.mean_ms)) {
        snprintf(text, text_size, "delay '%s': the mean is not a number: give MS[:DIST[:PARAM]]", spec);
        return DW_ERR_ARGUMENT;
    }
    if (*cursor == ':') {
        cursor++;
        if (!parse_name(&cursor, &parsed.distribution)) {
            snprintf(text, text_size,
                     "delay '%s': unknown distribution: give constant, uniform, exponential or lognormal",
                     spec);
            return DW_ERR_ARGUMENT;
        }
    }
    if (*cursor == ':') {
        cursor++;
        if (!parse_number(&cursor, &parsed.parameter) || *cursor != '\0') {
            snprintf(text, text_size, "delay '%s': the parameter is not a number: give MS[:DIST[:PARAM]]",
                     spec);
            return DW_ERR_ARGUMENT;
        }
    }
    enum dw_error error = dw_delay_check(&parsed, text, text_size);
    if (error == DW_OK) {
        *delay = parsed;
    }
    return error;
}

/* A standard normal number by the polar method of Marsaglia; its twin is thrown away, to keep no state. */
static double draw_normal(struct dw_random *random)
{
    double u, v, s;
    do {
        u = 2 * dw_random_unit(random) - 1;
        v = 2 * dw_random_unit(random) - 1;
        s = u * u + v * v;
    } while (s >= 1 || s == 0);
    return u * sqrt(-2 * log(s) / s);
}

static double draw_ms(const struct dw_delay *delay, struct dw_random *random)
{
    double sigma = delay->parameter;
    switch (delay->distribution) {
    case DW_DELAY_CONSTANT:
        return delay->mean_ms;
    case DW_DELAY_UNIFORM:
        return delay->mean_ms + delay->parameter * (2 * dw_random_unit(random) - 1);
    case DW_DELAY_EXPONENTIAL:
        return -delay->mean_ms * log1p(-dw_random_unit(random));
    case DW_DELAY_LOGNORMAL:
        /* exp(mu + sigma N) has the mean exp(mu + sigma^2 / 2), so mu = ln(mean) - sigma^2 / 2. */
        return delay->mean_ms * exp(sigma * draw_normal(random) - sigma * sigma / 2);
    }
    return 0;
}

uint64_t dw_delay_draw(const struct dw_delay *delay, struct dw_random *random)
{
    DW_ASSERT(delay->mean_ms >= 0 && delay->mean_ms <= MAX_MEAN_MS);
    if (delay->mean_ms == 0) {
        return 0;
    }
    double us = draw_ms(delay, random) * 1000;
    DW_ASSERT(us >= 0);
    return (uint64_t)(us + 0.5);
}
