/* aborts.h - does a function trip an assertion? It runs in a child, so that the test goes on. */
#ifndef DW_TESTS_CORE_ABORTS_H
#define DW_TESTS_CORE_ABORTS_H

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static inline bool aborts(void (*function)(const void *), const void *argument)
{
    pid_t child = fork();
    if (child == 0) {
        /* The message is expected; it would only confuse who reads the test's output. */
        int null = open("/dev/null", O_WRONLY);
        dup2(null, STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        function(argument);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

#endif
