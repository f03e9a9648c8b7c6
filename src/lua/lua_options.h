/* The reader of tables whose fields are rows (base/option.h), and all subjects that there are. */
#ifndef AH_LUA_OPTIONS_H
#define AH_LUA_OPTIONS_H

#include <lua.h>

#include "base/option.h"

/* Each is defined by the file that owns what it configures. */
#define AH_SUBJECTS(X)                                                                             \
    X(http_limits)                                                                                 \
    X(options)                                                                                     \
    X(loop_detector)                                                                               \
    X(fallback)                                                                                    \
    X(fallback_model)                                                                              \
    X(budget)                                                                                      \
    X(price)                                                                                       \
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
    X(run_with)                                                                                    \
    X(open)                                                                                        \
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
    X(process_sandbox)

#define AH_DECLARE_SUBJECT(name) extern const ah_subject ah_subject_##name;
AH_SUBJECTS(AH_DECLARE_SUBJECT)
#undef AH_DECLARE_SUBJECT

/* "boolean" and so on, by the bits of the kinds. */
extern const char *const ah_option_kind_name[AH_OPT_KINDS];

/* Raises unless the value at idx is a table with fields of the subject alone, each of a kind and in
 * a range that its row allows, and none that is needed missing, and stores those that rows store in
 * *to (NULL: none); what is absent stays as it is there. From here on the table at idx is one of
 * our own, as of ah_lua_fields_check, and what was stored of it is lent by it. */
void ah_options_read(lua_State *L, int idx, const ah_subject *s, void *to);
/* The same under another name in messages. */
void ah_options_read_as(lua_State *L, int idx, const ah_subject *s, const char *what, void *to);
/* The first field of the table at idx that may not stand in that place (AH_IN_...); NULL: none. */
const char *ah_options_out_of(lua_State *L, int idx, const ah_subject *s, unsigned where);
/* The subject of C of that type, or NULL. */
const ah_subject *ah_subject_of_type(const char *type);
/* The n-th subject that the library's Lua has made a reader of (ah._reader), from 1; NULL: there
 * are less. */
const ah_subject *ah_reader_subject(lua_State *L, int n);
/* Stores what rows store of a table that was read, or of a plain copy of it. */
void ah_options_take(lua_State *L, int idx, const ah_subject *s, void *to);

#endif
