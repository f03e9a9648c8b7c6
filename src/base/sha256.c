/* The standard's steps under the standard's names (a to h, w, k), block by block of 64 bytes.
 * HMAC is two hashes, one inside the other. Processors with SHA instructions take a block in a
 * quarter of the time; the dynamic linker chooses the function, once. */
#include "base/sha256.h"

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) &&                 \
    !defined(__SANITIZE_THREAD__)
#define WITH_INSTRUCTIONS
#include <cpuid.h>
#include <immintrin.h>
#endif

enum { ROUNDS = 64, LENGTH_AT = AH_SHA256_BLOCK - 8 };

/* The first 32 bits of the fractions of the cube roots of the first 64 primes. */
static const uint32_t k[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turned(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static uint32_t read_word(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void put_word(unsigned char *p, uint32_t x)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(x >> (24 - 8 * i));
}

static void expand(const unsigned char *block, uint32_t w[ROUNDS])
{
    for (int t = 0; t < 16; t++)
        w[t] = read_word(block + (size_t)4 * (size_t)t);
    for (int t = 16; t < ROUNDS; t++) {
        uint32_t x = w[t - 15], y = w[t - 2];

        w[t] = (turned(y, 17) ^ turned(y, 19) ^ y >> 10) + w[t - 7] +
               (turned(x, 7) ^ turned(x, 18) ^ x >> 3) + w[t - 16];
    }
}

static void take_plainly(uint32_t state[8], const unsigned char *block)
{
    uint32_t w[ROUNDS], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4],
                        f = state[5], g = state[6], h = state[7];

    expand(block, w);
    for (int t = 0; t < ROUNDS; t++) {
        uint32_t t1 =
            h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + k[t] + w[t];
        uint32_t t2 =
            (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));

        h = g, g = f, f = e, e = d + t1;
        d = c, c = b, b = a, a = t1 + t2;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

#ifdef WITH_INSTRUCTIONS

/* Writes the two highest words to a, and the others to e. */
__attribute__((target("sse4.1"))) static void put_words(__m128i x, uint32_t a[2], uint32_t e[2])
{
    a[0] = (uint32_t)_mm_extract_epi32(x, 3);
    a[1] = (uint32_t)_mm_extract_epi32(x, 2);
    e[0] = (uint32_t)_mm_extract_epi32(x, 1);
    e[1] = (uint32_t)_mm_extract_epi32(x, 0);
}

/* The instructions hold the state as (a, b, e, f) and (c, d, g, h), the first in the highest word,
 * and make four rounds with four words of the block and of k. */
__attribute__((target("sha,sse4.1"))) static void take_fast(uint32_t state[8],
                                                            const unsigned char *block)
{
    const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i w[4], abef, cdgh, before_abef, before_cdgh;

    before_abef = abef = _mm_set_epi32((int)state[0], (int)state[1], (int)state[4], (int)state[5]);
    before_cdgh = cdgh = _mm_set_epi32((int)state[2], (int)state[3], (int)state[6], (int)state[7]);
    for (int i = 0; i < 16; i++) {
        __m128i now, next;

        if (i < 4) {
            now = _mm_loadu_si128((const __m128i *)(const void *)block + i);
            now = _mm_shuffle_epi8(now, order);
        } else {
            now = _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4);
            now = _mm_add_epi32(_mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]), now);
            now = _mm_sha256msg2_epu32(now, w[(i + 3) & 3]);
        }
        w[i & 3] = now;
        now = _mm_add_epi32(now, _mm_loadu_si128((const __m128i *)(const void *)k + i));
        next = _mm_sha256rnds2_epu32(cdgh, abef, now);
        cdgh = _mm_sha256rnds2_epu32(abef, next, _mm_shuffle_epi32(now, 0x0e));
        abef = cdgh;
        cdgh = next;
    }
    put_words(_mm_add_epi32(abef, before_abef), &state[0], &state[4]);
    put_words(_mm_add_epi32(cdgh, before_cdgh), &state[2], &state[6]);
}

typedef void take_fn(uint32_t state[8], const unsigned char *block);

/* Called by the dynamic linker, before all else. */
__attribute__((used)) static take_fn *choose(void)
{
    enum { SHA = 1 << 29 }; /* bit of EBX in leaf 7; such a processor has SSE 4.1 */
    unsigned a, b = 0, c, d;

    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & SHA) ? take_fast : take_plainly;
}

static void take_block(uint32_t state[8], const unsigned char *block)
    __attribute__((ifunc("choose")));

#else

static void take_block(uint32_t state[8], const unsigned char *block)
{
    take_plainly(state, block);
}

#endif

void ah_sha256_begin(ah_sha256 *s)
{
    *s = (ah_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                               0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void ah_sha256_add(ah_sha256 *s, ah_slice bytes)
{
    const unsigned char *p = (const unsigned char *)bytes.p;
    size_t n = bytes.n, held = (size_t)(s->n % AH_SHA256_BLOCK);

    s->n += n;
    while (n > 0) {
        size_t some = AH_SHA256_BLOCK - held < n ? AH_SHA256_BLOCK - held : n;

        if (some == AH_SHA256_BLOCK) {
            take_block(s->state, p);
        } else {
            memcpy(s->block + held, p, some);
            held += some;
            if (held == AH_SHA256_BLOCK)
                take_block(s->state, s->block);
            held %= AH_SHA256_BLOCK;
        }
        p += some;
        n -= some;
    }
}

/* Padding: a set bit, zero bits, and the number of bits, up to whole blocks. */
void ah_sha256_end(ah_sha256 *s, unsigned char out[AH_SHA256_BYTES])
{
    size_t held = (size_t)(s->n % AH_SHA256_BLOCK);
    uint64_t bits = s->n * 8;

    s->block[held++] = 0x80;
    memset(s->block + held, 0, AH_SHA256_BLOCK - held);
    if (held > LENGTH_AT) {
        take_block(s->state, s->block);
        memset(s->block, 0, AH_SHA256_BLOCK);
    }
    put_word(s->block + LENGTH_AT, (uint32_t)(bits >> 32));
    put_word(s->block + LENGTH_AT + 4, (uint32_t)bits);
    take_block(s->state, s->block);
    for (size_t i = 0; i < 8; i++)
        put_word(out + 4 * i, s->state[i]);
}

/* -- HMAC ------------------------------------------------------------------------------- */

static void begin_with(ah_sha256 *s, const unsigned char key[AH_SHA256_BLOCK], unsigned char pad)
{
    unsigned char block[AH_SHA256_BLOCK];

    for (size_t i = 0; i < sizeof block; i++)
        block[i] = key[i] ^ pad;
    ah_sha256_begin(s);
    ah_sha256_add(s, (ah_slice){(const char *)block, sizeof block});
}

/* A key longer than a block is replaced by its hash. */
void ah_sha256_hex(const unsigned char hash[AH_SHA256_BYTES], char out[AH_SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < AH_SHA256_BYTES; i++) {
        out[2 * i] = digits[hash[i] >> 4];
        out[2 * i + 1] = digits[hash[i] & 15];
    }
}

void ah_sha256_end_hex(ah_sha256 *s, char out[AH_SHA256_HEX])
{
    unsigned char hash[AH_SHA256_BYTES];

    ah_sha256_end(s, hash);
    ah_sha256_hex(hash, out);
}

void ah_hmac_begin(ah_hmac *h, ah_slice key)
{
    unsigned char block[AH_SHA256_BLOCK] = {0};

    if (key.n > sizeof block) {
        ah_sha256_begin(&h->inner);
        ah_sha256_add(&h->inner, key);
        ah_sha256_end(&h->inner, block);
    } else if (key.n) {
        memcpy(block, key.p, key.n);
    }
    begin_with(&h->inner, block, 0x36);
    begin_with(&h->outer, block, 0x5c);
}

void ah_hmac_add(ah_hmac *h, ah_slice bytes)
{
    ah_sha256_add(&h->inner, bytes);
}

void ah_hmac_end(ah_hmac *h, unsigned char out[AH_SHA256_BYTES])
{
    ah_sha256_end(&h->inner, out);
    ah_sha256_add(&h->outer, (ah_slice){(const char *)out, AH_SHA256_BYTES});
    ah_sha256_end(&h->outer, out);
}
