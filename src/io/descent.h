/* Finds, signals and counts the processes below this one. This process must be a subreaper, so that
 * orphans below become its children. Uses only async-signal-safe calls and no memory but the stack;
 * ah_descent owns its two descriptors. If the system cannot list the processes below another, none
 * are found, and the number left is unknown. Callers: its floor. */
#ifndef AH_IO_DESCENT_H
#define AH_IO_DESCENT_H

#include <stdbool.h>
#include <sys/types.h>

/* AH_PROCESS_GROUP builds the variant of systems that have process groups only. */
#if defined(__linux__) && !defined(AH_PROCESS_GROUP)
#define AH_HAS_DESCENT 1
#else
#define AH_HAS_DESCENT 0
#endif

enum { AH_LEFT_UNKNOWN = -1 };

/* Descriptors opened before any process is below and then kept, so that a process that takes away
 * the right to open files cannot hide its children. -1: not open. */
typedef struct ah_descent {
    int proc;     /* the folder /proc */
    int children; /* list of the process's children; read from its start each time */
    pid_t spared; /* a process below that is never signalled, nor is its group; 0: none */
} ah_descent;

/* Opens the lists of this process, or of a child with one thread. */
void ah_descent_open(ah_descent *d);
void ah_descent_open_of(ah_descent *d, pid_t child);
void ah_descent_close(ah_descent *d);

/* Sends a signal to all processes below. KILL goes to their process groups first, so that forks
 * within a group are killed too. Processes forked meanwhile are found by the next call: repeat it
 * until waitpid reports no children. */
void ah_descent_signal(const ah_descent *d, int sig);

/* Returns the number of processes below, or AH_LEFT_UNKNOWN if not all lists could be read. */
int ah_descent_count(const ah_descent *d);

#endif
