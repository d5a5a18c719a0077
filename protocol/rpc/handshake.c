#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/internal.h"

static const char key_role[] = "dw-role";
static const char key_node[] = "dw-node";
static const char key_run_id[] = "dw-run-id";
static const char key_version[] = "dw-version";
static const char key_protocol[] = "dw-protocol";

enum { VERSION = 32 };

static const char *role_name(enum dw_role role)
{
    switch (role) {
    case DW_ROLE_STORAGE:
        return "storage";
    case DW_ROLE_COMPUTE:
        return "compute";
    case DW_ROLE_CLIENT:
        return "client";
    }
    return "unknown";
}

/* What may stand in metadata, and in a line that quotes it. */
static bool is_plain(const char *word, size_t longest)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t length = strnlen(word, longest + 1);
    return length <= longest && strspn(word, allowed) == length;
}

bool rpc_run_id_valid(const char *run_id)
{
    return is_plain(run_id, DW_MAX_RUN_ID);
}

bool rpc_protocol_valid(const char *protocol)
{
    return is_plain(protocol, DW_MAX_PROTOCOL);
}

void rpc_identity_text(const struct dw_identity *identity, char *text, size_t text_size)
{
    if (identity->role == DW_ROLE_CLIENT) {
        snprintf(text, text_size, "a client");
    } else {
        snprintf(text, text_size, "%s node %u", role_name(identity->role), identity->node);
    }
}

static grpc_metadata item(const char *key, const char *value)
{
    return (grpc_metadata){.key = grpc_slice_from_static_string(key),
                           .value = grpc_slice_from_copied_string(value)};
}

void rpc_hello_fill(struct rpc_hello *hello, const struct dw_identity *self)
{
    char node[12];
    snprintf(node, sizeof node, "%u", self->node);
    hello->items[0] = item(key_role, role_name(self->role));
    hello->items[1] = item(key_node, node);
    hello->items[2] = item(key_run_id, self->run_id);
    hello->items[3] = item(key_version, DW_VERSION);
    hello->items[4] = item(key_protocol, self->protocol);
}

void rpc_hello_release(struct rpc_hello *hello)
{
    for (size_t i = 0; i < RPC_HELLO_ITEMS; i++) {
        grpc_slice_unref(hello->items[i].value);
    }
}

/* Copies the value of a key; false if it is missing or does not fit. */
static bool find(const grpc_metadata_array *metadata, const char *key, char *value, size_t value_size)
{
    for (size_t i = 0; i < metadata->count; i++) {
        const grpc_metadata *each = &metadata->metadata[i];
        if (grpc_slice_str_cmp(each->key, key) == 0) {
            rpc_slice_text(each->value, value, value_size);
            return GRPC_SLICE_LENGTH(each->value) < value_size;
        }
    }
    return false;
}

static bool parse_role(const char *text, enum dw_role *role)
{
    for (int each = DW_ROLE_STORAGE; each <= DW_ROLE_CLIENT; each++) {
        if (strcmp(text, role_name((enum dw_role)each)) == 0) {
            *role = (enum dw_role)each;
            return true;
        }
    }
    return false;
}

static bool parse_node(const char *text, uint32_t *node)
{
    char *end = NULL;
    unsigned long value = strtoul(text, &end, 10);
    *node = (uint32_t)value;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && value <= UINT32_MAX;
}

static bool parse(const grpc_metadata_array *metadata, struct dw_identity *peer, char version[VERSION])
{
    char role[12];
    char node[12];
    *peer = (struct dw_identity){0};
    return find(metadata, key_role, role, sizeof role) && parse_role(role, &peer->role) &&
           find(metadata, key_node, node, sizeof node) && parse_node(node, &peer->node) &&
           find(metadata, key_run_id, peer->run_id, sizeof peer->run_id) && rpc_run_id_valid(peer->run_id) &&
           find(metadata, key_version, version, VERSION) &&
           find(metadata, key_protocol, peer->protocol, sizeof peer->protocol) &&
           rpc_protocol_valid(peer->protocol);
}

/* Compares version, run id and, between compute nodes, the protocol of a caller and a server; on a mismatch
 * *text names both sides. A client, and only a client, may leave its run id empty and so talk with any
 * deployment. */
static bool same_deployment(const struct dw_identity *caller, const char *caller_version,
                            const struct dw_identity *server, const char *server_version, char *text,
                            size_t text_size)
{
    char from[40];
    char at[40];
    rpc_identity_text(caller, from, sizeof from);
    rpc_identity_text(server, at, sizeof at);
    if (strcmp(caller_version, server_version) != 0) {
        snprintf(text, text_size, "version \"%s\" of %s is refused by %s, whose version is \"%s\"",
                 caller_version, from, at, server_version);
        return false;
    }
    bool any = caller->role == DW_ROLE_CLIENT && caller->run_id[0] == '\0';
    if (!any && strcmp(caller->run_id, server->run_id) != 0) {
        snprintf(text, text_size, "run id \"%s\" of %s is refused by %s, whose run id is \"%s\"",
                 caller->run_id, from, at, server->run_id);
        return false;
    }
    bool both_commit = caller->role == DW_ROLE_COMPUTE && server->role == DW_ROLE_COMPUTE;
    if (both_commit && strcmp(caller->protocol, server->protocol) != 0) {
        snprintf(text, text_size,
                 "protocol \"%s\" of %s is refused by %s, whose protocol is \"%s\"; start both with the same "
                 "--protocol",
                 caller->protocol, from, at, server->protocol);
        return false;
    }
    return true;
}

bool rpc_hello_accept(const struct dw_identity *self, const grpc_metadata_array *metadata,
                      struct dw_identity *peer, char *text, size_t text_size)
{
    char version[VERSION];
    if (!parse(metadata, peer, version)) {
        char at[40];
        rpc_identity_text(self, at, sizeof at);
        snprintf(text, text_size,
                 "a caller without a valid Dogwood hand-shake is refused by %s, run id \"%s\"", at,
                 self->run_id);
        return false;
    }
    return same_deployment(peer, version, self, DW_VERSION, text, text_size);
}

bool rpc_hello_check(const struct dw_identity *self, const struct dw_identity *expect, const char *address,
                     const grpc_metadata_array *metadata, struct dw_identity *peer, bool *present, char *text,
                     size_t text_size)
{
    char version[VERSION];
    *present = parse(metadata, peer, version);
    if (!*present) {
        snprintf(text, text_size, "%.100s does not answer as a Dogwood node; check the address", address);
        return false;
    }
    if (expect != NULL && (peer->role != expect->role || peer->node != expect->node)) {
        char who[40];
        char wanted[40];
        rpc_identity_text(peer, who, sizeof who);
        rpc_identity_text(expect, wanted, sizeof wanted);
        snprintf(text, text_size, "%s answers at %.100s, where %s was expected; check the addresses", who,
                 address, wanted);
        return false;
    }
    return same_deployment(self, DW_VERSION, peer, version, text, text_size);
}
