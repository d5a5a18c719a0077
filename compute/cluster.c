#include "compute/cluster.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

uint32_t cluster_storage_of(const struct cluster *cluster, uint32_t log)
{
    return log % cluster->storage_nodes;
}

struct line {
    const char *path;
    unsigned number;
    char *text;
    size_t text_size;
};

static enum dw_error bad_line(const struct line *line, const char *why)
{
    snprintf(line->text, line->text_size,
             "%s, line %u: %s; write 'compute ID HOST:PORT' or 'storage ID HOST:PORT'", line->path,
             line->number, why);
    return DW_ERR_ARGUMENT;
}

static enum dw_error take_node(struct cluster *cluster, const struct line *line, char *kind, char *id,
                               char *address)
{
    bool compute = strcmp(kind, "compute") == 0;
    if (!compute && strcmp(kind, "storage") != 0) {
        return bad_line(line, "unknown kind of node");
    }
    char *end = NULL;
    unsigned long number = strtoul(id, &end, 10);
    if (*id < '0' || *id > '9' || *end != '\0' || number >= DW_MAX_NODES) {
        return bad_line(line, "the id is no number from 0 to 63");
    }
    if (strlen(address) > DW_MAX_ADDRESS) {
        return bad_line(line, "the address is too long");
    }
    char *place = compute ? cluster->compute[number] : cluster->storage[number];
    if (*place != '\0') {
        return bad_line(line, "the id is given twice");
    }
    memcpy(place, address, strlen(address) + 1);
    return DW_OK;
}

static enum dw_error take_line(struct cluster *cluster, const struct line *line, char *content)
{
    char *comment = strchr(content, '#');
    if (comment != NULL) {
        *comment = '\0';
    }
    char *rest = NULL;
    char *kind = strtok_r(content, " \t\r\n", &rest);
    if (kind == NULL) {
        return DW_OK;
    }
    char *id = strtok_r(NULL, " \t\r\n", &rest);
    char *address = strtok_r(NULL, " \t\r\n", &rest);
    if (id == NULL || address == NULL || strtok_r(NULL, " \t\r\n", &rest) != NULL) {
        return bad_line(line, "not three words");
    }
    return take_node(cluster, line, kind, id, address);
}

/* How many leading places are taken, or -1 if there is a gap. */
static int count_nodes(char nodes[DW_MAX_NODES][DW_MAX_ADDRESS + 1])
{
    int count = 0;
    while (count < DW_MAX_NODES && nodes[count][0] != '\0') {
        count++;
    }
    for (int i = count; i < DW_MAX_NODES; i++) {
        if (nodes[i][0] != '\0') {
            return -1;
        }
    }
    return count;
}

static enum dw_error count_all(struct cluster *cluster, const char *path, char *text, size_t text_size)
{
    int compute = count_nodes(cluster->compute);
    int storage = count_nodes(cluster->storage);
    if (compute < 1 || storage < 1) {
        snprintf(text, text_size, "%s: %s; list at least one of each kind, with ids from 0 without a gap",
                 path,
                 compute == 0 || storage == 0 ? "compute or storage nodes are missing" : "an id is left out");
        return DW_ERR_ARGUMENT;
    }
    cluster->compute_nodes = (uint32_t)compute;
    cluster->storage_nodes = (uint32_t)storage;
    return DW_OK;
}

enum dw_error cluster_read(const char *path, struct cluster *cluster, char *text, size_t text_size)
{
    memset(cluster, 0, sizeof *cluster);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        snprintf(text, text_size, "cannot read the cluster file %s: %s", path, strerror(errno));
        return DW_ERR_IO;
    }
    struct line line = {.path = path, .text = text, .text_size = text_size};
    enum dw_error error = DW_OK;
    char content[1024];
    while (error == DW_OK && fgets(content, sizeof content, file) != NULL) {
        line.number++;
        error = take_line(cluster, &line, content);
    }
    fclose(file);
    return error == DW_OK ? count_all(cluster, path, text, text_size) : error;
}
