/* tlsd: a loopback HTTPS server for specs of errors of certificates.
 *
 *   tlsd CERTIFICATE    a PEM file with a key and the certificate; prints "port N"
 *
 * Each connection gets the handshake and, for one request, a response "hello". OpenSSL is loaded
 * from the library that libcurl depends on, so that specs need no package for it; without that
 * library the exit code is 77. The server ends when its output is closed, at the latest after a
 * minute. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { NO_OPENSSL = 77, FILE_PEM = 1, LIFE_S = 60, PATIENCE_S = 10, MOST_HEAD = 64 << 10 };

/* Functions of OpenSSL 3, as its manual pages declare them. */
static struct {
    const void *(*TLS_server_method)(void);
    void *(*SSL_CTX_new)(const void *method);
    int (*SSL_CTX_use_certificate_chain_file)(void *ctx, const char *file);
    int (*SSL_CTX_use_PrivateKey_file)(void *ctx, const char *file, int type);
    void *(*SSL_new)(void *ctx);
    int (*SSL_set_fd)(void *ssl, int fd);
    int (*SSL_accept)(void *ssl);
    int (*SSL_read)(void *ssl, void *to, int n);
    int (*SSL_write)(void *ssl, const void *from, int n);
    int (*SSL_shutdown)(void *ssl);
    void (*SSL_free)(void *ssl);
} tls;

static void must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "tlsd: %s\n", what);
    exit(1);
}

static void load(void)
{
    static const struct {
        const char *name;
        void *at;
    } all[] = {{"TLS_server_method", &tls.TLS_server_method},
               {"SSL_CTX_new", &tls.SSL_CTX_new},
               {"SSL_CTX_use_certificate_chain_file", &tls.SSL_CTX_use_certificate_chain_file},
               {"SSL_CTX_use_PrivateKey_file", &tls.SSL_CTX_use_PrivateKey_file},
               {"SSL_new", &tls.SSL_new},
               {"SSL_set_fd", &tls.SSL_set_fd},
               {"SSL_accept", &tls.SSL_accept},
               {"SSL_read", &tls.SSL_read},
               {"SSL_write", &tls.SSL_write},
               {"SSL_shutdown", &tls.SSL_shutdown},
               {"SSL_free", &tls.SSL_free}};
    void *library = dlopen("libssl.so.3", RTLD_NOW);

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        void *f = library ? dlsym(library, all[i].name) : NULL;

        if (!f)
            exit(NO_OPENSSL);
        memcpy(all[i].at, &f, sizeof f);
    }
}

static int listen_loopback(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    must(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 16) == 0,
         "no port");
    must(getsockname(fd, (struct sockaddr *)&at, &n) == 0, "no name");
    printf("port %d\n", ntohs(at.sin_port));
    fflush(stdout);
    return fd;
}

/* Reads the whole head; specs send no body. */
static void answer(void *ssl)
{
    static const char hello[] =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n"
        "Connection: close\r\n\r\nhello";
    static char head[MOST_HEAD + 1];
    int n = 0, more;

    do {
        more = tls.SSL_read(ssl, head + n, MOST_HEAD - n);
        n += more > 0 ? more : 0;
        head[n] = '\0';
    } while (more > 0 && n < MOST_HEAD && !strstr(head, "\r\n\r\n"));
    if (more > 0)
        tls.SSL_write(ssl, hello, sizeof hello - 1);
    tls.SSL_shutdown(ssl);
}

static void serve(void *ctx, int fd)
{
    struct timeval patience = {.tv_sec = PATIENCE_S};
    void *ssl = tls.SSL_new(ctx);

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    must(ssl && tls.SSL_set_fd(ssl, fd) == 1, "no connection");
    if (tls.SSL_accept(ssl) == 1)
        answer(ssl);
    tls.SSL_free(ssl);
    close(fd);
}

int main(int argc, char **argv)
{
    struct pollfd fds[2] = {{.fd = STDOUT_FILENO}, {.events = POLLIN}};
    void *ctx;

    must(argc == 2, "one certificate, please");
    signal(SIGPIPE, SIG_IGN);
    alarm(LIFE_S);
    load();
    ctx = tls.SSL_CTX_new(tls.TLS_server_method());
    must(ctx && tls.SSL_CTX_use_certificate_chain_file(ctx, argv[1]) == 1 &&
             tls.SSL_CTX_use_PrivateKey_file(ctx, argv[1], FILE_PEM) == 1,
         "the certificate cannot be read");
    fds[1].fd = listen_loopback();
    while (poll(fds, 2, -1) > 0 && !fds[0].revents)
        serve(ctx, accept(fds[1].fd, NULL, NULL));
    return 0;
}
