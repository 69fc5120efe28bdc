/*
 * Ways around a quota, without a verbs library: each tries to have COUNT PDs, and says how many it got.
 *
 *   around threads COUNT     64 threads, all at once
 *   around everywhere COUNT  the same, each by a file of its own, which all are opened at once
 *   around racer COUNT       a thread that changes requests for something harmless into such for PDs while the kernel reads
 *                            them
 *   around child COUNT       a child, by the descriptor of its parent
 *   around orphan COUNT      the same, after the parent's end
 *   around victims COUNT     children, each of which makes one by a request that the guard cannot read, by the same descriptor
 *   around again COUNT       the same; after a line one more by ioctl, whose error it prints as "again: NAME"
 *   around many COUNT        one, by a request with many attributes in front
 *   around locked COUNT      one that locks the device file; it goes around nothing
 *   around missing COUNT     one, whose requests lie in a page that is not there yet
 *   around fresh COUNT       children, each of which opens the device itself, passes that on to its parent, makes what it may
 *                            and one more as `victims` do
 *   around flight COUNT      one, by a descriptor that no process had while it printed "waiting" a first time; it made two
 *                            before that, which do not count in what it says
 *   around refused COUNT     64 threads named "refused", for whose ioctls refuser.bpf.c is, and then one with another name
 *   around devices COUNT     the contexts of as many devices, instead of PDs
 *   around opens COUNT       contexts instead of PDs, whose files stay open also where they are refused
 *
 * Prints "pd: MADE of COUNT" and the last error's name, "waiting", and reads a line.
 */
#include "descriptors.h"
#include "raw_uverbs.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { threads = 64, most_tries = 20000 };

static int fd, wanted;
static atomic_int made, last_error, refusals;
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

static void *refused(void *unused)
{
	__u32 handle;

	prctl(PR_SET_NAME, "refused");
	pthread_barrier_wait(&all_there);
	for (int i = 0; i < wanted; i++)
		if (!alloc_pd(fd, by_ioctl, &handle))
			puts("not refused");
		else if (errno == EPERM)
			refusals++;
	return unused;
}

static void *with_own_file(void *unused)
{
	__u32 handle;

	pthread_barrier_wait(&all_there);
	int file = open_context();
	while (file >= 0 && made < wanted && !alloc_pd(file, by_ioctl, &handle))
		made++;
	last_error = errno;
	pthread_barrier_wait(&all_there);
	return unused;
}

static void by_threads(void *(*thread)(void *))
{
	pthread_t all[threads];

	pthread_barrier_init(&all_there, NULL, threads);
	for (int i = 0; i < threads; i++)
		pthread_create(&all[i], NULL, thread, NULL);
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
	struct invocation last = invocation(command, in, in_bytes, out, out_bytes);
	struct {
		struct ib_uverbs_ioctl_hdr head;
		struct ib_uverbs_attr attrs[others + 3];
	} call = { .head = last.head };

	call.head.length = sizeof call;
	call.head.num_attrs = others + 3;
	for (int i = 0; i < others; i++) /* nobody knows these, and nobody must */
		call.attrs[i].attr_id = 0x3f0 + i;
	memcpy(call.attrs + others, last.attrs, sizeof last.attrs);
	return ioctl(file, RDMA_VERBS_IOCTL, &call);
}

static void by_victims(void)
{
	for (int i = 0; i < wanted; i++) {
		int status = 0;
		pid_t pid = fork();

		if (pid == 0) {
			make(1, by_old_call);
			_exit(0);
		}
		waitpid(pid, &status, 0);
	}
}

/* In a file's page that was dropped from memory. */
static int from_missing(int file, unsigned command, void *in, size_t in_bytes, void *out, size_t out_bytes)
{
	struct invocation call = invocation(command, in, in_bytes, out, out_bytes);
	int page = file_with(&call), status;

	if (page < 0)
		return -1;
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
	madvise(memory, 4096, MADV_DONTNEED);
	status = ioctl(file, RDMA_VERBS_IOCTL, memory);
	munmap(memory, 4096);
	close(page);
	return status;
}

static void by_fresh(void)
{
	for (int i = 0; i < wanted; i++) {
		int pair[2], status;

		socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
		pid_t pid = fork();

		if (pid == 0) {
			fd = open_context();
			if (fd < 0)
				_exit(1);
			pass_on(pair[1], fd);
			wanted = 1000;
			make(wanted, by_ioctl);
			make(wanted, by_old_call);
			_exit(0);
		}
		close(pair[1]);
		waitpid(pid, &status, 0);
		fd = take_over(pair[0]); /* as it dies, what it passed on is kept */
		close(pair[0]);
	}
}

static void in_flight(void)
{
	int pair[2];

	wanted += 2;
	make(2, by_ioctl);
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	pass_on(pair[1], fd);
	close(fd);
	puts("waiting");
	fflush(stdout);
	getchar();
	fd = take_over(pair[0]);
	wanted -= made;
	made = 0;
	make(wanted, by_ioctl);
}

static void open_one(const char *path)
{
	fd = open(path, O_RDWR);
	if (fd >= 0 && !get_context(fd, by_ioctl))
		made++;
	else
		last_error = errno;
}

/* Each file takes a number of its own. */
static void by_opening(void)
{
	struct rlimit files = { 100000, 100000 };

	setrlimit(RLIMIT_NOFILE, &files);
	made = 1;
	for (int i = 1; i < wanted; i++)
		open_one("/dev/infiniband/uverbs0");
}

static void on_devices(void)
{
	for (int i = 0; i < wanted; i++) {
		char path[64];

		snprintf(path, sizeof path, "/dev/infiniband/uverbs%d", i);
		open_one(path);
	}
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
		by_threads(in_thread);
	} else if (!strcmp(how, "refused")) {
		by_threads(refused);
		if (!refusals)
			puts("refused by the guard only");
		make(wanted, by_ioctl);
	} else if (!strcmp(how, "everywhere")) {
		by_threads(with_own_file);
	} else if (!strcmp(how, "racer")) {
		by_racing();
	} else if (!strcmp(how, "child")) {
		by_child();
	} else if (!strcmp(how, "victims") || !strcmp(how, "again")) {
		by_victims();
	} else if (!strcmp(how, "many")) {
		make(wanted, by_many);
	} else if (!strcmp(how, "locked")) {
		struct flock whole = { .l_type = F_WRLCK };

		if (fcntl(fd, F_SETLK, &whole))
			return 2;
		make(wanted, by_ioctl);
	} else if (!strcmp(how, "fresh")) {
		by_fresh();
	} else if (!strcmp(how, "flight")) {
		in_flight();
	} else if (!strcmp(how, "opens")) {
		by_opening();
	} else if (!strcmp(how, "devices")) {
		on_devices();
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
