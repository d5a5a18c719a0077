#include "workloads/workload.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "workloads/ycsb.h"

static const struct dw_workload *const workloads[] = {&dw_ycsb};

const struct dw_workload *dw_workload_at(unsigned index)
{
    return index < sizeof workloads / sizeof *workloads ? workloads[index] : NULL;
}

const struct dw_workload *dw_workload_find(const char *name)
{
    for (unsigned i = 0; dw_workload_at(i) != NULL; i++) {
        if (strcmp(workloads[i]->name, name) == 0) {
            return workloads[i];
        }
    }
    return NULL;
}

static const struct dw_parameter *find_parameter(const struct dw_workload *workload, const char *name)
{
    for (size_t i = 0; i < workload->parameter_count; i++) {
        if (strcmp(workload->parameters[i].name, name) == 0) {
            return &workload->parameters[i];
        }
    }
    return NULL;
}

/* A not-a-number lies in no range, hence the comparison as it stands. */
static bool in_range(const struct dw_parameter *parameter, double value)
{
    return value >= parameter->minimum && value <= parameter->maximum;
}

static enum dw_error say_range(const struct dw_workload *workload, const struct dw_parameter *parameter,
                               const char *value, char *text, size_t text_size)
{
    (void)snprintf(text, text_size, "%s: %s must be between %.15g and %.15g, not %.40s", workload->name,
                   parameter->name, parameter->minimum, parameter->maximum, value);
    return DW_ERR_RANGE;
}

static enum dw_error say_not_a_number(const struct dw_workload *workload,
                                      const struct dw_parameter *parameter, const char *value, char *text,
                                      size_t text_size)
{
    (void)snprintf(text, text_size, "%s: %s takes %s, not '%.40s'", workload->name, parameter->name,
                   parameter->type == DW_PARAMETER_INTEGER ? "a whole number" : "a number", value);
    return DW_ERR_ARGUMENT;
}

/* strtoull takes blanks and signs, and turns -1 into the largest number; a user means none of that. */
static bool parse_integer(const char *value, uint64_t *integer)
{
    if (*value == '\0' || value[strspn(value, "0123456789")] != '\0') {
        return false;
    }
    errno = 0;
    unsigned long long parsed = strtoull(value, NULL, 10);
    *integer = errno == ERANGE ? UINT64_MAX : parsed;
    return true;
}

static bool parse_number(const char *value, double *number)
{
    if (*value == '\0' || value[strspn(value, "0123456789.eE+-")] != '\0') {
        return false;
    }
    char *end = NULL;
    *number = strtod(value, &end);
    return *end == '\0';
}

enum dw_error dw_workload_set(const struct dw_workload *workload, void *parameters, const char *name,
                              const char *value, char *text, size_t text_size)
{
    const struct dw_parameter *parameter = find_parameter(workload, name);
    if (parameter == NULL) {
        (void)snprintf(text, text_size, "%s has no parameter '%.40s'", workload->name, name);
        return DW_ERR_ARGUMENT;
    }
    uint64_t integer = 0;
    double number = 0;
    bool parsed = parameter->type == DW_PARAMETER_INTEGER ? parse_integer(value, &integer)
                                                          : parse_number(value, &number);
    if (!parsed) {
        return say_not_a_number(workload, parameter, value, text, text_size);
    }
    if (!in_range(parameter, parameter->type == DW_PARAMETER_INTEGER ? (double)integer : number)) {
        return say_range(workload, parameter, value, text, text_size);
    }
    char *field = (char *)parameters + parameter->offset;
    if (parameter->type == DW_PARAMETER_INTEGER) {
        memcpy(field, &integer, sizeof integer);
    } else {
        memcpy(field, &number, sizeof number);
    }
    return DW_OK;
}

static enum dw_error check_parameter(const struct dw_workload *workload, const struct dw_parameter *parameter,
                                     const void *parameters, char *text, size_t text_size)
{
    const char *field = (const char *)parameters + parameter->offset;
    char typed[40];
    double number;
    if (parameter->type == DW_PARAMETER_INTEGER) {
        uint64_t integer;
        memcpy(&integer, field, sizeof integer);
        number = (double)integer;
        (void)snprintf(typed, sizeof typed, "%" PRIu64, integer);
    } else {
        memcpy(&number, field, sizeof number);
        (void)snprintf(typed, sizeof typed, "%.15g", number);
    }
    return in_range(parameter, number) ? DW_OK : say_range(workload, parameter, typed, text, text_size);
}

enum dw_error dw_workload_check(const struct dw_workload *workload, const void *parameters,
                                const struct dw_deployment *deployment, char *text, size_t text_size)
{
    if (deployment->compute_nodes < 1 || deployment->compute_nodes > DW_MAX_NODES) {
        (void)snprintf(text, text_size,
                       "%s: the number of compute nodes must be between 1 and %d, not %" PRIu32,
                       workload->name, DW_MAX_NODES, deployment->compute_nodes);
        return DW_ERR_RANGE;
    }
    for (size_t i = 0; i < workload->parameter_count; i++) {
        enum dw_error error =
            check_parameter(workload, &workload->parameters[i], parameters, text, text_size);
        if (error != DW_OK) {
            return error;
        }
    }
    return workload->check(parameters, deployment, text, text_size);
}
