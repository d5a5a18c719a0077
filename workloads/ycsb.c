#include "workloads/ycsb.h"

#include <inttypes.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

/* One access as drawn; a read has no field and no value. */
struct drawn_access {
    uint64_t key;
    uint64_t value_seed;
    uint8_t owner;
    uint8_t field;
    bool write;
};

struct drawn_transaction {
    uint32_t count;
    uint32_t rounds_declared;
    struct drawn_access accesses[DW_ROUND_MAX_ACCESSES];
};

_Static_assert(sizeof(struct drawn_transaction) <= DW_PROCEDURE_BYTES, "a transaction fits a procedure");
_Static_assert(alignof(struct drawn_transaction) <= 8, "a procedure's state is aligned to 8");
_Static_assert(DW_ROUND_MAX_ACCESSES *DW_YCSB_FIELD_BYTES <= DW_ROUND_VALUE_BYTES, "all values fit a round");
_Static_assert(DW_TABLE_MAX_FIELDS <= UINT8_MAX && DW_MAX_NODES <= UINT8_MAX, "numbers fit a byte");

static const struct dw_parameter parameters[] = {
    {"records", DW_PARAMETER_INTEGER, offsetof(struct dw_ycsb_parameters, records), 1, 1e9,
     "rows of each compute node"},
    {"record_bytes", DW_PARAMETER_INTEGER, offsetof(struct dw_ycsb_parameters, record_bytes), 1,
     DW_TABLE_MAX_FIELDS *DW_YCSB_FIELD_BYTES, "bytes of a row, in fields of 100"},
    {"accesses", DW_PARAMETER_INTEGER, offsetof(struct dw_ycsb_parameters, accesses), 1,
     DW_ROUND_MAX_ACCESSES, "rows that a transaction accesses, all different"},
    {"read_pct", DW_PARAMETER_NUMBER, offsetof(struct dw_ycsb_parameters, read_pct), 0, 100,
     "percent of accesses that read"},
    {"distributed_pct", DW_PARAMETER_NUMBER, offsetof(struct dw_ycsb_parameters, distributed_pct), 0, 100,
     "percent of transactions that touch another node"},
    {"remote_access_pct", DW_PARAMETER_NUMBER, offsetof(struct dw_ycsb_parameters, remote_access_pct), 0, 100,
     "percent of a distributed transaction's accesses that are remote, but at least one"},
    {"theta", DW_PARAMETER_NUMBER, offsetof(struct dw_ycsb_parameters, theta), 0, 100,
     "skew of the power law over a partition; 0 is uniform"},
};

/* With these, 5.6 % of all accesses are remote; the paper has 5 %. */
static void set_defaults(void *into)
{
    *(struct dw_ycsb_parameters *)into = (struct dw_ycsb_parameters){
        .records = 100000,
        .record_bytes = 1000,
        .accesses = 16,
        .read_pct = 50,
        .distributed_pct = 100,
        .remote_access_pct = 50,
        .theta = 0,
    };
}

/* All accesses may fall on one node, and they are different. */
static enum dw_error check(const void *from, const struct dw_deployment *deployment, char *text,
                           size_t text_size)
{
    (void)deployment;
    const struct dw_ycsb_parameters *given = from;
    if (given->records < given->accesses) {
        (void)snprintf(text, text_size,
                       "ycsb: records must be at least accesses (%" PRIu64 "), not %" PRIu64
                       ": a transaction accesses different rows",
                       given->accesses, given->records);
        return DW_ERR_RANGE;
    }
    return DW_OK;
}

static void init_table(struct dw_table *table, uint64_t record_bytes)
{
    table->name = "usertable";
    table->field_count = 0;
    uint32_t end = 0;
    while (end < record_bytes) {
        DW_ASSERT(table->field_count < DW_TABLE_MAX_FIELDS);
        table->offsets[table->field_count++] = end;
        end += DW_YCSB_FIELD_BYTES;
    }
    table->offsets[table->field_count] = (uint32_t)record_bytes;
}

static void init(void *state, const void *from, const struct dw_deployment *deployment)
{
    struct dw_ycsb *ycsb = state;
    memset(ycsb, 0, sizeof *ycsb);
    ycsb->parameters = *(const struct dw_ycsb_parameters *)from;
    ycsb->deployment = *deployment;
    DW_ASSERT(deployment->compute_nodes >= 1 && deployment->compute_nodes <= DW_MAX_NODES);
    DW_ASSERT(ycsb->parameters.accesses <= DW_ROUND_MAX_ACCESSES);
    DW_ASSERT(ycsb->parameters.records >= ycsb->parameters.accesses);
    dw_zipf_init(&ycsb->zipf, ycsb->parameters.records, ycsb->parameters.theta);
    init_table(&ycsb->table, ycsb->parameters.record_bytes);
}

static uint32_t table_count(const void *state)
{
    (void)state;
    return 1;
}

static const struct dw_table *table_at(const void *state, uint32_t table)
{
    DW_ASSERT(table == DW_YCSB_TABLE);
    return &((const struct dw_ycsb *)state)->table;
}

static uint64_t row_count(const void *state, uint32_t table, uint32_t node)
{
    DW_ASSERT(table == DW_YCSB_TABLE);
    const struct dw_ycsb *ycsb = state;
    return node < ycsb->deployment.compute_nodes ? ycsb->parameters.records : 0;
}

static uint64_t row_key(const void *state, uint32_t table, uint32_t node, uint64_t index)
{
    DW_ASSERT(table == DW_YCSB_TABLE);
    return index * ((const struct dw_ycsb *)state)->deployment.compute_nodes + node;
}

/* Little-endian, so that every machine loads the same rows; compilers make one store of it. */
static void put_word(uint8_t *bytes, uint64_t word)
{
    for (unsigned i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(word >> 8 * i);
    }
}

/* Fills from a generator of its own. */
static void fill(uint64_t seed, uint8_t *bytes, size_t size)
{
    struct dw_random random;
    dw_random_init(&random, seed);
    size_t whole = size / 8 * 8;
    for (size_t at = 0; at < whole; at += 8) {
        put_word(bytes + at, dw_random_next(&random));
    }
    uint8_t last[8];
    put_word(last, dw_random_next(&random));
    memcpy(bytes + whole, last, size - whole);
}

/* The seed of a row's bytes: one draw after each of the three, so that neighbours share nothing. */
static uint64_t row_seed(uint64_t seed, uint32_t table, uint64_t key)
{
    struct dw_random random;
    dw_random_init(&random, seed);
    dw_random_init(&random, dw_random_next(&random) ^ table);
    dw_random_init(&random, dw_random_next(&random) ^ key);
    return dw_random_next(&random);
}

static void fill_row(const void *state, uint32_t table, uint64_t key, uint8_t *row)
{
    const struct dw_ycsb *ycsb = state;
    DW_ASSERT(table == DW_YCSB_TABLE);
    fill(row_seed(ycsb->deployment.seed, table, key), row, dw_table_row_bytes(&ycsb->table));
}

/* --- the generator --- */

static bool chance(struct dw_random *random, double percent)
{
    return dw_random_unit(random) * 100 < percent;
}

static bool is_taken(const struct drawn_transaction *drawn, uint64_t key)
{
    for (uint32_t i = 0; i < drawn->count; i++) {
        if (drawn->accesses[i].key == key) {
            return true;
        }
    }
    return false;
}

/* A key of `owner` that isn't taken. Rejecting taken keys gives the law restricted to the free ones, from
 * whatever range of ranks that holds all free ones the draw is made. A few times that is the whole partition.
 * Under a steep law this might practically never hit a free key, so the ranks below the first free one are
 * left out then: no rank is more likely than that one, so a draw succeeds with a chance of at least 1 in
 * `accesses`, whatever theta. */
static uint64_t draw_key(const struct dw_ycsb *ycsb, struct dw_random *random, uint32_t owner,
                         const struct drawn_transaction *drawn)
{
    for (int tries = 0; tries < 4; tries++) {
        uint64_t key = row_key(ycsb, DW_YCSB_TABLE, owner, dw_zipf_draw(&ycsb->zipf, random));
        if (!is_taken(drawn, key)) {
            return key;
        }
    }
    uint64_t first_free = 0;
    while (is_taken(drawn, row_key(ycsb, DW_YCSB_TABLE, owner, first_free))) {
        first_free++;
    }
    for (;;) {
        uint64_t rank = dw_zipf_draw_from(&ycsb->zipf, random, first_free);
        uint64_t key = row_key(ycsb, DW_YCSB_TABLE, owner, rank);
        if (!is_taken(drawn, key)) {
            return key;
        }
    }
}

static uint32_t draw_other_node(const struct dw_ycsb *ycsb, struct dw_random *random, uint32_t node)
{
    uint32_t other = (uint32_t)dw_random_below(random, ycsb->deployment.compute_nodes - 1);
    return other < node ? other : other + 1;
}

static void draw_access(const struct dw_ycsb *ycsb, struct dw_random *random, uint32_t owner,
                        struct drawn_transaction *drawn)
{
    struct drawn_access access = {.owner = (uint8_t)owner};
    access.key = draw_key(ycsb, random, owner, drawn);
    access.write = !chance(random, ycsb->parameters.read_pct);
    if (access.write) {
        access.field = (uint8_t)dw_random_below(random, ycsb->table.field_count);
        access.value_seed = dw_random_next(random);
    }
    drawn->accesses[drawn->count++] = access;
}

/* Draws which accesses of a distributed transaction are remote. At least one is, or it would not be
 * distributed. */
static void draw_remote(const struct dw_ycsb *ycsb, struct dw_random *random, bool *remote)
{
    uint64_t accesses = ycsb->parameters.accesses;
    bool any = false;
    for (uint64_t i = 0; i < accesses; i++) {
        remote[i] = chance(random, ycsb->parameters.remote_access_pct);
        any = any || remote[i];
    }
    if (!any) {
        remote[dw_random_below(random, accesses)] = true;
    }
}

static void generate(const void *state, struct dw_random *random, uint32_t node,
                     struct dw_procedure *procedure)
{
    const struct dw_ycsb *ycsb = state;
    DW_ASSERT(node < ycsb->deployment.compute_nodes);
    procedure->kind = 0;
    memset(procedure->padding, 0, sizeof procedure->padding);
    procedure->distributed =
        ycsb->deployment.compute_nodes > 1 && chance(random, ycsb->parameters.distributed_pct);
    bool remote[DW_ROUND_MAX_ACCESSES] = {false};
    if (procedure->distributed) {
        draw_remote(ycsb, random, remote);
    }
    struct drawn_transaction *drawn = (struct drawn_transaction *)(void *)procedure->state;
    drawn->count = 0;
    drawn->rounds_declared = 0;
    for (uint64_t i = 0; i < ycsb->parameters.accesses; i++) {
        draw_access(ycsb, random, remote[i] ? draw_other_node(ycsb, random, node) : node, drawn);
    }
}

/* --- the stored procedure: one round, then commit --- */

static void declare(const struct dw_ycsb *ycsb, const struct drawn_access *access, struct dw_round *round)
{
    if (!access->write) {
        dw_round_read(round, access->owner, DW_YCSB_TABLE, access->key);
        return;
    }
    uint32_t bytes = dw_table_field_bytes(&ycsb->table, access->field);
    uint8_t *value = dw_round_write(round, access->owner, DW_YCSB_TABLE, access->key, access->field, bytes);
    fill(access->value_seed, value, bytes);
}

static enum dw_procedure_step next(const void *state, struct dw_procedure *procedure,
                                   const struct dw_access_result *results, size_t count,
                                   struct dw_round *round)
{
    (void)results;
    struct drawn_transaction *drawn = (struct drawn_transaction *)(void *)procedure->state;
    if (drawn->rounds_declared > 0) {
        DW_ASSERT(count == drawn->count);
        return DW_PROCEDURE_COMMIT;
    }
    dw_round_clear(round);
    for (uint32_t i = 0; i < drawn->count; i++) {
        declare(state, &drawn->accesses[i], round);
    }
    drawn->rounds_declared = 1;
    return DW_PROCEDURE_ACCESS;
}

const struct dw_workload dw_ycsb = {
    .name = "ycsb",
    .parameters = parameters,
    .parameter_count = sizeof parameters / sizeof *parameters,
    .parameter_bytes = sizeof(struct dw_ycsb_parameters),
    .state_bytes = sizeof(struct dw_ycsb),
    .defaults = set_defaults,
    .check = check,
    .init = init,
    .table_count = table_count,
    .table = table_at,
    .row_count = row_count,
    .row_key = row_key,
    .fill_row = fill_row,
    .generate = generate,
    .next = next,
};
