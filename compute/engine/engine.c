#include "compute/engine/engine.h"

#include <stdlib.h>
#include <string.h>

struct engine_kind {
    const char *name;
    struct dw_engine *(*open)(void);
};

static const struct engine_kind kinds[] = {{"memory", dw_memory_engine_open}};

const char *dw_engine_name_at(unsigned index)
{
    return index < sizeof kinds / sizeof *kinds ? kinds[index].name : NULL;
}

enum dw_error dw_engine_open(const char *name, struct dw_engine **engine)
{
    for (unsigned i = 0; dw_engine_name_at(i) != NULL; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            *engine = kinds[i].open();
            return *engine == NULL ? DW_ERR_MEMORY : DW_OK;
        }
    }
    return DW_ERR_MISSING;
}

static enum dw_error load_table(struct dw_engine *engine, const struct dw_workload *workload,
                                const void *state, uint32_t node, uint32_t table)
{
    const struct dw_table *schema = workload->table(state, table);
    uint64_t count = workload->row_count(state, table, node);
    enum dw_error error = engine->ops->create_table(engine, table, schema, count);
    uint8_t *row = error == DW_OK ? malloc(dw_table_row_bytes(schema)) : NULL;
    if (error == DW_OK && row == NULL) {
        error = DW_ERR_MEMORY;
    }
    for (uint64_t i = 0; error == DW_OK && i < count; i++) {
        uint64_t key = workload->row_key(state, table, node, i);
        workload->fill_row(state, table, key, row);
        error = engine->ops->insert(engine, table, key, row);
    }
    free(row);
    return error;
}

enum dw_error dw_engine_load(struct dw_engine *engine, const struct dw_workload *workload, const void *state,
                             uint32_t node)
{
    enum dw_error error = DW_OK;
    uint32_t tables = workload->table_count(state);
    for (uint32_t table = 0; error == DW_OK && table < tables; table++) {
        error = load_table(engine, workload, state, node, table);
    }
    return error;
}

enum dw_error dw_engine_check_write(struct dw_engine *engine, uint32_t table, uint64_t key, uint32_t field,
                                    size_t value_bytes)
{
    const struct dw_table *schema = engine->ops->schema(engine, table);
    if (schema == NULL) {
        return DW_ERR_MISSING;
    }
    if (field >= schema->field_count) {
        return DW_ERR_RANGE;
    }
    if (value_bytes != dw_table_field_bytes(schema, field)) {
        return DW_ERR_ARGUMENT;
    }
    return engine->ops->contains(engine, table, key) ? DW_OK : DW_ERR_MISSING;
}
