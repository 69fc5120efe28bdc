/*
 * A verbs program that knows nothing of quotas: it creates and destroys objects as it is told and
 * says how far it got.
 *
 *   verbs_objects [-d DEVICE] STEP...
 *
 *   rc=N uc=N ud=N    create N QPs of that type     pd=N            create N PDs
 *   cq=N[:ENTRIES]    create N CQs                  mr=N[:BYTES]    register N MRs
 *   cqx=N qpx=N       the same by the _ex entries   ctx=N           open N more contexts
 *   srq=N mw=N ah=N   create N SRQs, MWs, AHs       resize=ENTRIES  resize the last CQ
 *   odp=N[:BYTES]     register N on-demand MRs      dm=N[:BYTES]    allocate N pieces of device memory
 *   xrcd=N wq=N counters=N   that many of each; table=N (of the first WQ), flow=N (to the first UD QP)
 *   xrc=N second=N    N XRC QPs that receive, of the first XRCD; N more handles of the first of them
 *   import=N ipd=N    import the device, or the first PD by the last of these devices; theirs=N: PDs by that device
 *   unseen=N          destroy N of the PDs by the kernel's own command, past libibverbs
 *   faulty=N          allocate N PDs by the kernel's own command, each of which it takes back since it cannot answer
 *   busy=N            try N times to destroy the PD in which all else is
 *   rereg=BYTES       re-register the last MR       drop=KIND       destroy all of that kind
 *   close             close the device with all that is alive, and open it again
 *   wait              print "waiting" and read a line of standard input
 *   sleep=SECONDS     thread:STEP,STEP...   these in a thread of their own, until it ends
 *
 * Each creating step prints "KIND: MADE of N" and, when it stopped short, the error's name. The exit
 * status is 0 when every step went as far as asked, 1 when one fell short, 2 for wrong usage or no
 * device.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "verbs_kinds.h"

static int create(struct pool *pool, int wanted, long argument)
{
	int made = 0;

	for (; made < wanted && pool->count < max_objects; ++made) {
		errno = 0;
		void *object = pool->make(argument);
		if (!object) {
			printf("%s: %d of %d, then %s\n", pool->kind, made, wanted, strerrorname_np(errno));
			return 1;
		}
		pool->object[pool->count++] = object;
	}
	printf("%s: %d of %d\n", pool->kind, made, wanted);
	return 0;
}

static int drop(struct pool *pool)
{
	int dropped = 0;

	for (; pool->count > 0; ++dropped) {
		int error = pool->end(pool->object[pool->count - 1]);
		if (error) {
			printf("drop %s: %d, then %s\n", pool->kind, dropped, strerrorname_np(error));
			return 1;
		}
		--pool->count;
	}
	printf("drop %s: %d\n", pool->kind, dropped);
	return 0;
}

static int report(const char *what, int error)
{
	printf("%s: %s\n", what, error ? strerrorname_np(error) : "ok");
	return error != 0;
}

/* As a program would that has a file of its own for them, or a libibverbs that we have not wrapped. */
static int destroy_unseen(int wanted)
{
	struct pool *pool = find_pool("pd");
	int done = 0;

	for (; done < wanted && pool->count > 0; ++done) {
		struct ibv_pd *pd = pool->object[--pool->count];
		struct {
			struct ib_uverbs_cmd_hdr head;
			struct ib_uverbs_dealloc_pd body;
		} command = {
			.head = { .command = IB_USER_VERBS_CMD_DEALLOC_PD, .in_words = sizeof(command) / 4 },
			.body = { .pd_handle = pd->handle },
		};
		if (write(context->cmd_fd, &command, sizeof(command)) < 0)
			break;
	}
	printf("unseen: %d of %d\n", done, wanted);
	return done < wanted;
}

static int fail_to_answer(int wanted)
{
	int failed = 0;

	for (int i = 0; i < wanted; ++i) {
		struct {
			struct ib_uverbs_cmd_hdr head;
			struct ib_uverbs_alloc_pd body;
		} command = {
			.head = {
				.command = IB_USER_VERBS_CMD_ALLOC_PD,
				.in_words = sizeof(command) / 4,
				.out_words = sizeof(struct ib_uverbs_alloc_pd_resp) / 4,
			},
			.body = { .response = 4096 },
		};
		failed += write(context->cmd_fd, &command, sizeof(command)) < 0 && errno == EFAULT;
	}
	printf("faulty: %d of %d\n", failed, wanted);
	return failed < wanted;
}

static int destroy_busy(int wanted)
{
	int failed = 0;

	for (int i = 0; i < wanted; ++i)
		failed += ibv_dealloc_pd(pd) == EBUSY;
	printf("busy: %d of %d\n", failed, wanted);
	return failed < wanted;
}

/* Tries again on EAGAIN, which the guard returns until it has resolved the caller, unless AT_ONCE is in the environment. */
static int open_all(void)
{
	for (int tries = 0; !(context = ibv_open_device(device)) && errno == EAGAIN && tries < 500 && !getenv("AT_ONCE"); ++tries)
		usleep(5000);
	if (!context)
		return report("open", errno);
	pd = ibv_alloc_pd(context);
	if (!pd)
		return report("first pd", errno);
	cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	if (!cq)
		return report("first cq", errno);
	return 0;
}

static int step(char *text)
{
	char *value = strchr(text, '=');
	struct pool *pool;

	if (value)
		*value++ = '\0';
	if (!strcmp(text, "wait")) {
		puts("waiting");
		return getchar() == EOF ? 0 : 0;
	}
	if (!strcmp(text, "close")) {
		for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); ++i)
			pools[i].count = 0;
		ibv_close_device(context);
		return open_all();
	}
	if (!value)
		return 2;
#ifdef DV_BY_NAME
	if (!strcmp(text, "load")) {
		dv_library = dlopen(value, RTLD_NOW);
		return dv_library ? 0 : report(dlerror(), ENOENT);
	}
#endif
	if (!strcmp(text, "sleep"))
		return sleep((unsigned)atoi(value)) != 0;
	if (!strcmp(text, "unseen"))
		return destroy_unseen(atoi(value));
	if (!strcmp(text, "faulty"))
		return fail_to_answer(atoi(value));
	if (!strcmp(text, "busy"))
		return destroy_busy(atoi(value));
	if (!strcmp(text, "drop"))
		return (pool = find_pool(value)) ? drop(pool) : 2;
	if (!strcmp(text, "resize")) {
		struct ibv_cq *last = last_of("cq");

		return last ? report("resize", ibv_resize_cq(last, atoi(value))) : 2;
	}
	if (!strcmp(text, "rereg")) {
		struct ibv_mr *last = last_of("mr");

		if (!last)
			return 2;
		errno = 0;
		int failed = ibv_rereg_mr(last, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, buffer, (size_t)atol(value), 0);
		return report("rereg", failed ? (errno ? errno : EIO) : 0);
	}
	pool = find_pool(text);
	if (!pool)
		return 2;
	char *argument = strchr(value, ':');
	return create(pool, atoi(value), argument ? strtol(argument + 1, NULL, 0) : pool->argument);
}

static int thread_status;

static void *steps_of_thread(void *text)
{
	for (char *rest, *one = strtok_r(text, ",", &rest); one; one = strtok_r(NULL, ",", &rest))
		thread_status |= step(one);
	return NULL;
}

static int in_thread(char *text)
{
	pthread_t thread;

	thread_status = 0;
	if (pthread_create(&thread, NULL, steps_of_thread, text) || pthread_join(thread, NULL))
		return 1;
	return thread_status;
}

static struct ibv_device *find_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i]; ++i)
		if (!name || !strcmp(ibv_get_device_name(list[i]), name))
			return list[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const char *name = NULL;
	int status = 0;
	int first = 1;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 2 && !strcmp(argv[1], "-d")) {
		name = argv[2];
		first = 3;
	}
	device = find_device(name);
	if (!device) {
		fprintf(stderr, "verbs_objects: no RDMA device%s%s\n", name ? " named " : "", name ? name : "");
		return 2;
	}
	buffer = aligned_alloc(4096, buffer_bytes);
	if (!buffer || open_all())
		return 1;
	for (int i = first; i < argc; ++i) {
		int result = strncmp(argv[i], "thread:", 7) ? step(argv[i]) : in_thread(argv[i] + 7);
		if (result == 2) {
			fprintf(stderr, "verbs_objects: unknown step '%s'\n", argv[i]);
			return 2;
		}
		status |= result;
	}
	return status;
}
