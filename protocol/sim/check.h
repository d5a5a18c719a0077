/* check.h - what must hold in every state of a world. */
#ifndef DW_SIM_CHECK_H
#define DW_SIM_CHECK_H

#include "sim/world.h"

/* The first property that the world violates, by its name, or NULL:
 *
 *   irreversible      a node, once decided, stays so, over crashes too (AC2)
 *   agreement         no two nodes, nor a node and the caller, have different outcomes (AC1)
 *   commit-validity   whoever committed: every listed log began with VOTE_YES; in 2PC every participant's
 * did, and the coordinator's log holds COMMIT (AC3, AC4, Definition 1) abort-validity    whoever aborted: not
 * every listed log began with VOTE_YES, and none can any more hold all (AC1) no-conflict       no log ever
 * answered CONFLICT no-alarm          no node raised an alarm other than FENCED vote-is-held      a node that
 * serves, and whose log holds VOTE_YES without a decision, is in doubt or decided and holds its locks until
 * it is: no lost vote, no early lock release (section 3.4)
 */
const char *dw_check_world(const struct dw_world *world, const struct dw_protocol *protocol);

/* Every node that is up has decided and forgotten; nothing is left to do but for who is down. */
bool dw_world_is_settled(const struct dw_world *world);

/* Every writer that is up knows the outcome. `writers` that never took part (down all the time) are not
 * asked. */
bool dw_world_live_decided(const struct dw_world *world);

#endif
