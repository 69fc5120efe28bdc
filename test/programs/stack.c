// stack KIB [DEVICE]: calls verbs, each on a new stack of KIB KiB, as programs with small user-level threads do (Argobots'
// have 16 KiB, brpc's 32), and prints a line for each:
//   STEP OUTCOME BYTES
// where OUTCOME is "done" or "failed" and BYTES is how much of the stack was written to. Below each stack lies a page
// that cannot be accessed, so that an overflow ends the program.
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { page = 4096, canary = 0x5a };

static const char *device = "rxe0";
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static char buffer[page];

static struct ibv_qp *create_qp(void) {
    struct ibv_qp_init_attr attributes = {
        .send_cq = cq, .recv_cq = cq, .cap = {16, 16, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    return ibv_create_qp(pd, &attributes);
}

static struct ibv_device **list;

static bool list_devices(void) {
    list = ibv_get_device_list(NULL);
    return list;
}

static bool open_device(void) {
    for (struct ibv_device **at = list; *at; ++at)
        if (!context && strcmp(ibv_get_device_name(*at), device) == 0) context = ibv_open_device(*at);
    ibv_free_device_list(list);
    return context;
}

static bool create(void) {
    pd = ibv_alloc_pd(context);
    cq = pd ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
    qp = cq ? create_qp() : NULL;
    return qp;
}

static bool create_second(void) {
    struct ibv_qp *second = create_qp();
    if (second) ibv_destroy_qp(second);
    return second;
}

static bool register_memory(void) {
    struct ibv_mr *mr = ibv_reg_mr(pd, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE);
    return mr && ibv_dereg_mr(mr) == 0;
}

// The driver refuses memory that is not mapped.
static bool register_nothing(void) { return ibv_reg_mr(pd, (void *)page, 1UL << 30, IBV_ACCESS_LOCAL_WRITE); }

static bool destroy(void) { return ibv_destroy_qp(qp) == 0; }

static bool close_device(void) {
    return ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0;
}

static const struct step {
    const char *name;
    bool (*call)(void);
} steps[] = {{"list", list_devices},       {"open", open_device},         {"create", create},
             {"second", create_second},     {"register", register_memory},
             {"fault", register_nothing},   {"destroy", destroy},
             {"close", close_device}};

static void *call_step(void *step) {
    return ((const struct step *)step)->call() ? step : NULL;
}

static bool run(const struct step *step, size_t size) {
    unsigned char *guard = mmap(NULL, page + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (guard == MAP_FAILED || mprotect(guard, page, PROT_NONE) != 0) return false;
    unsigned char *stack = guard + page;
    memset(stack, canary, size);
    pthread_attr_t attributes;
    pthread_t thread;
    void *done = NULL;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstack(&attributes, stack, size) || pthread_create(&thread, &attributes, call_step, (void *)step) ||
        pthread_join(thread, &done))
        return false;
    size_t untouched = 0;
    while (untouched < size && stack[untouched] == canary) ++untouched;
    printf("%s %s %zu\n", step->name, done ? "done" : "failed", size - untouched);
    return fflush(stdout) == 0;
}

int main(int argc, char **argv) {
    const size_t size = argc > 1 ? strtoul(argv[1], NULL, 10) * 1024 : 0;
    if (argc > 2) device = argv[2];
    for (size_t i = 0; i < sizeof steps / sizeof *steps; ++i)
        if (!run(&steps[i], size)) {
            perror(steps[i].name);
            return 1;
        }
    return 0;
}
