/* A server that shares no code with Prony, to judge clients by: OpenAI-like chat streams with
 * absolute deadlines (receipt of the request + TTFT + i * ITL), every write stamped before and after
 * its system call with CLOCK_MONOTONIC, which the stamps of another process on this host compare to.
 *
 *   cc -O2 -o stamped_server stamped_server.c
 *   stamped_server [--port N] [--ttft-us N] [--itl-us N] [--spin-us N] [--align-us N] --stamps FILE
 *
 * Says "listening on URL" on stderr. On SIGTERM it writes FILE, one JSON object a request:
 *   {"id":X-Request-Id,"t_received_ns":T,"writes":[[before_ns,after_ns,tokens],...]}
 * and ends. --align-us N moves every stream's start to the next multiple of N on the clock, so that
 * the tokens of all streams leave at the same instants, as they do from a server that batches.
 * One thread; x86-64 Linux; needs nothing but libc. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

typedef int64_t ns_t;
enum { REQUEST_MAX = 1 << 20, EPOLL_BATCH = 64 };

typedef struct {
  ns_t before, after;
} stamp_t;

typedef struct answer {
  char id[96];
  ns_t received;
  stamp_t *writes;
  int written;
  struct answer *next;
} answer_t;

typedef struct {
  int fd;
  char *request;
  size_t have;
  answer_t *answer; /* null: between requests */
  ns_t start;
  int tokens;
  ns_t due;
  int place; /* in the heap, -1: not there */
} conn_t;

static ns_t ttft = 50000000, itl = 10000000, spin = 200000, align_to = 0;
static volatile sig_atomic_t ending = 0;
static answer_t *answers = NULL;
static conn_t **heap = NULL;
static int heap_size = 0, heap_room = 0;

static ns_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (ns_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void die(const char *what) {
  perror(what);
  exit(3);
}

static void put_at(int place, conn_t *conn) {
  heap[place] = conn;
  conn->place = place;
}

static void sift(int place) {
  conn_t *conn = heap[place];
  while (place > 0 && heap[(place - 1) / 2]->due > conn->due) {
    put_at(place, heap[(place - 1) / 2]);
    place = (place - 1) / 2;
  }
  for (;;) {
    int child = 2 * place + 1;
    if (child >= heap_size) break;
    if (child + 1 < heap_size && heap[child + 1]->due < heap[child]->due) ++child;
    if (heap[child]->due >= conn->due) break;
    put_at(place, heap[child]);
    place = child;
  }
  put_at(place, conn);
}

static void arm(conn_t *conn, ns_t due) {
  conn->due = due;
  if (conn->place < 0) {
    if (heap_size == heap_room) {
      heap_room = heap_room ? 2 * heap_room : 1024;
      heap = realloc(heap, (size_t)heap_room * sizeof *heap);
      if (!heap) die("realloc");
    }
    put_at(heap_size++, conn);
  }
  sift(conn->place);
}

static void disarm(conn_t *conn) {
  const int place = conn->place;
  if (place < 0) return;
  conn->place = -1;
  if (place == --heap_size) return;
  put_at(place, heap[heap_size]);
  sift(place);
}

static void close_conn(conn_t *conn) {
  disarm(conn);
  close(conn->fd);
  free(conn->request);
  free(conn);
}

/* One system call; a client that reads so slowly that the socket is full is cut off. */
static int send_all(conn_t *conn, const char *bytes, size_t size) {
  return send(conn->fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static size_t add_event(char *out, const char *json) {
  const size_t size = strlen(json) + 8; /* "data: " and the blank line */
  return (size_t)sprintf(out, "%zx\r\ndata: %s\n\n\r\n", size, json);
}

static int play(conn_t *conn) {
  static const char head[] =
      "{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"stamped\",";
  answer_t *answer = conn->answer;
  const int i = answer->written;
  char json[512], out[2048];
  snprintf(json, sizeof json, "%s\"choices\":[{\"index\":0,\"delta\":{%s\"content\":\"tok%d \"},"
           "\"finish_reason\":null}]}", head, i == 0 ? "\"role\":\"assistant\"," : "", i);
  const size_t size = add_event(out, json);
  answer->writes[i].before = now_ns();
  if (!send_all(conn, out, size)) return 0;
  answer->writes[i].after = now_ns();
  ++answer->written;
  if (answer->written < conn->tokens) {
    arm(conn, conn->start + ttft + (ns_t)answer->written * itl);
    return 1;
  }
  disarm(conn);
  conn->answer = NULL;
  conn->have = 0;
  snprintf(json, sizeof json, "%s\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}",
           head);
  size_t end = add_event(out, json);
  snprintf(json, sizeof json, "%s\"choices\":[],\"usage\":{\"prompt_tokens\":1,"
           "\"completion_tokens\":%d,\"total_tokens\":%d}}", head, conn->tokens, conn->tokens + 1);
  end += add_event(out + end, json);
  end += add_event(out + end, "[DONE]");
  memcpy(out + end, "0\r\n\r\n", 5);
  return send_all(conn, out, end + 5);
}

static int respond(conn_t *conn, const char *status, const char *body) {
  char out[512];
  conn->have = 0;
  const int size = snprintf(out, sizeof out, "HTTP/1.1 %s\r\nContent-Type: application/json\r\n"
                            "Content-Length: %zu\r\n\r\n%s", status, strlen(body), body);
  return send_all(conn, out, (size_t)size);
}

/* A whole request lies in conn->request. */
static int begin(conn_t *conn, ns_t received) {
  if (strncmp(conn->request, "GET /v1/models", 14) == 0) {
    return respond(conn, "200 OK", "{\"object\":\"list\",\"data\":[{\"id\":\"stamped\","
                   "\"object\":\"model\",\"owned_by\":\"stamped\"}]}");
  }
  if (strncmp(conn->request, "POST ", 5) != 0) return respond(conn, "404 Not Found", "{}");
  const char *id = strcasestr(conn->request, "\r\nX-Request-Id:");
  const char *asked = strstr(conn->request, "\"max_completion_tokens\":");
  if (!asked) asked = strstr(conn->request, "\"max_tokens\":");
  conn->tokens = asked ? atoi(strchr(asked, ':') + 1) : 16;
  if (conn->tokens < 1 || conn->tokens > 100000) return respond(conn, "400 Bad Request", "{}");
  answer_t *answer = calloc(1, sizeof *answer);
  if (!answer) die("calloc");
  if (id) sscanf(id + 15, " %95[^\r\n\"\\]", answer->id);
  answer->received = received;
  answer->writes = calloc((size_t)conn->tokens, sizeof *answer->writes);
  if (!answer->writes) die("calloc");
  answer->next = answers;
  answers = answer;
  conn->answer = answer;
  conn->start = align_to > 0 ? (received / align_to + 1) * align_to : received;
  arm(conn, conn->start + ttft);
  static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                             "Transfer-Encoding: chunked\r\n\r\n";
  return send_all(conn, head, sizeof head - 1);
}

static int on_readable(conn_t *conn) {
  if (conn->answer) { /* nothing is expected: the client has gone */
    char byte;
    const ssize_t n = recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n < 0 && errno == EAGAIN;
  }
  const ssize_t n = recv(conn->fd, conn->request + conn->have, REQUEST_MAX - 1 - conn->have, 0);
  if (n < 0 && errno == EAGAIN) return 1;
  if (n <= 0) return 0;
  const ns_t received = now_ns();
  conn->have += (size_t)n;
  conn->request[conn->have] = 0;
  const char *end = strstr(conn->request, "\r\n\r\n");
  if (!end) return conn->have < REQUEST_MAX - 1;
  const char *length = strcasestr(conn->request, "\r\nContent-Length:");
  const size_t body = length && length < end ? (size_t)atol(length + 17) : 0;
  if (conn->have < (size_t)(end + 4 - conn->request) + body) return conn->have < REQUEST_MAX - 1;
  return begin(conn, received);
}

static void accept_all(int listener, int poll) {
  for (;;) {
    const int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    conn_t *conn = calloc(1, sizeof *conn);
    /* Virtual until touched: most requests are a few KB. */
    if (conn) conn->request = malloc(REQUEST_MAX);
    if (!conn || !conn->request) die("malloc");
    conn->fd = fd;
    conn->place = -1;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = conn};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) != 0) die("epoll_ctl");
  }
}

static void write_stamps(const char *path) {
  FILE *file = fopen(path, "w");
  if (!file) die(path);
  for (const answer_t *answer = answers; answer; answer = answer->next) {
    fprintf(file, "{\"id\":\"%s\",\"t_received_ns\":%lld,\"writes\":[", answer->id,
            (long long)answer->received);
    for (int i = 0; i < answer->written; ++i) {
      fprintf(file, "%s[%lld,%lld,1]", i ? "," : "", (long long)answer->writes[i].before,
              (long long)answer->writes[i].after);
    }
    fprintf(file, "]}\n");
  }
  if (fclose(file) != 0) die(path);
}

static void on_signal(int signal) {
  (void)signal;
  ending = 1;
}

static void run(int listener) {
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (poll < 0 || timer < 0) die("epoll_create1");
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
  epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
  event.data.ptr = (void *)&timer;
  epoll_ctl(poll, EPOLL_CTL_ADD, timer, &event);
  while (!ending) {
    while (heap_size > 0 && heap[0]->due <= now_ns()) {
      conn_t *conn = heap[0];
      if (!play(conn)) close_conn(conn);
    }
    int timeout = -1;
    if (heap_size > 0) {
      const ns_t sleep_to = heap[0]->due - spin;
      if (sleep_to <= now_ns()) {
        timeout = 0;
      } else {
        const struct itimerspec at = {.it_value = {sleep_to / 1000000000, sleep_to % 1000000000}};
        timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
      }
    }
    struct epoll_event ready[EPOLL_BATCH];
    /* While deadlines are near, one connection at a time, so that no read makes a write late. */
    const int n = epoll_wait(poll, ready, timeout == 0 ? 1 : EPOLL_BATCH, timeout);
    for (int i = 0; i < n; ++i) {
      if (ready[i].data.ptr == NULL) {
        accept_all(listener, poll);
      } else if (ready[i].data.ptr == (void *)&timer) {
        uint64_t times;
        if (read(timer, &times, sizeof times) < 0) continue;
      } else if (!on_readable(ready[i].data.ptr)) {
        close_conn(ready[i].data.ptr);
      }
    }
  }
}

int main(int count, char **values) {
  int port = 0;
  const char *stamps = NULL;
  for (int i = 1; i + 1 < count; i += 2) {
    const char *name = values[i], *value = values[i + 1];
    if (!strcmp(name, "--port")) port = atoi(value);
    else if (!strcmp(name, "--ttft-us")) ttft = atoll(value) * 1000;
    else if (!strcmp(name, "--itl-us")) itl = atoll(value) * 1000;
    else if (!strcmp(name, "--spin-us")) spin = atoll(value) * 1000;
    else if (!strcmp(name, "--align-us")) align_to = atoll(value) * 1000;
    else if (!strcmp(name, "--stamps")) stamps = value;
    else {
      fprintf(stderr, "stamped_server: unknown flag %s\n", name);
      return 2;
    }
  }
  if (!stamps) {
    fprintf(stderr, "stamped_server: --stamps FILE is missing\n");
    return 2;
  }
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0) die("bind");
  if (listen(listener, 4096) != 0) die("listen");
  socklen_t size = sizeof address;
  getsockname(listener, (struct sockaddr *)&address, &size);
  fprintf(stderr, "listening on http://127.0.0.1:%d\n", ntohs(address.sin_port));
  run(listener);
  write_stamps(stamps);
  return 0;
}
