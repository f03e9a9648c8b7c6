/* Options: reads tables whose fields are rows (base/option.h), and lists all subjects. Stored
 * strings are borrowed from the table that was read. Raises for every fault. Callers: its floor. */
#ifndef AH_LUA_OPTIONS_H
#define AH_LUA_OPTIONS_H

#include <lua.h>

#include "base/option.h"

/* The subjects. The file that owns the configured values defines each subject. */
#define AH_SUBJECTS(X)                                                                             \
    X(http_limits)                                                                                 \
    X(options)                                                                                     \
    X(loop_detector)                                                                               \
    X(fallback)                                                                                    \
    X(fallback_model)                                                                              \
    X(budget)                                                                                      \
    X(price)                                                                                       \
    X(budget_use)                                                                                  \
    X(http)                                                                                        \
    X(serve)                                                                                       \
    X(discover)                                                                                    \
    X(gate)                                                                                        \
    X(tool_group)                                                                                  \
    X(guards)                                                                                      \
    X(feedback)                                                                                    \
    X(image)                                                                                       \
    X(call)                                                                                        \
    X(result)                                                                                      \
    X(search)                                                                                      \
    X(ask)                                                                                         \
    X(events)                                                                                      \
    X(run_with)                                                                                    \
    X(open)                                                                                        \
    X(fork)                                                                                        \
    X(rewind)                                                                                      \
    X(capabilities)                                                                                \
    X(annotations)                                                                                 \
    X(tool_common)                                                                                 \
    X(tool)                                                                                        \
    X(method)                                                                                      \
    X(entity)                                                                                      \
    X(section_common)                                                                              \
    X(section)                                                                                     \
    X(tools_section)                                                                               \
    X(prompt)                                                                                      \
    X(type)                                                                                        \
    X(slice)                                                                                       \
    X(session)                                                                                     \
    X(filesystem)                                                                                  \
    X(fs_read)                                                                                     \
    X(fs_edit)                                                                                     \
    X(fs_delete)                                                                                   \
    X(fs_rename)                                                                                   \
    X(fs_list)                                                                                     \
    X(fs_glob)                                                                                     \
    X(fs_grep)                                                                                     \
    X(fs_lines)                                                                                    \
    X(terminal)                                                                                    \
    X(styled)                                                                                      \
    X(cursor)                                                                                      \
    X(connection)                                                                                  \
    X(use)                                                                                         \
    X(run)                                                                                         \
    X(watch)                                                                                       \
    X(server_answer)                                                                               \
    X(server_head)                                                                                 \
    X(server_event)                                                                                \
    X(process_time)                                                                                \
    X(process_line)                                                                                \
    X(process_wait)                                                                                \
    X(process)                                                                                     \
    X(process_limits)                                                                              \
    X(process_sandbox)                                                                             \
    X(store)                                                                                       \
    X(export)                                                                                      \
    X(import)                                                                                      \
    X(verify)                                                                                      \
    X(store_asks)                                                                                  \
    X(conversations)                                                                               \
    X(records)                                                                                     \
    X(store_search)                                                                                \
    X(respond)

#define AH_DECLARE_SUBJECT(name) extern const ah_subject ah_subject_##name;
AH_SUBJECTS(AH_DECLARE_SUBJECT)
#undef AH_DECLARE_SUBJECT

/* Names of the kinds ("boolean", ...) by the number of their bit. */
extern const char *const ah_option_kind_name[AH_OPT_KINDS];

/* Raises unless the value at idx is a table that has only fields of the subject, each of an allowed
 * kind and range, and all that are needed. Stores the values of rows that store in *to (NULL:
 * none); absent fields leave *to unchanged. The table at idx is replaced by a copy of our own, as
 * by ah_lua_fields_check, from which the stored strings are borrowed. */
void ah_options_read(lua_State *L, int idx, const ah_subject *s, void *to);
/* The same under another name in messages. */
void ah_options_read_as(lua_State *L, int idx, const ah_subject *s, const char *what, void *to);
/* Returns the first field of the table at idx that is not allowed in that place (AH_IN_...); NULL:
 * none. */
const char *ah_options_out_of(lua_State *L, int idx, const ah_subject *s, unsigned where);
/* Returns the subject of C of that type, or NULL. */
const ah_subject *ah_subject_of_type(const char *type);
/* Returns the n-th subject, from 1, for which the library's Lua has made a reader (ah._reader);
 * NULL: there are fewer. */
const ah_subject *ah_reader_subject(lua_State *L, int n);
/* Stores the values of rows that store, from a table that was read or from a plain copy of it. */
void ah_options_take(lua_State *L, int idx, const ah_subject *s, void *to);

#endif
