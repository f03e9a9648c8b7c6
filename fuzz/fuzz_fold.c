/* Fuzzes src/journal: a stream of records, one in each line, as JSON: {"kind":..,"said":..,
 * "kept":..,"number":..,"time":..}; number and time may be absent. Any stream must end with an
 * error that names a record, or give a state: sound once its turn is settled, with texts that are
 * JSON, and with a checkpoint that gives the same transcript. */
#include <stdint.h>
#include <stdlib.h>

#include "journal/fold.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void must_be_json(ah_buf *b)
{
    must(ah_buf_ok(b));
    must(ah_json_check(&ah_mem_libc, ah_buf_slice(b), AH_JSON_MAX_DEPTH, NULL) == AH_OK);
}

static int64_t number_of(ah_slice value, int64_t missing)
{
    ah_json_num n;

    return ah_json_kind_of(value) == AH_JSON_NUMBER && ah_json_number(value, &n) && n.is_int
               ? n.i
               : missing;
}

/* Lines that are no objects are given as they are. */
static ah_status add_line(ah_fold *f, ah_slice line, ah_err *err)
{
    ah_slice kind, said, kept, number, time;
    const ah_json_slot want[] = {
        {"kind", &kind}, {"said", &said}, {"kept", &kept}, {"number", &number}, {"time", &time}};
    ah_store_record r = {.number = f->last + 1, .kind = AH_LIT("opened"), .said = line};

    if (ah_json_check(&ah_mem_libc, line, AH_JSON_MAX_DEPTH, NULL) == AH_OK &&
        ah_json_members(line, want, 5)) {
        r.kind = ah_json_kind_of(kind) == AH_JSON_STRING ? ah_json_inside(kind) : kind;
        r.said = said;
        r.kept = kept;
        r.number = number_of(number, f->last + 1);
        r.time = number_of(time, 0);
    }
    return ah_fold_add(f, &r, err);
}

static void check_checkpoint(const ah_fold *f, const ah_buf *transcript)
{
    ah_store_record r = {.number = f->last + 1, .kind = AH_LIT("checkpoint")};
    ah_buf said, again;
    ah_err err;
    ah_fold g;

    ah_buf_init(&said, &ah_mem_libc, SIZE_MAX);
    ah_buf_init(&again, &ah_mem_libc, SIZE_MAX);
    ah_fold_print_checkpoint(f, false, &said);
    must(ah_buf_ok(&said));
    r.said = ah_buf_slice(&said);
    must(ah_fold_init(&g, &ah_mem_libc, &err) == AH_OK);
    /* The conversation is nested two levels deeper here, and may be too deep. */
    if (ah_json_check(&ah_mem_libc, r.said, AH_JSON_MAX_DEPTH, NULL) == AH_OK) {
        must(ah_fold_add(&g, &r, &err) == AH_OK);
        ah_transcript_print(g.transcript, &again);
        must(ah_buf_ok(&again));
        must(ah_slice_eq(ah_buf_slice(&again), ah_buf_slice(transcript)));
    }
    ah_fold_clear(&g);
    ah_buf_clear(&said);
    ah_buf_clear(&again);
}

static void check_state(const ah_fold *f)
{
    ah_buf b;
    ah_err err;

    ah_buf_init(&b, &ah_mem_libc, SIZE_MAX);
    ah_fold_print_session(f, &b);
    must_be_json(&b);
    ah_buf_reset(&b, 0);
    ah_run_progress_print(&f->history.progress, &b);
    must_be_json(&b);
    ah_buf_reset(&b, 0);
    ah_transcript_print(f->transcript, &b);
    must_be_json(&b);
    for (size_t i = 0; i < f->n_asks; i++)
        must(ah_fold_find_ask(f, ah_text_slice(f->ask[i].id)) == &f->ask[i]);
    if (f->opened && !f->transcript->assistant && !f->transcript->n_staged)
        check_checkpoint(f, &b);
    ah_buf_clear(&b);
    for (size_t i = 0; i < f->transcript->n_slots; i++)
        ah_transcript_settle(f->transcript, i, "settled", 0);
    ah_transcript_commit(f->transcript);
    must(ah_transcript_sound(f->transcript, &err) == AH_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ah_slice rest = {(const char *)data, size};
    ah_status st = AH_OK;
    ah_err err = {0};
    ah_fold f;

    must(ah_fold_init(&f, &ah_mem_libc, &err) == AH_OK);
    while (st == AH_OK && rest.n)
        st = add_line(&f, ah_slice_line(&rest), &err);
    if (st == AH_OK)
        check_state(&f);
    else
        must(st == AH_STORE && ah_slice_begins(ah_slice_of(err.message), "record ") &&
             ah_utf8_valid(ah_slice_of(err.message)));
    ah_fold_clear(&f);
    return 0;
}
