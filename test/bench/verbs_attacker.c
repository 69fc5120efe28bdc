/*
 * verbs_attacker [--around] KIND PROCESSES: so many processes create objects of one kind on the first device, 16 of them,
 * destroy these and begin again, as fast as they can, whether or not a creation fails. A verbs program that knows nothing of quotas.
 *
 *   KIND      qp, cq, pd, context, or mr_SIZE, as mr_64k and mr_256m: an MR of that size; of 64 MiB and more, one and not 16
 *   --around  PDs and MRs by ioctl on the device's file, around the library
 *
 * Prints "attacking" when all of them have created for a while, and goes on until its input ends. Then prints how many
 * creations succeeded and failed per second meanwhile.
 */
#include "test/programs/raw_uverbs.h"
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>

enum { batch = 16, large = 64 << 20, settling_ms = 200, most_tries = 300, retry_us = 10000 };

struct control {
	atomic_uint ready;
	atomic_bool stop;
	atomic_ulong created, failed;
};

/* What was created: an object of the library, or the kernel's handle. */
union object {
	void *made;
	__u32 handle;
};

static struct control *control;
static struct ibv_device *device;
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static char *memory;
static size_t bytes;
static __u32 raw_pd;

static bool keep(union object *object, void *made) { return (object->made = made); }

static bool create_qp(union object *object)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	return keep(object, ibv_create_qp(pd, &attr));
}
static void destroy_qp(union object *object) { ibv_destroy_qp(object->made); }
static bool create_cq(union object *object) { return keep(object, ibv_create_cq(context, 16, NULL, NULL, 0)); }
static void destroy_cq(union object *object) { ibv_destroy_cq(object->made); }
static bool create_pd(union object *object) { return keep(object, ibv_alloc_pd(context)); }
static void destroy_pd(union object *object) { ibv_dealloc_pd(object->made); }
static bool create_context(union object *object) { return keep(object, ibv_open_device(device)); }
static void destroy_context(union object *object) { ibv_close_device(object->made); }
static bool create_mr(union object *object) { return keep(object, ibv_reg_mr(pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE)); }
static void destroy_mr(union object *object) { ibv_dereg_mr(object->made); }

static bool create_raw_pd(union object *object) { return !alloc_pd(context->cmd_fd, by_ioctl, &object->handle); }
static void destroy_raw_pd(union object *object)
{
	destroy(context->cmd_fd, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, object->handle);
}
static bool create_raw_mr(union object *object)
{
	struct ib_uverbs_reg_mr in = {
		.start = (uintptr_t)memory,
		.length = bytes,
		.hca_va = (uintptr_t)memory,
		.pd_handle = raw_pd,
		.access_flags = IBV_ACCESS_LOCAL_WRITE,
	};
	struct ib_uverbs_reg_mr_resp out;
	int failed = by_ioctl(context->cmd_fd, IB_USER_VERBS_CMD_REG_MR, &in, sizeof(in), &out, sizeof(out));

	object->handle = out.mr_handle;
	return !failed;
}
static void destroy_raw_mr(union object *object)
{
	destroy(context->cmd_fd, UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, object->handle);
}

struct kind {
	const char *name;
	bool (*create)(union object *);
	void (*destroy)(union object *);
	bool around;
};

static const struct kind kinds[] = {
	{ "qp", create_qp, destroy_qp, false },
	{ "cq", create_cq, destroy_cq, false },
	{ "pd", create_pd, destroy_pd, false },
	{ "context", create_context, destroy_context, false },
	{ "mr", create_mr, destroy_mr, false },
	{ "pd", create_raw_pd, destroy_raw_pd, true },
	{ "mr", create_raw_mr, destroy_raw_mr, true },
};

static const struct kind *find_kind(const char *name, bool around)
{
	char *unit;

	if (!strncmp(name, "mr_", 3)) {
		bytes = strtoul(name + 3, &unit, 10);
		bytes <<= *unit == 'k' ? 10 : *unit == 'm' ? 20 : *unit == 'g' ? 30 : 0;
		name = "mr";
	}
	for (const struct kind *kind = kinds; kind < kinds + sizeof(kinds) / sizeof(kinds[0]); ++kind)
		if (!strcmp(kind->name, name) && kind->around == around && (strcmp(name, "mr") || bytes))
			return kind;
	return NULL;
}

/* What a process needs before it can churn; where a rate or a limit refuses that for now, it is tried again. */
static bool open_all(bool around)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	bool has_raw_pd = !around;

	device = list ? list[0] : NULL;
	if (!device)
		return false;
	if (!strncmp(ibv_get_device_name(device), "mlx5", 4))
		driver = RDMA_DRIVER_MLX5;
	for (int tries = 0; tries < most_tries && !(cq && has_raw_pd); ++tries) {
		if (tries > 0)
			usleep(retry_us);
		context = context ? context : ibv_open_device(device);
		pd = pd || !context ? pd : ibv_alloc_pd(context);
		cq = cq || !pd ? cq : ibv_create_cq(context, 16, NULL, NULL, 0);
		has_raw_pd = has_raw_pd || (cq && !alloc_pd(context->cmd_fd, by_ioctl, &raw_pd));
	}
	return cq && has_raw_pd;
}

static void churn(const struct kind *kind)
{
	union object objects[batch];
	unsigned most = bytes >= large ? 1 : batch;

	while (!control->stop) {
		unsigned count = 0;

		for (unsigned i = 0; i < most && !control->stop; ++i) {
			bool created = kind->create(&objects[count]);

			++*(created ? &control->created : &control->failed);
			count += created;
		}
		while (count > 0)
			kind->destroy(&objects[--count]);
	}
}

/* Where a limit leaves no room for one, the others go on without it. */
static void attack(const struct kind *kind)
{
	bool opened = open_all(kind->around);

	if (!opened)
		perror("a process of the attacker");
	++control->ready;
	if (opened)
		churn(kind);
	_exit(!opened);
}

static unsigned long long now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

static void *shared(size_t length)
{
	void *room = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (room == MAP_FAILED)
		exit(2);
	return room;
}

static void await_attack(unsigned processes)
{
	while (control->ready < processes)
		usleep(1000);
	usleep(settling_ms * 1000);
	control->created = control->failed = 0;
	puts("attacking");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	bool around = argc > 1 && !strcmp(argv[1], "--around");
	unsigned processes = argc > 2 + around ? atoi(argv[2 + around]) : 0;
	const struct kind *kind = processes ? find_kind(argv[1 + around], around) : NULL;

	if (!kind)
		return 2;
	control = shared(sizeof(*control));
	memory = bytes ? shared(bytes) : NULL;
	for (unsigned i = 0; i < processes; ++i)
		if (!fork())
			attack(kind);
	await_attack(processes);
	unsigned long long start = now_ns();
	while (getchar() != EOF)
		;
	double seconds = (now_ns() - start) / 1e9;
	unsigned long created = control->created, failed = control->failed;
	control->stop = true;
	while (wait(NULL) > 0)
		;
	printf("creations %.0f\nfailures %.0f\n", created / seconds, failed / seconds);
	return 0;
}
