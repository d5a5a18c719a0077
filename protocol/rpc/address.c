#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/internal.h"

enum { HOST = 256, PORT = 6 };

/* Splits "host:port" or "[v6]:port"; false if it is neither. */
static bool split(const char *address, char host[HOST], char port[PORT])
{
    const char *colon = strrchr(address, ':');
    if (colon == NULL || colon == address || strlen(colon + 1) == 0 || strlen(colon + 1) >= PORT ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1)) {
        return false;
    }
    const char *start = address;
    const char *end = colon;
    if (*start == '[') {
        start++;
        end--;
        if (end <= start || *end != ']') {
            return false;
        }
    } else if (memchr(start, ':', (size_t)(end - start)) != NULL) {
        return false;
    }
    size_t length = (size_t)(end - start);
    if (length >= HOST) {
        return false;
    }
    memcpy(host, start, length);
    host[length] = '\0';
    memcpy(port, colon + 1, strlen(colon + 1) + 1);
    return true;
}

/* IPv4 comes first on both sides, so that "localhost" means the same to who listens and who connects. */
static const struct addrinfo *choose(const struct addrinfo *list)
{
    const struct addrinfo *six = NULL;
    for (const struct addrinfo *each = list; each != NULL; each = each->ai_next) {
        if (each->ai_family == AF_INET) {
            return each;
        }
        if (six == NULL && each->ai_family == AF_INET6) {
            six = each;
        }
    }
    return six;
}

static int resolve(const char *host, const char *port, struct addrinfo **list)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    return getaddrinfo(host, port, &hints, list);
}

static bool fill(struct rpc_address *resolved, const struct addrinfo *chosen, const char *port)
{
    char host[NI_MAXHOST > 200 ? 200 : NI_MAXHOST];
    if (chosen == NULL ||
        getnameinfo(chosen->ai_addr, chosen->ai_addrlen, host, sizeof host, NULL, 0, NI_NUMERICHOST) != 0) {
        return false;
    }
    bool six = chosen->ai_family == AF_INET6;
    snprintf(resolved->numeric, sizeof resolved->numeric, six ? "[%s]:%s" : "%s:%s", host, port);
    snprintf(resolved->target, sizeof resolved->target, six ? "ipv6:[%s]:%s" : "ipv4:%s:%s", host, port);
    return true;
}

enum dw_error rpc_resolve(const char *address, bool listening, struct rpc_address *resolved, char *text,
                          size_t text_size)
{
    char host[HOST];
    char port[PORT];
    if (!split(address, host, port)) {
        snprintf(text, text_size, "address \"%.100s\" is not HOST:PORT; write for example 127.0.0.1:7001",
                 address);
        return DW_ERR_ADDRESS;
    }
    long number = strtol(port, NULL, 10);
    if (number > 65535 || (number == 0 && !listening)) {
        snprintf(text, text_size, "port %s in \"%.100s\" is out of range; choose one of %d to 65535", port,
                 address, listening ? 0 : 1);
        return DW_ERR_ADDRESS;
    }
    snprintf(resolved->text, sizeof resolved->text, "%s", address);
    struct addrinfo *list = NULL;
    int failure = resolve(host, port, &list);
    bool found = failure == 0 && fill(resolved, choose(list), port);
    if (list != NULL) {
        freeaddrinfo(list);
    }
    if (!found) {
        snprintf(text, text_size, "host \"%.100s\" cannot be resolved (%s); check the name", host,
                 failure != 0 ? gai_strerror(failure) : "no usable address");
        return DW_ERR_ADDRESS;
    }
    return DW_OK;
}

/* The error that binding there gives, or 0. */
static int bind_errno(const struct addrinfo *chosen)
{
    if (chosen == NULL) {
        return EADDRNOTAVAIL;
    }
    int one = 1;
    int descriptor = socket(chosen->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) {
        return errno;
    }
    int failure = setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
                          bind(descriptor, chosen->ai_addr, chosen->ai_addrlen) != 0 ||
                          listen(descriptor, 1) != 0
                      ? errno
                      : 0;
    close(descriptor);
    return failure;
}

void rpc_explain_listen(const struct rpc_address *address, char *text, size_t text_size)
{
    char host[HOST];
    char port[PORT];
    struct addrinfo *list = NULL;
    int failure = EADDRNOTAVAIL;
    if (split(address->text, host, port) && resolve(host, port, &list) == 0) {
        failure = bind_errno(choose(list));
        freeaddrinfo(list);
    }
    if (failure == EADDRINUSE) {
        snprintf(text, text_size, "port %s on %.100s is in use; choose another or port 0", port, host);
    } else if (failure == EADDRNOTAVAIL) {
        snprintf(text, text_size, "%.100s is no address of this machine; listen on 127.0.0.1 or 0.0.0.0",
                 address->text);
    } else if (failure == EACCES) {
        snprintf(text, text_size, "port %s on %.100s is reserved for root; choose one above 1023", port,
                 host);
    } else {
        snprintf(text, text_size, "cannot listen on %.100s (%s); choose another address", address->text,
                 failure != 0 ? strerror(failure) : "refused by gRPC");
    }
}
