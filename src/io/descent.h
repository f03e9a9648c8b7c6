/* The processes below this one: found, signalled, counted. For a process that is a subreaper, so
 * that what loses its parent below becomes its child. Only async-signal-safe calls, no memory but
 * the stack. Where the system cannot tell what is below a process, nothing is found, and what is
 * left is unknown. */
#ifndef AH_IO_DESCENT_H
#define AH_IO_DESCENT_H

#include <stdbool.h>
#include <sys/types.h>

/* AH_PROCESS_GROUP: the build of systems that have no more than process groups. */
#if defined(__linux__) && !defined(AH_PROCESS_GROUP)
#define AH_HAS_DESCENT 1
#else
#define AH_HAS_DESCENT 0
#endif

enum { AH_LEFT_UNKNOWN = -1 };

/* Descriptors that are opened before there is anything below, and kept: who takes from this process
 * the right to open files cannot hide its children from it. -1: none. */
typedef struct ah_descent {
    int proc;     /* the folder /proc */
    int children; /* the process's own list; read anew from its beginning each time */
    pid_t spared; /* one below that is never signalled, nor is its group; 0: none */
} ah_descent;

/* Opens the lists of this process, or of a child that has one thread. */
void ah_descent_open(ah_descent *d);
void ah_descent_open_of(ah_descent *d, pid_t child);
void ah_descent_close(ah_descent *d);

/* Sends a signal to all processes below. KILL goes to their process groups first, each at once with
 * the forks in it. Processes forked meanwhile are found by the next call: repeat it until waitpid
 * says that there is none. */
void ah_descent_signal(const ah_descent *d, int sig);

/* Returns the number of processes below, or AH_LEFT_UNKNOWN if not all could be looked at. */
int ah_descent_count(const ah_descent *d);

#endif
