/* Fuzzes paths, globs and overlays on files in memory. Each line of the input is a call: a
 * letter, then its texts with tabs between; `#n` in a text means many letters (see grow), so
 * that a short input can have long names and deep folders. An accepted path must not lead out, a
 * written file must read back, and a committed overlay must equal its base. `k` uses a store in
 * which every folder has folders with names of the greatest length, as a disk may have them. */
#include <assert.h>
#include <stdlib.h>

#include "state/fs_store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_CALLS = 40 };

static ah_slice take(ah_slice *rest, char end)
{
    const char *p = rest->n ? memchr(rest->p, end, rest->n) : NULL;
    ah_slice s = {rest->p, p ? (size_t)(p - rest->p) : rest->n};
    size_t used = s.n + (p != NULL);

    rest->p += used;
    rest->n -= used;
    return s;
}

static void check_path(ah_fs *fs, ah_slice given)
{
    ah_fs_path p, again;
    ah_err err;

    if (ah_fs_path_check(fs, given, &p, &err) != AH_OK)
        return;
    assert(p.n == strlen(p.s) && p.s[0] != '/' && p.n <= given.n);
    assert(!strstr(p.s, "//") && strcmp(p.s, "..") != 0 && strncmp(p.s, "../", 3) != 0);
    assert(!strstr(p.s, "/../") && !(p.n > 2 && strcmp(p.s + p.n - 3, "/..") == 0));
    assert(ah_fs_path_check(fs, ah_fs_path_slice(&p), &again, &err) == AH_OK && again.n == p.n);
}

static void write_and_read(ah_fs *fs, ah_slice path, ah_slice text)
{
    ah_buf b;
    ah_err err;

    ah_buf_init(&b, &ah_mem_libc, 1 << 20);
    if (ah_fs_write(fs, path, text, &err) == AH_OK) {
        assert(ah_fs_read(fs, path, 0, AH_FS_WHOLE, &b, NULL, &err) == AH_OK);
        assert(ah_slice_eq(ah_buf_slice(&b), text));
    }
    ah_buf_clear(&b);
}

static void look(ah_fs *fs, char call, ah_slice a, ah_slice b)
{
    ah_fs_grep what = {
        .pattern = a, .in = AH_LIT(""), .glob = b.n ? b : (ah_slice){0}, .plain = true};
    ah_fs_items found, ignored;
    ah_err err;

    ah_fs_items_init(&found, &ah_mem_libc, 100);
    ah_fs_items_init(&ignored, &ah_mem_libc, 100);
    if (call == 'g')
        ah_fs_glob(fs, b, a, &ignored, &found, &err);
    else if (call == 's')
        ah_fs_search(fs, &what, &ignored, &found, &err);
    else
        ah_fs_list(fs, a, &ignored, &found, &err);
    ah_fs_items_clear(&ignored);
    ah_fs_items_clear(&found);
}

/* a store of endless folders */

static ah_status tower_stat(ah_fs *fs, ah_slice path, ah_fs_info *out, ah_err *err)
{
    (void)fs;
    (void)err;
    *out = (ah_fs_info){.kind = path.n && path.p[path.n - 1] == 'f' ? AH_FS_FILE : AH_FS_FOLDER};
    return AH_OK;
}

static ah_status tower_read(ah_fs *fs, ah_slice path, uint64_t offset, size_t limit, ah_buf *out,
                            ah_fs_info *info, ah_err *err)
{
    assert(path.n <= AH_FS_MAX_PATH);
    tower_stat(fs, path, info, err);
    if (offset == 0 && limit)
        ah_buf_char(out, 'x');
    return AH_OK;
}

/* Lists a folder, whose name's length depends on the input, up to AH_FS_MAX_NAME bytes, and a
 * file. */
static ah_status tower_list(ah_fs *fs, ah_slice path, ah_fs_items *out, ah_err *err)
{
    static const ah_fs_item folder = {.kind = AH_FS_FOLDER}, file = {.kind = AH_FS_FILE};
    char name[AH_FS_MAX_NAME];

    (void)err;
    assert(path.n <= AH_FS_MAX_PATH && !memchr(path.p, '\0', path.n));
    memset(name, 'n', sizeof name);
    if (ah_fs_items_add(out, (ah_slice){name, fs->serial % sizeof name + 1}, &folder) != AH_OK)
        return AH_NOMEM;
    return ah_fs_items_add(out, ah_slice_of("f"), &file);
}

static ah_status tower_prepare(ah_fs *fs, const ah_fs_changes *list, void **ticket, ah_err *err)
{
    (void)ticket;
    for (size_t i = 0; i < list->n; i++)
        assert(list->item[i].path->len <= AH_FS_MAX_PATH);
    return ah_fs_err(err, AH_FS_SYSTEM, "%s", fs->o.read_only ? "sealed" : "no room");
}

static void tower_free(ah_fs *fs)
{
    (void)fs;
}

static void look_at_tower(ah_slice a, ah_slice b)
{
    static const ah_fs_store store = {.stat = tower_stat,
                                      .read = tower_read,
                                      .list = tower_list,
                                      .prepare = tower_prepare,
                                      .free = tower_free};
    ah_fs fs;
    ah_err err;

    ah_fs_init(&fs, &store, &ah_mem_libc, &(ah_fs_options){.max_depth = 1 + (int)(b.n % 64)});
    fs.serial = a.n;
    look(&fs, 'g', ah_slice_of("**"), ah_slice_of(""));
    look(&fs, 's', ah_slice_of("x"), ah_slice_of(""));
    look(&fs, 'l', a, b);
    ah_fs_delete(&fs, ah_slice_of("n"), true, &err);
    ah_fs_rename(&fs, ah_slice_of("n"), b, true, &err);
    ah_fs_absent(&fs, a, &err);
}

/* Returns the text with each `#c` replaced by letters, eight times the value of c. */
static ah_slice grow(ah_slice s, char *room, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++) {
        size_t many = 1;
        char c = s.p[i];

        if (c == '#' && i + 1 < s.n) {
            many = 8 * (size_t)(s.p[++i] & 0x7f);
            c = 'n';
        }
        while (many-- && n < size)
            room[n++] = c;
    }
    return (ah_slice){room, n};
}

static void one_call(ah_fs *fs, ah_slice line)
{
    char call = line.n ? line.p[0] : '\0', room[2][4096];
    ah_slice rest = {line.p + (line.n > 0), line.n - (line.n > 0)};
    ah_slice a = grow(take(&rest, '\t'), room[0], sizeof room[0]);
    ah_slice b = grow(take(&rest, '\t'), room[1], sizeof room[1]);
    ah_fs_edit edit = {b, rest, true};
    size_t count;
    ah_err err;

    check_path(fs, a);
    if (call == 'k')
        look_at_tower(a, b);
    else if (call == 'w')
        write_and_read(fs, a, b);
    else if (call == 'a')
        ah_fs_append(fs, a, b, &err);
    else if (call == 'e')
        ah_fs_replace(fs, a, &edit, &count, &err);
    else if (call == 'd')
        ah_fs_delete(fs, a, b.n > 0, &err);
    else if (call == 'r')
        ah_fs_rename(fs, a, b, rest.n > 0, &err);
    else if (call == 'm')
        ah_fs_mkdir(fs, a, &err);
    else
        look(fs, call, a, b);
}

/* Appends names and sizes of all files, in order. */
static void describe(ah_fs *fs, ah_buf *out)
{
    ah_fs_items all;
    ah_err err;

    ah_fs_items_init(&all, &ah_mem_libc, 1000);
    assert(ah_fs_glob(fs, ah_slice_of(""), ah_slice_of("{**,**/.*,**/.*/**}"), NULL, &all, &err) ==
           AH_OK);
    for (size_t i = 0; i < all.n; i++)
        ah_buf_fmt(out, "%s %llu\n", all.item[i].name->data, (unsigned long long)all.item[i].size);
    ah_fs_items_clear(&all);
}

static void commit(ah_fs *fs, ah_fs *overlay)
{
    ah_buf before, after;
    ah_err err;

    ah_buf_init(&before, &ah_mem_libc, 1 << 24);
    ah_buf_init(&after, &ah_mem_libc, 1 << 24);
    describe(overlay, &before);
    if (ah_fs_prepare(overlay, &err) == AH_OK) {
        assert(ah_fs_commit(overlay, &err) == AH_OK);
        describe(fs, &after);
        assert(ah_slice_eq(ah_buf_slice(&before), ah_buf_slice(&after)));
    }
    ah_buf_clear(&before);
    ah_buf_clear(&after);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ah_slice rest = {(const char *)data, size};
    ah_fs_options o = {.max_file = 10000, .max_files = 200};
    ah_fs *fs, *overlay;
    ah_err err;

    if (ah_fs_memory_new(&ah_mem_libc, &o, &fs, &err) != AH_OK)
        return 0;
    if (ah_fs_overlay_new(fs, &overlay, &err) != AH_OK)
        abort();
    for (int i = 0; i < MAX_CALLS && rest.n; i++) {
        ah_slice line = take(&rest, '\n');

        if (ah_slice_is(line, "!"))
            commit(fs, overlay);
        else
            one_call(overlay, line);
    }
    commit(fs, overlay);
    ah_fs_unref(overlay);
    ah_fs_unref(fs);
    return 0;
}
