/*
 * Ways around a quota, without a verbs library: each tries to have COUNT PDs, and says how many it got.
 *
 *   around threads COUNT     64 threads, all at once
 *   around racer COUNT       a thread that changes requests for something harmless into such for PDs while the kernel reads
 *                            them
 *   around child COUNT       a child, by the descriptor of its parent
 *   around orphan COUNT      the same, after the parent's end
 *   around victims COUNT     children, each of which makes one as `many` does, by the same descriptor
 *   around again COUNT       the same; after a line one more by ioctl, whose error it prints as "again: NAME"
 *   around many COUNT        one, by a request with many attributes in front
 *   around missing COUNT     one, whose requests lie in a page that is not there yet
 *
 * Prints "pd: MADE of COUNT" and the last error's name, "waiting", and reads a line.
 */
#include "raw_uverbs.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { threads = 64, most_tries = 20000 };

static int fd, wanted;
static atomic_int made, last_error;
static pthread_barrier_t all_there;

static void make(int count, way *call)
{
	__u32 handle;

	for (int i = 0; i < count && made < wanted; i++) {
		if (alloc_pd(fd, call, &handle)) {
			last_error = errno;
			return;
		}
		made++;
	}
}

static void *in_thread(void *unused)
{
	pthread_barrier_wait(&all_there);
	make(wanted, by_ioctl);
	return unused;
}

static void by_threads(void)
{
	pthread_t all[threads];

	pthread_barrier_init(&all_there, NULL, threads);
	for (int i = 0; i < threads; i++)
		pthread_create(&all[i], NULL, in_thread, NULL);
	for (int i = 0; i < threads; i++)
		pthread_join(all[i], NULL);
}

/* Two commands that take the same: the query of a device and the allocation of a PD differ in their numbers. */
static struct {
	struct ib_uverbs_ioctl_hdr head;
	struct ib_uverbs_attr attrs[3];
} request;

static void *changing(void *unused)
{
	for (;;) {
		*(volatile __u64 *)&request.attrs[0].data = IB_USER_VERBS_CMD_DEALLOC_PD;
		*(volatile __u64 *)&request.attrs[0].data = IB_USER_VERBS_CMD_ALLOC_PD;
	}
	return unused;
}

static void by_racing(void)
{
	struct ib_uverbs_alloc_pd in = { 0 };
	struct ib_uverbs_alloc_pd_resp out;
	pthread_t other;

	pthread_create(&other, NULL, changing, NULL);
	for (int i = 0; i < most_tries && made < wanted; i++) {
		request.head = (struct ib_uverbs_ioctl_hdr){
			.length = sizeof request,
			.object_id = UVERBS_OBJECT_DEVICE,
			.method_id = UVERBS_METHOD_INVOKE_WRITE,
			.num_attrs = 3,
			.driver_id = RDMA_DRIVER_RXE,
		};
		request.attrs[1] = (struct ib_uverbs_attr){
			.attr_id = UVERBS_ATTR_CORE_IN, .len = sizeof in, .flags = UVERBS_ATTR_F_MANDATORY };
		memcpy(&request.attrs[1].data, &in, sizeof in);
		request.attrs[2] = (struct ib_uverbs_attr){
			.attr_id = UVERBS_ATTR_CORE_OUT, .len = sizeof out, .flags = UVERBS_ATTR_F_MANDATORY, .data = (__u64)&out };
		request.attrs[0].attr_id = UVERBS_ATTR_WRITE_CMD;
		request.attrs[0].len = sizeof(__u64);
		request.attrs[0].flags = UVERBS_ATTR_F_MANDATORY;
		out.pd_handle = ~0U;
		if (!ioctl(fd, RDMA_VERBS_IOCTL, &request) && out.pd_handle != ~0U)
			made++;
		else
			last_error = errno;
	}
}

/* What a child makes, it tells by its exit status, up to 255. */
static void by_child(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		make(wanted, by_ioctl);
		_exit(made);
	}
	waitpid(pid, &status, 0);
	made = WEXITSTATUS(status);
}

static int by_many(int file, unsigned command, void *in, size_t in_bytes, void *out, size_t out_bytes)
{
	enum { others = 20 };
	struct {
		struct ib_uverbs_ioctl_hdr head;
		struct ib_uverbs_attr attrs[others + 3];
	} call = {
		.head = {
			.length = sizeof call,
			.object_id = UVERBS_OBJECT_DEVICE,
			.method_id = UVERBS_METHOD_INVOKE_WRITE,
			.num_attrs = others + 3,
			.driver_id = RDMA_DRIVER_RXE,
		},
		.attrs = {
			[others] = { .attr_id = UVERBS_ATTR_WRITE_CMD, .len = sizeof(__u64), .flags = UVERBS_ATTR_F_MANDATORY, .data = command },
			[others + 1] = { .attr_id = UVERBS_ATTR_CORE_IN, .len = in_bytes, .flags = UVERBS_ATTR_F_MANDATORY },
			[others + 2] = { .attr_id = UVERBS_ATTR_CORE_OUT, .len = out_bytes, .flags = UVERBS_ATTR_F_MANDATORY, .data = (__u64)out },
		},
	};

	for (int i = 0; i < others; i++) /* nobody knows these, and nobody must */
		call.attrs[i].attr_id = 0x3f0 + i;
	memcpy(&call.attrs[others + 1].data, in, in_bytes);
	return ioctl(file, RDMA_VERBS_IOCTL, &call);
}

static void by_victims(void)
{
	for (int i = 0; i < wanted; i++) {
		int status = 0;
		pid_t pid = fork();

		if (pid == 0) {
			make(1, by_many);
			_exit(0);
		}
		waitpid(pid, &status, 0);
	}
}

/* In a file's page that was dropped from memory. */
static int from_missing(int file, unsigned command, void *in, size_t in_bytes, void *out, size_t out_bytes)
{
	struct {
		struct ib_uverbs_ioctl_hdr head;
		struct ib_uverbs_attr attrs[3];
	} call = {
		.head = {
			.length = sizeof call,
			.object_id = UVERBS_OBJECT_DEVICE,
			.method_id = UVERBS_METHOD_INVOKE_WRITE,
			.num_attrs = 3,
			.driver_id = RDMA_DRIVER_RXE,
		},
		.attrs = {
			{ .attr_id = UVERBS_ATTR_WRITE_CMD, .len = sizeof(__u64), .flags = UVERBS_ATTR_F_MANDATORY, .data = command },
			{ .attr_id = UVERBS_ATTR_CORE_IN, .len = in_bytes, .flags = UVERBS_ATTR_F_MANDATORY },
			{ .attr_id = UVERBS_ATTR_CORE_OUT, .len = out_bytes, .flags = UVERBS_ATTR_F_MANDATORY, .data = (__u64)out },
		},
	};
	int page = open("page", O_RDWR | O_CREAT | O_TRUNC, 0600), status;

	memcpy(&call.attrs[1].data, in, in_bytes);
	if (page < 0 || write(page, &call, sizeof call) != sizeof call || ftruncate(page, 4096))
		return -1;
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
	madvise(memory, 4096, MADV_DONTNEED);
	status = ioctl(file, RDMA_VERBS_IOCTL, memory);
	munmap(memory, 4096);
	close(page);
	return status;
}

static void report(void)
{
	printf("pd: %d of %d%s%s\n", made, wanted, last_error ? " " : "", last_error ? strerrorname_np(last_error) : "");
	puts("waiting");
	fflush(stdout);
	getchar();
}

int main(int argc, char **argv)
{
	const char *how = argc == 3 ? argv[1] : "";

	wanted = argc == 3 ? atoi(argv[2]) : 0;
	fd = open_context();
	if (fd < 0) {
		printf("context: %s\n", strerrorname_np(errno));
		return 2;
	}
	if (!strcmp(how, "orphan")) {
		pid_t parent = getpid(), pid = fork();

		if (pid)
			_exit(0);
		while (getppid() == parent)
			usleep(1000);
		make(wanted, by_ioctl);
	} else if (!strcmp(how, "threads")) {
		by_threads();
	} else if (!strcmp(how, "racer")) {
		by_racing();
	} else if (!strcmp(how, "child")) {
		by_child();
	} else if (!strcmp(how, "victims") || !strcmp(how, "again")) {
		by_victims();
	} else if (!strcmp(how, "many")) {
		make(wanted, by_many);
	} else if (!strcmp(how, "missing")) {
		make(wanted, from_missing);
	} else {
		return 2;
	}
	report();
	if (!strcmp(how, "again")) {
		__u32 handle;

		printf("again: %s\n", alloc_pd(fd, by_ioctl, &handle) ? strerrorname_np(errno) : "made");
	}
	return made < wanted;
}
