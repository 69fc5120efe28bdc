// leaker: leaks a QP and a device context, with LeakSanitizer, which reports what the program can no longer reach.
#include <infiniband/verbs.h>
#include <string.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

static struct ibv_context *open_first(void) {
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *opened = list && *list ? ibv_open_device(*list) : NULL;
    if (list) ibv_free_device_list(list);
    return opened;
}

__attribute__((noinline)) static int leak(void) {
    struct ibv_qp_init_attr attributes = {.send_cq = cq, .recv_cq = cq, .cap = {16, 16, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    return ibv_create_qp(pd, &attributes) && open_first();
}

// Overwrites what the calls before have left on the stack.
__attribute__((noinline)) static void clear_stack(void) {
    volatile char unused[65536];
    for (size_t i = 0; i < sizeof unused; ++i) unused[i] = 0;
}

int main(void) {
    context = open_first();
    pd = context ? ibv_alloc_pd(context) : NULL;
    cq = pd ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
    if (!cq || !leak()) return 2;
    clear_stack();
    return 0;  // LeakSanitizer makes it 23 when something leaked
}
