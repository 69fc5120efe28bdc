/*
 * verbs_pairs PAIRS [KIND [BLOCKS] | LIVE]: creates and destroys each kind of object that the device has, or that kind, and
 * prints the mean ns of a pair: over the middle half of groups of eight, and plain, over all. In a guest that counts
 * instructions as time, that is instructions. BLOCKS are allocated before, so that objects lie elsewhere. LIVE is a number of MRs that
 * are registered before. With a variable TRACE, it has the pairs traced instead (test/vm/tracer.py), as TRACE.KIND. A verbs
 * program that knows nothing of quotas.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define GROUP 8
#define MR_MOST (1 << 20)
#define HUGE (2 << 20)

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static char *memory;

static void *qp_create(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(pd, &attr);
}
static int qp_destroy(void *qp) { return ibv_destroy_qp(qp); }
static void *mr_4k_create(void) { return ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE); }
static void *mr_1m_create(void) { return ibv_reg_mr(pd, memory, MR_MOST, IBV_ACCESS_LOCAL_WRITE); }
static int mr_destroy(void *mr) { return ibv_dereg_mr(mr); }
static void *pd_create(void) { return ibv_alloc_pd(context); }
static int pd_destroy(void *made) { return ibv_dealloc_pd(made); }
static void *cq_create(void) { return ibv_create_cq(context, 16, NULL, NULL, 0); }
static int cq_destroy(void *made) { return ibv_destroy_cq(made); }

/* What has nothing to do with RDMA. */
static void *ioctl_create(void)
{
	static int pipes[2];
	int count;

	if (!pipes[1] && pipe(pipes))
		return NULL;
	return ioctl(pipes[0], FIONREAD, &count) ? NULL : memory;
}
static int ioctl_destroy(void *made) { return made ? 0 : -1; }

static void *mw_create(void) { return ibv_alloc_mw(pd, IBV_MW_TYPE_2); }
static int mw_destroy(void *made) { return ibv_dealloc_mw(made); }
static void *srq_create(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 16, .max_sge = 1 } };

	return ibv_create_srq(pd, &attr);
}
static int srq_destroy(void *made) { return ibv_destroy_srq(made); }
static void *ah_create(void)
{
	struct ibv_ah_attr attr = { .is_global = 1, .grh = { .sgid_index = 1, .hop_limit = 1 }, .port_num = 1 };

	if (ibv_query_gid(context, 1, 1, &attr.grh.dgid))
		return NULL;
	return ibv_create_ah(pd, &attr);
}
static int ah_destroy(void *made) { return ibv_destroy_ah(made); }

static const struct {
	const char *name;
	void *(*create)(void);
	int (*destroy)(void *);
} kinds[] = {
	{ "qp", qp_create, qp_destroy },
	{ "mr_4k", mr_4k_create, mr_destroy },
	{ "mr_1m", mr_1m_create, mr_destroy },
	{ "pd", pd_create, pd_destroy },
	{ "ioctl", ioctl_create, ioctl_destroy },
	{ "cq", cq_create, cq_destroy },
	{ "srq", srq_create, srq_destroy },
	{ "mw", mw_create, mw_destroy },
	{ "ah", ah_create, ah_destroy },
};

static unsigned long long now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

static int ascending(const void *left, const void *right)
{
	unsigned long long a = *(const unsigned long long *)left, b = *(const unsigned long long *)right;

	return (a > b) - (a < b);
}

/*
 * What mapping a QP's queue costs the kernel depends on the hole it comes to lie in, and on where in its tree
 * of mappings that is; libraries make holes by chance. These pages fill them and go on downwards, so that each
 * group of pairs meets another place, with whatever libraries.
 */
static void fill_holes(int pages)
{
	static int count;

	for (; pages > 0; --pages)
		mmap(NULL, 4096, ++count % 2 ? PROT_NONE : PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Of what is left without `cut` at either end. */
static double mean(const unsigned long long *sorted, size_t count, size_t cut)
{
	size_t from = cut, to = count - cut;
	double sum = 0;

	for (size_t i = from; i < to; ++i)
		sum += sorted[i];
	return sum / (to - from);
}

static int has(size_t kind)
{
	void *made = kinds[kind].create();

	return made && kinds[kind].destroy(made) == 0;
}

/* Of the middle half: the kernel has two ways to serve a PD, and a median tells of one only. */
static void measure(size_t kind, size_t pairs, const char *figure)
{
	size_t groups = pairs / GROUP, i;
	unsigned long long *ns = calloc(groups, sizeof(*ns));

	for (i = 0; ns && i < pairs / GROUP * GROUP; ++i) {
		if (i % GROUP == 0)
			fill_holes(1);
		unsigned long long start = now_ns();
		void *made = kinds[kind].create();

		if (!made || kinds[kind].destroy(made)) {
			perror(kinds[kind].name);
			exit(1);
		}
		ns[i / GROUP] += now_ns() - start;
	}
	qsort(ns, groups, sizeof(*ns), ascending);
	printf("%s.%s %.1f\n", figure, kinds[kind].name, mean(ns, groups, groups / 4) / GROUP);
	printf("%s_plain.%s %.1f\n", figure, kinds[kind].name, mean(ns, groups, 0) / GROUP);
	free(ns);
}

/* One line to the machine's tracer, which it answers. */
static void tell_tracer(int port, const char *word, const char *name)
{
	char line[64];
	int length = snprintf(line, sizeof(line), "%s %s\n", word, name);

	if (write(port, line, length) != length || read(port, line, 1) != 1)
		exit(3);
}

/* Has written down what is executed for so many pairs, once as many were made. */
static void trace(size_t kind, size_t pairs, const char *name, int port)
{
	char figure[64];

	snprintf(figure, sizeof(figure), "%s.%s", name, kinds[kind].name);
	for (size_t i = 0; i < 2 * pairs; ++i) {
		if (i == pairs)
			tell_tracer(port, "begin", figure);
		if (!has(kind))
			exit(1);
	}
	tell_tracer(port, "end", figure);
}

static int open_port(const char *path)
{
	struct termios settings;
	int port = open(path, O_RDWR | O_NOCTTY);

	if (port < 0 || tcgetattr(port, &settings) != 0)
		exit(3);
	cfmakeraw(&settings);
	tcsetattr(port, TCSANOW, &settings);
	return port;
}

/* Contiguous memory, since the cost of an MR is that of its contiguous pieces. */
static char *huge_page(void)
{
	char *room = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED)
		return NULL;
	room = (char *)(((uintptr_t)room + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	madvise(room, HUGE, MADV_HUGEPAGE);
	return room;
}

static void register_live(size_t count)
{
	for (; count > 0; --count)
		if (!mr_4k_create()) {
			perror("ibv_reg_mr");
			exit(1);
		}
}

/* Of all sizes that objects have. */
static void allocate(size_t blocks)
{
	static void *volatile kept;

	for (; blocks > 0; --blocks)
		kept = malloc(blocks % 32 * 16 + 16);
	(void)kept;
}

int main(int argc, char **argv)
{
	size_t pairs = argc > 1 ? strtoul(argv[1], NULL, 10) : 200;
	size_t live = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	const char *only = argc > 2 && live == 0 ? argv[2] : NULL;
	const char *traced = getenv("TRACE"); /* what the traces are named after */
	int port = traced ? open_port("/dev/ttyS1") : -1;
	struct ibv_device **list = ibv_get_device_list(NULL);

	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	pd = context ? ibv_alloc_pd(context) : NULL;
	cq = pd ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
	if (!cq || pairs < GROUP || !(memory = huge_page()))
		return 2;
	memset(memory, 1, MR_MOST);
	allocate(argc > 3 ? strtoul(argv[3], NULL, 10) : 0);
	fill_holes(512);
	register_live(live);
	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); ++kind)
		if ((!only || !strcmp(only, kinds[kind].name)) && has(kind))
			traced ? trace(kind, pairs, traced, port) : measure(kind, pairs, live ? "pair_live" : "pair");
	return 0;
}
