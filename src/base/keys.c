/* A state machine with one state per kind of sequence, fed byte by byte. It skips unknown
 * sequences: answers and reports of a terminal must never count as typed. A control character
 * ends each sequence, so that none swallows text typed after it. */
#include "base/keys.h"

#include <stdio.h>

#include "base/json.h"
#include "base/json_chars.h"
#include "base/width.h"

enum { GROUND, UTF8, ESCAPE, CSI, CONSOLE, SS3, STRING, STRING_ESCAPE, MOUSE, PASTE };

enum { ESC = 033, CAN = 030, SUB = 032, DEL = 0177, CTRL_C = 3 };
enum { SHIFT = 1, ALT = 2, CTRL = 4, SUPER = 8, HYPER = 16, META = 32 };
enum { MAX_PARAMS = 6, MAX_PARTS = 3, MAX_NUMBER = 0x10ffff };
enum { MOUSE_BYTES = 3, RELEASED = 3 };

static const char PASTE_END[] = "\033[201~";

/* Numbers of a sequence, "1:2;3": the parts of the first, the second, ... 0: missing. */
typedef struct params {
    uint32_t part[MAX_PARAMS][MAX_PARTS];
    size_t n;
} params;

void ah_keys_init(ah_keys *k, const ah_mem *mem, size_t max_paste)
{
    *k = (ah_keys){.state = GROUND};
    ah_buf_init(&k->paste, mem, max_paste);
}

void ah_keys_clear(ah_keys *k)
{
    (void)ah_buf_ok(&k->paste);
    ah_buf_clear(&k->paste);
}

/* -- keys ----------------------------------------------------------------------------------- */

static ah_keys_event named(ah_key *out, const char *name)
{
    snprintf(out->name, sizeof out->name, "%s", name);
    return AH_KEYS_KEY;
}

/* Makes the key of a character; with a modifier that makes it a command, it types nothing. */
static ah_keys_event character(ah_key *out, uint32_t c)
{
    char text[5] = "";

    text[ah_utf8_put(c, text)] = '\0';
    if (c >= 'A' && c <= 'Z')
        out->shift = true;
    if (!out->ctrl && !out->alt && !out->super)
        memcpy(out->text, text, sizeof text);
    if (c >= 'A' && c <= 'Z')
        *text |= 0x20;
    return named(out, c == ' ' ? "space" : text);
}

static ah_keys_event control(ah_key *out, unsigned char byte)
{
    switch (byte) {
    case '\t':
        return named(out, "tab");
    case '\r':
        return named(out, "enter");
    case ESC:
        return named(out, "escape");
    case DEL:
        return named(out, "backspace");
    default:
        break;
    }
    out->ctrl = true;
    if (byte == 0)
        return named(out, "space");
    return character(out, byte <= 26 ? byte + 0x60u : byte + 0x40u);
}

static void set_modifiers(ah_key *out, uint32_t of_sequence)
{
    uint32_t bits = of_sequence ? of_sequence - 1 : 0;

    out->shift |= (bits & SHIFT) != 0;
    out->alt |= (bits & (ALT | META)) != 0;
    out->ctrl |= (bits & CTRL) != 0;
    out->super |= (bits & (SUPER | HYPER)) != 0;
}

/* -- sequences ------------------------------------------------------------------------------- */

static void read_params(const ah_keys *k, params *p)
{
    size_t part = 0;

    *p = (params){.n = k->n ? 1 : 0};
    for (size_t i = 0; i < k->n && p->n <= MAX_PARAMS; i++) {
        uint32_t *at = &p->part[p->n - 1][part < MAX_PARTS ? part : MAX_PARTS - 1];

        if (k->held[i] == ';') {
            p->n++;
            part = 0;
        } else if (k->held[i] == ':') {
            part++;
        } else if (part < MAX_PARTS && *at <= MAX_NUMBER) {
            *at = *at * 10 + (uint32_t)(k->held[i] - '0');
        }
    }
    p->n = p->n < MAX_PARAMS ? p->n : MAX_PARAMS;
}

/* True for a sequence that is a key. False for a terminal's responses and reports, which have
 * other characters than digits, `:` and `;`. */
static bool has_numbers(const ah_keys *k)
{
    for (size_t i = 0; i < k->n; i++)
        if (k->held[i] < '0' || k->held[i] > ';')
            return false;
    return true;
}

/* Keys to which kitty gives numbers of Unicode's private area. */
static ah_keys_event private_key(ah_key *out, uint32_t code)
{
    static const char *const names[] = {"left", "right", "up",     "down",   "pageup", "pagedown",
                                        "home", "end",   "insert", "delete", "begin"};
    static const char keypad[] = "0123456789./*-+";
    enum { CAPS = 57358, MENU = 57363, F13 = 57376, F35 = 57398, PAD = 57399, PAD_ENTER = 57414 };
    enum { PAD_EQUAL = 57415, PAD_SEPARATOR = 57416, PAD_LEFT = 57417, PAD_BEGIN = 57427 };

    if (code >= F13 && code <= F35)
        snprintf(out->name, sizeof out->name, "f%u", (unsigned)(code - F13 + 13) % 100u);
    else if (code >= PAD && code < PAD_ENTER)
        return character(out, (unsigned char)keypad[code - PAD]);
    else if (code == PAD_ENTER)
        return named(out, "enter");
    else if (code == PAD_EQUAL || code == PAD_SEPARATOR)
        return character(out, code == PAD_EQUAL ? '=' : ',');
    else if (code >= PAD_LEFT && code <= PAD_BEGIN)
        return named(out, names[code - PAD_LEFT]);
    else if (code == MENU)
        return named(out, "menu");
    else
        return AH_KEYS_NOTHING;
    return AH_KEYS_KEY;
}

static bool is_text(uint32_t c)
{
    char text[4];

    return c >= 0x20 && c <= MAX_NUMBER && (c & ~0x7ffu) != 0xd800 &&
           !ah_control_len((ah_slice){text, ah_utf8_put(c, text)});
}

/* Makes a key from its number; `shifted` (0: unknown) is what it types with Shift. */
static ah_keys_event numbered(ah_key *out, uint32_t code, uint32_t shifted)
{
    if (code == '\t' || code == '\r' || code == ESC || code == DEL)
        return control(out, (unsigned char)code);
    if (code == '\b')
        return named(out, "backspace");
    if (code >= 57344 && code <= 63743)
        return private_key(out, code);
    if (!is_text(code))
        return AH_KEYS_NOTHING;
    if (out->shift && code >= 'a' && code <= 'z')
        return character(out, code - 0x20);
    character(out, code);
    if (*out->text && out->shift && is_text(shifted)) {
        memset(out->text, 0, sizeof out->text);
        ah_utf8_put(shifted, out->text);
    }
    return AH_KEYS_KEY;
}

static ah_keys_event by_tilde(ah_keys *k, const params *p, ah_key *out)
{
    static const char *const names[] = {
        [1] = "home",     [2] = "insert", [3] = "delete", [4] = "end",   [5] = "pageup",
        [6] = "pagedown", [7] = "home",   [8] = "end",    [11] = "f1",   [12] = "f2",
        [13] = "f3",      [14] = "f4",    [15] = "f5",    [17] = "f6",   [18] = "f7",
        [19] = "f8",      [20] = "f9",    [21] = "f10",   [23] = "f11",  [24] = "f12",
        [25] = "f13",     [26] = "f14",   [28] = "f15",   [29] = "menu", [31] = "f17",
        [32] = "f18",     [33] = "f19",   [34] = "f20"};
    enum { OTHER_KEYS = 27, PASTE_BEGINS = 200 };
    uint32_t n = p->part[0][0];

    if (n == PASTE_BEGINS) {
        k->state = PASTE;
        k->matched = 0;
        k->cut = false;
        (void)ah_buf_ok(&k->paste);
        ah_buf_reset(&k->paste, 0);
        return AH_KEYS_NOTHING;
    }
    if (n == OTHER_KEYS)
        return numbered(out, p->part[2][0], 0);
    return n < sizeof names / sizeof *names && names[n] ? named(out, names[n]) : AH_KEYS_NOTHING;
}

static const char *by_letter(char final)
{
    static const struct {
        char final;
        const char *name;
    } keys[] = {{'A', "up"},  {'B', "down"}, {'C', "right"}, {'D', "left"},  {'E', "begin"},
                {'F', "end"}, {'H', "home"}, {'P', "f1"},    {'Q', "f2"},    {'R', "f3"},
                {'S', "f4"},  {'a', "up"},   {'b', "down"},  {'c', "right"}, {'d', "left"}};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].final == final)
            return keys[i].name;
    return NULL;
}

/* R with numbers also reports the cursor; a key begins with 1. */
static ah_keys_event end_csi(ah_keys *k, char final, ah_key *out)
{
    params p;

    k->state = GROUND;
    if (k->n > AH_KEYS_HELD || !has_numbers(k))
        return AH_KEYS_NOTHING;
    read_params(k, &p);
    if (p.part[1][1] == RELEASED || (final == 'R' && p.n > 1 && p.part[0][0] != 1))
        return AH_KEYS_NOTHING;
    set_modifiers(out, p.part[1][0]);
    if (final == '~')
        return by_tilde(k, &p, out);
    if (final == 'u')
        return numbered(out, p.part[0][0], p.part[0][1]);
    if (final == 'Z') {
        out->shift = true;
        return named(out, "tab");
    }
    out->shift |= final >= 'a' && final <= 'd';
    return by_letter(final) ? named(out, by_letter(final)) : AH_KEYS_NOTHING;
}

static ah_keys_event end_ss3(ah_keys *k, unsigned char byte, ah_key *out)
{
    static const char keypad[] = "*+,-./0123456789";

    k->state = GROUND;
    if (byte == 'M')
        return named(out, "enter");
    if (byte >= 'j' && byte <= 'y')
        return character(out, (unsigned char)keypad[byte - 'j']);
    out->ctrl = byte >= 'a' && byte <= 'd';
    return by_letter((char)byte) ? named(out, by_letter((char)byte)) : AH_KEYS_NOTHING;
}

/* -- bytes ------------------------------------------------------------------------------------ */

static ah_keys_event take(ah_keys *k, unsigned char byte, ah_key *out);

static ah_keys_event again(ah_keys *k, unsigned char byte, ah_key *out)
{
    k->state = GROUND;
    k->alt = false;
    return take(k, byte, out);
}

static ah_keys_event begin(ah_keys *k, int state)
{
    k->state = state;
    k->n = 0;
    return AH_KEYS_NOTHING;
}

static ah_keys_event take_ground(ah_keys *k, unsigned char byte, ah_key *out)
{
    out->alt = k->alt;
    if (byte == ESC) {
        k->alt = false;
        return begin(k, ESCAPE);
    }
    k->state = GROUND;
    if (byte < 0x20 || byte == DEL)
        return control(out, byte);
    if (byte < 0x80)
        return character(out, byte);
    if (byte < 0xc2 || byte > 0xf4)
        return character(out, 0xfffd);
    begin(k, UTF8);
    k->need = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    k->held[k->n++] = (char)byte;
    return AH_KEYS_NOTHING;
}

/* If another byte cuts a character, both are reported: the byte waits. */
static ah_keys_event take_utf8(ah_keys *k, unsigned char byte, ah_key *out, bool *back)
{
    uint32_t c;

    out->alt = k->alt;
    if ((byte & 0xc0) != 0x80) {
        *back = true;
        k->state = GROUND;
        k->alt = false;
        return character(out, 0xfffd);
    }
    k->held[k->n++] = (char)byte;
    if (k->n < k->need)
        return AH_KEYS_NOTHING;
    k->state = GROUND;
    if (!ah_utf8_len(k->held, k->held + k->n))
        return character(out, 0xfffd);
    if (ah_control_len((ah_slice){k->held, k->n}))
        return AH_KEYS_NOTHING;
    c = (unsigned char)k->held[0] & (0x7fu >> k->n);
    for (size_t i = 1; i < k->n; i++)
        c = c << 6 | ((unsigned char)k->held[i] & 0x3fu);
    return character(out, c);
}

static ah_keys_event take_escape(ah_keys *k, unsigned char byte, ah_key *out)
{
    switch (byte) {
    case '[':
        return begin(k, CSI);
    case 'O':
        return begin(k, SS3);
    case ']':
    case 'P':
    case 'X':
    case '^':
    case '_':
        begin(k, STRING);
        k->held[0] = (char)byte;
        return AH_KEYS_NOTHING;
    case ESC:
        return named(out, "escape"); /* the second one may begin a sequence */
    default:
        k->alt = true;
        return take_ground(k, byte, out);
    }
}

static ah_keys_event take_csi(ah_keys *k, unsigned char byte, ah_key *out)
{
    if (byte < 0x20 || byte >= DEL)
        return byte == CAN || byte == SUB ? begin(k, GROUND) : again(k, byte, out);
    if (k->n == 0 && byte == '[')
        return begin(k, CONSOLE);
    if (k->n == 0 && byte == 'M') {
        k->need = MOUSE_BYTES;
        return begin(k, MOUSE);
    }
    if (byte >= 0x40)
        return end_csi(k, (char)byte, out);
    if (k->n < AH_KEYS_HELD)
        k->held[k->n] = (char)byte;
    k->n += k->n <= AH_KEYS_HELD;
    return AH_KEYS_NOTHING;
}

static ah_keys_event take_string(ah_keys *k, unsigned char byte, ah_key *out)
{
    if (k->state == STRING_ESCAPE && byte != '\\') {
        begin(k, ESCAPE);
        return take(k, byte, out);
    }
    if (byte == CTRL_C)
        return again(k, byte, out);
    if (byte == '\a' || byte == CAN || byte == SUB || k->state == STRING_ESCAPE)
        return begin(k, GROUND);
    k->state = byte == ESC ? STRING_ESCAPE : STRING;
    k->n = 1;
    return AH_KEYS_NOTHING;
}

/* A full buffer is not a failure: the rest is discarded. */
static void keep(ah_keys *k, const char *p, size_t n)
{
    size_t room = k->paste.max - k->paste.len;

    k->cut |= n > room;
    if (k->paste.status == AH_OK)
        ah_buf_add(&k->paste, p, n < room ? n : room);
}

static ah_keys_event take_paste(ah_keys *k, unsigned char byte)
{
    if (byte != (unsigned char)PASTE_END[k->matched]) {
        keep(k, PASTE_END, k->matched);
        k->matched = 0;
    }
    if (byte == (unsigned char)PASTE_END[k->matched])
        k->matched++;
    else
        keep(k, &(char){(char)byte}, 1);
    if (k->matched < sizeof PASTE_END - 1)
        return AH_KEYS_NOTHING;
    k->state = GROUND;
    return AH_KEYS_PASTE;
}

static ah_keys_event take(ah_keys *k, unsigned char byte, ah_key *out)
{
    switch (k->state) {
    case GROUND:
        k->alt = false;
        return take_ground(k, byte, out);
    case ESCAPE:
        return take_escape(k, byte, out);
    case CSI:
        return take_csi(k, byte, out);
    case CONSOLE: /* A to E: the first five of the function keys */
        snprintf(out->name, sizeof out->name, "f%d", byte - '@');
        k->state = GROUND;
        return byte >= 'A' && byte <= 'E' ? AH_KEYS_KEY : AH_KEYS_NOTHING;
    case SS3:
        return byte < 0x20 || byte >= DEL ? again(k, byte, out) : end_ss3(k, byte, out);
    case STRING:
    case STRING_ESCAPE:
        return take_string(k, byte, out);
    case MOUSE:
        if (--k->need == 0)
            k->state = GROUND;
        return AH_KEYS_NOTHING;
    default:
        return take_paste(k, byte);
    }
}

ah_keys_event ah_keys_next(ah_keys *k, ah_slice *in, ah_key *out)
{
    ah_keys_event e = AH_KEYS_NOTHING;

    while (e == AH_KEYS_NOTHING && in->n) {
        unsigned char byte = (unsigned char)*in->p;
        bool back = false;

        *out = (ah_key){.ctrl = false};
        e = k->state == UTF8 ? take_utf8(k, byte, out, &back) : take(k, byte, out);
        if (!back) {
            in->p++;
            in->n--;
        }
    }
    return e;
}

ah_keys_wait ah_keys_wait_for(const ah_keys *k)
{
    switch (k->state) {
    case GROUND:
    case PASTE:
        return AH_KEYS_COMPLETE;
    case ESCAPE:
    case SS3:
        return AH_KEYS_ESCAPE;
    case CSI:
    case STRING:
        return k->n ? AH_KEYS_SEQUENCE : AH_KEYS_ESCAPE;
    default:
        return AH_KEYS_SEQUENCE;
    }
}

ah_keys_event ah_keys_quiet(ah_keys *k, ah_key *out)
{
    int state = k->state;

    *out = (ah_key){.ctrl = false};
    if (state == GROUND || state == PASTE)
        return AH_KEYS_NOTHING;
    k->state = GROUND;
    if (state == ESCAPE || state == STRING_ESCAPE)
        return named(out, "escape");
    out->alt = state == UTF8 ? k->alt : true;
    if (state == UTF8)
        return character(out, 0xfffd);
    if (state == SS3)
        return character(out, 'O');
    if ((state == CSI || state == STRING) && k->n == 0)
        return character(out, state == CSI ? '[' : (unsigned char)k->held[0]);
    return AH_KEYS_NOTHING;
}

/* -- pastes ------------------------------------------------------------------------------------ */

/* Colors and the like are removed whole; of other sequences, which may not end, only the
 * introducer. */
static size_t passed_over(ah_slice rest)
{
    if (*rest.p == '\t' || *rest.p == '\n')
        return 0;
    return ah_slice_begins(rest, "\033[") ? ah_escape_len(rest) : ah_control_len(rest);
}

bool ah_keys_pasted(ah_keys *k, ah_buf *out)
{
    size_t from = 0, n;
    ah_slice all;

    if (!ah_buf_ok(&k->paste)) {
        out->status = k->paste.status;
        return true;
    }
    all = ah_buf_slice(&k->paste);
    all.n = k->cut ? ah_utf8_cut(all.p, all.n) : all.n;
    for (size_t i = 0; i < all.n; i += n ? n : 1) {
        ah_slice rest = {all.p + i, all.n - i};

        if ((n = passed_over(rest)) == 0)
            continue;
        ah_utf8_repair((ah_slice){all.p + from, i - from}, out);
        from = i + n;
        if (*rest.p == '\r' && (rest.n == 1 || rest.p[1] != '\n'))
            ah_buf_char(out, '\n');
    }
    ah_utf8_repair((ah_slice){all.p + from, all.n - from}, out);
    ah_buf_clear(&k->paste);
    return k->cut;
}
