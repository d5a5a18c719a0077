/* small_cluster.h - compute nodes in one process, in virtual time: does what a node counts agree with what it
 * did? Everything is the node's own code but for the network and the log: a message takes one hop, a log
 * request is answered by the log rule two hops after it was sent. */
#ifndef DW_TESTS_COMPUTE_SMALL_CLUSTER_H
#define DW_TESTS_COMPUTE_SMALL_CLUSTER_H

#include "compute/slot.h"
#include "workloads/ycsb.h"

enum { SMALL_MAX_NODES = 3, SMALL_HOP_US = 100 };

/* What travelled and was logged, counted by the network and the log and not by the nodes. */
struct small_tally {
    uint64_t messages;   /* between nodes, without ACK */
    uint64_t log_writes; /* appended, without END */
};

struct small_log_entry {
    struct dw_txn_id txn;
    uint32_t log;
    struct dw_entry entry;
};

struct small_cluster {
    uint32_t count;
    struct cluster addresses;
    struct dw_ycsb_parameters parameters;
    struct runtime_options options[SMALL_MAX_NODES];
    struct runtime nodes[SMALL_MAX_NODES];
    struct dw_buffer inbox[SMALL_MAX_NODES]; /* log replies: on their way for one hop */
    struct small_log_entry *entries;         /* a hash table of fixed size */
    uint64_t position;
    struct small_tally tally;
    bool mute[SMALL_MAX_NODES];        /* what this node sends to other nodes is lost */
    bool log_is_silent;                /* log requests are lost */
    uint64_t skew_us[SMALL_MAX_NODES]; /* by which a node's clock is ahead */
};

/* So many nodes that serve, with a row each for `records` keys. Timers last a minute; tests change `options`
 * and `parameters` before small_start. */
void small_open(struct small_cluster *cluster, uint32_t nodes, const char *protocol);
void small_start(struct small_cluster *cluster);
/* Also of one that is closed already, or was never opened but is zero. */
void small_close(struct small_cluster *cluster);

/* Virtual time, and by how much it goes on whenever somebody asks for it (0 after small_open). */
uint64_t small_now_us(void);
void small_set_step_us(uint64_t step_us);

/* Every node starts its load. */
void small_begin(struct small_cluster *cluster, uint64_t warmup_us, uint64_t duration_us);
/* One hop: what was sent arrives, and every node does what is due. */
void small_hop(struct small_cluster *cluster);
/* Hops until all loads are in that state, or a later one. */
void small_run(struct small_cluster *cluster, enum load_state state);

/* Sums over the nodes of a counter, at an offset within struct stats. */
uint64_t small_sum_at(const struct small_cluster *cluster, size_t offset);
#define small_sum(cluster, member) small_sum_at(cluster, offsetof(struct stats, member))

uint32_t small_locks(const struct small_cluster *cluster);

#endif
