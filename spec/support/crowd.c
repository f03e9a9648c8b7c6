/* Many clients of one server at once, in one process, for spec/cli/mock_server_spec.lua. FILE
 * holds a request.
 *
 *   crowd ask PORT N RESET FILE          N connections send the request; the first RESET of them
 *                                        are reset after the response's first bytes, the others
 *                                        read to the end. Prints: ms until the last connection
 *                                        had its first bytes, complete responses, bytes read,
 *                                        ms in all
 *   crowd hold PORT N FILE EVERY SECONDS N connections send the request byte by byte, one each
 *                                        EVERY ms, then read a byte each EVERY ms. Prints a line
 *                                        when all are connected; ends after SECONDS. Last line:
 *                                        number of connections that the server has closed
 *
 *   crowd flood PORT FILE                sends the head in FILE, then chunks without an end,
 *                                        until a response comes. Prints: bytes sent, the
 *                                        response's first line
 *
 *   crowd say PORT FILE                  sends the request, and prints the response until the
 *                                        server closes
 *
 *   crowd expect PORT FILE               says the same, but sends the body only after the first
 *                                        bytes of a response
 *
 *   crowd garble PORT N FILE SEED        sends the request N times, one after the other, each
 *                                        time with some bytes changed or without its end, reads
 *                                        for a moment and closes or resets. Prints: number of
 *                                        responses
 *
 * A response is complete if its last bytes are the end of a chunked body. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX = 2000, TAIL = 5, LIMIT_MS = 300000 };

typedef struct client {
    int fd;          /* -1: closed */
    size_t sent;     /* bytes of the request */
    int64_t first;   /* time of the first response bytes; 0: none yet */
    char tail[TAIL]; /* the last response bytes */
} client;

static client all[MAX];
static struct pollfd polled[MAX];
static char request[1 << 20];
static size_t request_len;

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void fail(const char *what)
{
    fprintf(stderr, "crowd: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int connect_to(int port, int receives)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0)
        fail("socket");
    if (receives)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receives, sizeof receives);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) != 0 && errno != EINPROGRESS)
        fail("connect");
    return fd;
}

static void read_request(const char *path)
{
    FILE *f = fopen(path, "rb");

    if (!f)
        fail(path);
    request_len = fread(request, 1, sizeof request - 1, f);
    fclose(f);
}

static void over(client *c, bool reset)
{
    struct linger at_once = {1, 0};

    if (reset)
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(c->fd);
    c->fd = -1;
}

static void keep_tail(client *c, const char *bytes, size_t n)
{
    size_t kept = n < TAIL ? TAIL - n : 0;

    memmove(c->tail, c->tail + TAIL - kept, kept);
    memcpy(c->tail + kept, bytes + n - (TAIL - kept), TAIL - kept);
}

static void send_more(client *c, size_t most)
{
    size_t left = request_len - c->sent;
    ssize_t n = send(c->fd, request + c->sent, left < most ? left : most, MSG_NOSIGNAL);

    if (n > 0)
        c->sent += (size_t)n;
    else if (errno != EAGAIN)
        over(c, false);
}

/* -- asking ---------------------------------------------------------------------------------- */

typedef struct sums {
    int64_t start, first;
    size_t over, well, bytes;
} sums;

static void take(client *c, bool reset, sums *s)
{
    static char bytes[256 << 10];
    ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);

    if (n < 0 && errno == EAGAIN)
        return;
    if (n > 0 && !c->first) {
        c->first = now_ms();
        s->first = c->first - s->start;
    }
    if (n > 0) {
        s->bytes += (size_t)n;
        keep_tail(c, bytes, (size_t)n);
    }
    if (n > 0 && !reset && memcmp(c->tail, "0\r\n\r\n", TAIL) != 0)
        return;
    s->over++;
    s->well += n > 0 && !reset;
    over(c, reset);
}

static void serve(client *c, short got, bool reset, sums *s)
{
    if (got & POLLOUT)
        send_more(c, request_len);
    else if (got)
        take(c, reset, s);
    if (got && c->fd < 0 && c->sent < request_len)
        s->over++;
}

static int ask(int port, size_t n, size_t resets)
{
    sums s = {.start = now_ms()};

    for (size_t i = 0; i < n; i++)
        all[i].fd = connect_to(port, 0);
    while (s.over < n && now_ms() - s.start < LIMIT_MS) {
        for (size_t i = 0; i < n; i++)
            polled[i] = (struct pollfd){all[i].fd, all[i].sent < request_len ? POLLOUT : POLLIN, 0};
        poll(polled, n, 1000);
        for (size_t i = 0; i < n; i++)
            serve(&all[i], polled[i].revents, i < resets, &s);
    }
    printf("%lld %zu %zu %lld\n", (long long)s.first, s.well, s.bytes,
           (long long)(now_ms() - s.start));
    return 0;
}

/* -- holding --------------------------------------------------------------------------------- */

static bool drip(client *c)
{
    char byte;

    if (c->sent < request_len)
        send_more(c, 1);
    else if (recv(c->fd, &byte, 1, 0) == 0 || (errno != EAGAIN && errno != 0))
        over(c, false);
    return c->fd >= 0;
}

static int hold(int port, size_t n, int every, int seconds)
{
    int64_t end = now_ms() + seconds * (int64_t)1000, left;
    size_t closed = 0;

    for (size_t i = 0; i < n; i++)
        all[i].fd = connect_to(port, 2048);
    puts("held");
    fflush(stdout);
    while (now_ms() < end && closed < n) {
        for (size_t i = 0; i < n; i++) {
            errno = 0;
            if (all[i].fd >= 0 && !drip(&all[i]))
                closed++;
        }
        left = end - now_ms();
        poll(NULL, 0, left < 0 ? 0 : left < every ? (int)left : every);
    }
    printf("%zu\n", closed);
    return 0;
}

/* -- flooding -------------------------------------------------------------------------------- */

static int flood(int port)
{
    enum { CHUNK = 0x10000 };
    static char chunk[CHUNK + 16], answer[4096];
    int64_t end = now_ms() + LIMIT_MS;
    struct pollfd p = {.fd = connect_to(port, 0), .events = POLLIN | POLLOUT};
    size_t sent = 0, at = 0, len = (size_t)sprintf(chunk, "%x\r\n", CHUNK);
    ssize_t n = 0;

    memset(chunk + len, 'x', CHUNK);
    memcpy(chunk + len + CHUNK, "\r\n", 2);
    len += CHUNK + 2;
    poll(&p, 1, 1000);
    if (send(p.fd, request, request_len, MSG_NOSIGNAL) != (ssize_t)request_len)
        fail("send");
    while (now_ms() < end && poll(&p, 1, 1000) >= 0 && !(p.revents & POLLIN)) {
        n = p.revents & POLLOUT ? send(p.fd, chunk + at, len - at, MSG_NOSIGNAL) : 0;
        if (n < 0 && errno != EAGAIN)
            break;
        sent += n > 0 ? (size_t)n : 0;
        at = (at + (n > 0 ? (size_t)n : 0)) % len;
    }
    n = recv(p.fd, answer, sizeof answer - 1, 0);
    answer[n > 0 ? n : 0] = '\0';
    answer[strcspn(answer, "\r")] = '\0';
    printf("%zu %s\n", sent, answer);
    return 0;
}

/* -- saying ---------------------------------------------------------------------------------- */

static size_t head_len(void)
{
    const char *end = strstr(request, "\r\n\r\n");

    return end ? (size_t)(end - request) + 4 : request_len;
}

/* Sends `most` bytes, and the rest of the request once a response comes. */
static int say(int port, size_t most)
{
    static char bytes[64 << 10];
    client c = {.fd = connect_to(port, 0)};
    struct pollfd p = {.fd = c.fd, .events = POLLIN | POLLOUT};
    int64_t end = now_ms() + LIMIT_MS;
    ssize_t n = 1;

    while (n && c.fd >= 0 && now_ms() < end && poll(&p, 1, 1000) >= 0) {
        if (p.revents & POLLOUT)
            send_more(&c, most - c.sent);
        n = p.revents & ~POLLOUT ? recv(p.fd, bytes, sizeof bytes, 0) : -1;
        fwrite(bytes, 1, n > 0 ? (size_t)n : 0, stdout);
        if (n > 0)
            most = request_len;
        p.events = c.sent < most ? POLLIN | POLLOUT : POLLIN;
    }
    return 0;
}

/* -- garbling -------------------------------------------------------------------------------- */

static uint32_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % below;
}

static size_t garbled(char *out)
{
    static const char odd[] = "\r\n\0 :;,/%{}[]\"\\0123456789-";
    size_t n = draw(3) ? request_len : draw((uint32_t)request_len) + 1;

    memcpy(out, request, n);
    for (uint32_t i = draw(8); i > 0; i--)
        out[draw((uint32_t)n)] = draw(2) ? odd[draw(sizeof odd)] : (char)draw(256);
    return n;
}

static int garble(int port, size_t n)
{
    static char text[sizeof request];
    size_t answered = 0;

    for (size_t i = 0; i < n; i++) {
        client c = {.fd = connect_to(port, 0)};
        struct pollfd p = {c.fd, POLLOUT, 0};
        char bytes[4096];

        poll(&p, 1, 1000);
        send(c.fd, text, garbled(text), MSG_NOSIGNAL);
        p.events = POLLIN;
        poll(&p, 1, 20);
        answered += recv(c.fd, bytes, sizeof bytes, 0) > 0;
        over(&c, draw(2));
    }
    printf("%zu\n", answered);
    return 0;
}

int main(int argc, char **argv)
{
    size_t n = argc > 3 ? (size_t)atoi(argv[3]) : 0;

    if (argc == 6 && strcmp(argv[1], "ask") == 0 && n <= MAX) {
        read_request(argv[5]);
        return ask(atoi(argv[2]), n, (size_t)atoi(argv[4]));
    }
    if (argc == 4 && strcmp(argv[1], "flood") == 0) {
        read_request(argv[3]);
        return flood(atoi(argv[2]));
    }
    if (argc == 4 && strcmp(argv[1], "say") == 0) {
        read_request(argv[3]);
        return say(atoi(argv[2]), request_len);
    }
    if (argc == 4 && strcmp(argv[1], "expect") == 0) {
        read_request(argv[3]);
        return say(atoi(argv[2]), head_len());
    }
    if (argc == 6 && strcmp(argv[1], "garble") == 0) {
        read_request(argv[4]);
        seed = (uint32_t)atoi(argv[5]);
        return garble(atoi(argv[2]), n);
    }
    if (argc == 7 && strcmp(argv[1], "hold") == 0 && n <= MAX) {
        read_request(argv[4]);
        return hold(atoi(argv[2]), n, atoi(argv[5]), atoi(argv[6]));
    }
    fputs("usage: see the top of spec/support/crowd.c\n", stderr);
    return 2;
}
