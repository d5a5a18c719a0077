#include "core/message.h"

const char *dw_message_kind_name(enum dw_message_kind kind)
{
    switch (kind) {
    case DW_MSG_VOTE_REQUEST:
        return "VOTE_REQUEST";
    case DW_MSG_READ_REQUEST:
        return "READ_REQUEST";
    case DW_MSG_VOTE:
        return "VOTE";
    case DW_MSG_DECISION:
        return "DECISION";
    case DW_MSG_ACK:
        return "ACK";
    case DW_MSG_INQUIRY:
        return "INQUIRY";
    case DW_MSG_INQUIRY_REPLY:
        return "INQUIRY_REPLY";
    }
    return "?";
}

const char *dw_vote_name(enum dw_vote vote)
{
    switch (vote) {
    case DW_VOTE_YES:
        return "YES";
    case DW_VOTE_NO:
        return "NO";
    case DW_VOTE_COMMITTED:
        return "COMMITTED";
    case DW_VOTE_HELD:
        return "HELD";
    case DW_VOTE_REFUSED:
        return "REFUSED";
    }
    return "?";
}

const char *dw_outcome_name(enum dw_outcome outcome)
{
    switch (outcome) {
    case DW_OUTCOME_UNKNOWN:
        return "UNKNOWN";
    case DW_OUTCOME_COMMITTED:
        return "COMMITTED";
    case DW_OUTCOME_ABORTED:
        return "ABORTED";
    }
    return "?";
}
