#include "compute/failpoint.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const names[FAILPOINT_COUNT] = {
#define DW_FAILPOINT_NAME(name, text) text,
    DW_FAILPOINTS(DW_FAILPOINT_NAME)
#undef DW_FAILPOINT_NAME
};

const char *failpoint_name(enum failpoint point)
{
    return names[point];
}

/* The point whose name is the first `length` bytes of `text`, or FAILPOINT_COUNT. */
static enum failpoint find(const char *text, size_t length)
{
    unsigned point = 0;
    while (point < FAILPOINT_COUNT &&
           (strlen(names[point]) != length || strncmp(names[point], text, length) != 0)) {
        point++;
    }
    return (enum failpoint)point;
}

/* A whole number up to a million at *text, which is moved past it. */
static bool take_number(const char **text, uint32_t *number)
{
    char *end = NULL;
    unsigned long value = strtoul(*text, &end, 10);
    if (**text < '0' || **text > '9' || value > 1000000) {
        return false;
    }
    *number = (uint32_t)value;
    *text = end;
    return true;
}

static bool take_word(const char **text, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(*text, word, length) != 0) {
        return false;
    }
    *text += length;
    return true;
}

static bool take_action(const char **text, struct failpoint_setting *setting)
{
    if (take_word(text, "delay:")) {
        setting->action = FAILPOINT_DELAY;
        return take_number(text, &setting->argument);
    }
    static const struct {
        const char *word;
        enum failpoint_action action;
    } actions[] = {{"off", FAILPOINT_OFF},
                   {"kill", FAILPOINT_KILL},
                   {"stop", FAILPOINT_STOP},
                   {"error", FAILPOINT_ERROR}};
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        if (take_word(text, actions[i].word)) {
            setting->action = actions[i].action;
            return true;
        }
    }
    return false;
}

enum dw_error failpoints_set(struct failpoints *failpoints, const char *spec, char *text, size_t text_size)
{
    const char *rest = strchr(spec, '=');
    enum failpoint point = find(spec, rest != NULL ? (size_t)(rest - spec) : strlen(spec));
    struct failpoint_setting setting = {0};
    if (rest == NULL || point == FAILPOINT_COUNT) {
        snprintf(text, text_size, "failpoint '%s': write NAME=ACTION with a NAME such as %s", spec, names[0]);
        return DW_ERR_ARGUMENT;
    }
    rest++;
    bool good = take_action(&rest, &setting);
    if (good && *rest == '@') {
        rest++;
        good = take_number(&rest, &setting.nth) && setting.nth > 0;
    }
    if (!good || *rest != '\0') {
        snprintf(text, text_size,
                 "failpoint '%s': the action is off, kill, stop, delay:MS or error, then @N or nothing",
                 spec);
        return DW_ERR_ARGUMENT;
    }
    failpoints->points[point] = setting;
    return DW_OK;
}

static void pause_ms(uint32_t milliseconds)
{
    struct timespec time = {.tv_sec = milliseconds / 1000, .tv_nsec = (long)(milliseconds % 1000) * 1000000};
    while (nanosleep(&time, &time) != 0) {
    }
}

bool failpoints_reached(struct failpoints *failpoints, enum failpoint point)
{
    struct failpoint_setting *setting = &failpoints->points[point];
    setting->hits++;
    if (setting->action == FAILPOINT_OFF || (setting->nth != 0 && setting->hits != setting->nth)) {
        return false;
    }
    fprintf(stderr, "failpoint %s reached\n", names[point]);
    switch (setting->action) {
    case FAILPOINT_KILL:
        kill(getpid(), SIGKILL);
        return true;
    case FAILPOINT_STOP:
        kill(getpid(), SIGSTOP);
        return false;
    case FAILPOINT_DELAY:
        pause_ms(setting->argument);
        return false;
    case FAILPOINT_ERROR:
        return true;
    case FAILPOINT_OFF:
        return false;
    }
    return false;
}
