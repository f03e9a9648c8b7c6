/* The common part of file stores: initialization, error messages, and lists of entries. */
#include "base/backing.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    DEFAULT_FILE = 8 << 20,
    DEFAULT_TOTAL = 64 << 20,
    DEFAULT_FILES = 10000,
    DEFAULT_DEPTH = 32
};

void ah_fs_init(ah_fs *fs, const ah_fs_store *store, const ah_mem *mem, const ah_fs_options *o)
{
    *fs = (ah_fs){.store = store, .mem = mem, .refs = 1};
    if (o)
        fs->o = *o;
    ah_text_ref(fs->o.allow);
    if (!fs->o.max_file)
        fs->o.max_file = DEFAULT_FILE;
    if (!fs->o.max_total)
        fs->o.max_total = DEFAULT_TOTAL;
    if (!fs->o.max_files)
        fs->o.max_files = DEFAULT_FILES;
    if (fs->o.max_depth <= 0)
        fs->o.max_depth = DEFAULT_DEPTH;
    if (fs->o.max_depth > AH_FS_MAX_DEPTH)
        fs->o.max_depth = AH_FS_MAX_DEPTH;
}

const char *ah_fs_kind_name(ah_fs_kind kind)
{
    static const char *const names[] = {"absent", "file", "folder", "link", "other"};

    return names[kind];
}

/* -- failures -------------------------------------------------------------------------------- */

static const char *const reasons[] = {
    [AH_FS_BAD_PATH] = "bad_path",
    [AH_FS_NOT_FOUND] = "not_found",
    [AH_FS_NOT_A_FILE] = "not_a_file",
    [AH_FS_NOT_A_FOLDER] = "not_a_folder",
    [AH_FS_EXISTS] = "exists",
    [AH_FS_REFUSED] = "refused",
    [AH_FS_READ_ONLY] = "read_only",
    [AH_FS_TOO_LARGE] = "too_large",
    [AH_FS_TOO_MANY] = "too_many",
    [AH_FS_NO_MATCH] = "no_match",
    [AH_FS_SEVERAL_MATCHES] = "several_matches",
    [AH_FS_BAD_PATTERN] = "bad_pattern",
    [AH_FS_CONFLICT] = "conflict",
    [AH_FS_SYSTEM] = "system",
};

ah_status ah_fs_err(ah_err *err, ah_fs_reason reason, const char *fmt, ...)
{
    ah_status st = reason == AH_FS_SYSTEM ? AH_INTERNAL : AH_TOOL_VALIDATION;
    ah_err own; /* an argument of the message may be err->message */
    va_list ap;

    if (!err)
        return st;
    va_start(ap, fmt);
    ah_err_vset(&own, st, fmt, ap);
    va_end(ap);
    *err = own;
    snprintf(err->details, sizeof err->details, "{\"reason\":\"%s\"}", reasons[reason]);
    return st;
}

static ah_status absent(ah_slice path, ah_err *err)
{
    return ah_fs_err(err, AH_FS_NOT_FOUND, "there is no '%.*s'", AH_FMT(path));
}

static ah_status not_a_file(ah_slice path, const ah_fs_info *info, ah_err *err)
{
    if (info->kind == AH_FS_LINK)
        return ah_fs_err(err, AH_FS_NOT_A_FILE,
                         "'%.*s' is a symbolic link; links are not followed: name the file itself",
                         AH_FMT(path));
    return ah_fs_err(err, AH_FS_NOT_A_FILE, "'%.*s' is %s, not a file", AH_FMT(path),
                     info->kind == AH_FS_FOLDER ? "a folder" : "a device, pipe or socket");
}

ah_status ah_fs_need_file(ah_slice path, const ah_fs_info *info, ah_err *err)
{
    if (info->kind == AH_FS_FILE)
        return AH_OK;
    return info->kind == AH_FS_ABSENT ? absent(path, err) : not_a_file(path, info, err);
}

/* -- entries --------------------------------------------------------------------------------- */

void ah_fs_items_init(ah_fs_items *f, const ah_mem *mem, size_t max)
{
    *f = (ah_fs_items){.mem = mem, .max = max};
}

static void clear_item(ah_fs_item *item)
{
    ah_text_unref(item->name);
    ah_text_unref(item->text);
}

void ah_fs_items_clear(ah_fs_items *f)
{
    for (size_t i = 0; i < f->n; i++)
        clear_item(&f->item[i]);
    if (f->mem)
        ah_free(f->mem, f->item);
    ah_fs_items_init(f, f->mem, f->max);
}

ah_status ah_fs_items_add(ah_fs_items *f, ah_slice name, const ah_fs_item *as)
{
    ah_fs_item *item;

    if (f->n == f->max) {
        f->truncated = true;
        return AH_OK;
    }
    if (!(item = ah_grow(f->mem, f->item, &f->cap, f->n + 1, sizeof *item)))
        return AH_NOMEM;
    f->item = item;
    item += f->n;
    *item = *as;
    if (!(item->name = ah_text_new(f->mem, name)))
        return AH_NOMEM;
    ah_text_ref(item->text);
    f->n++;
    return AH_OK;
}
