/*
 * Ways around a quota, without a verbs library: each tries to have COUNT PDs, and says how many it got.
 *
 *   around threads COUNT     64 threads, all at once
 *   around everywhere COUNT  the same, each by a file of its own, which all are opened at once
 *   around racer COUNT       a thread that changes requests for something harmless into such for PDs while the kernel reads
 *                            them
 *   around disguise COUNT    the same, of a method that there is not into such for PDs
 *   around racers COUNT      COUNT children at once, each of which is such a racer, by the descriptor of their parent
 *   around child COUNT       a child, by the descriptor of its parent
 *   around orphan COUNT      the same, after the parent's end
 *   around victims COUNT     children, each of which makes one by the same descriptor and the call of 32-bit programs, by a
 *                            request that the guard cannot read
 *   around many COUNT        one, by a request with many attributes in front
 *   around locked COUNT      one that locks the device file; it goes around nothing
 *   around missing COUNT     one, whose requests lie in a page that is not there yet
 *   around fresh COUNT       children, each of which opens the device itself, passes that on to its parent, makes what it may
 *                            and one more by a request that the guard cannot read
 *   around again COUNT       the same with one child; after a line one more by its descriptor, whose error it prints as
 *                            "again: NAME"
 *   around flight COUNT      one, by a descriptor that no process had while it printed "waiting" a first time; it made two
 *                            before that, which do not count in what it says
 *   around refused COUNT     64 threads named "refused", for whose ioctls refuser.bpf.c is, and then one with another name
 *   around become COUNT      one, which becomes ./other then, with these arguments: a set-user-ID program, say
 *   around pausing COUNT     nothing, and opens no device
 *   around events COUNT      COUNT completion channels, on each of which it asks for a context; then PDs
 *   around devices COUNT     the contexts of as many devices, instead of PDs
 *   around reopened COUNT    those by two files of the second device, of which one was opened after the first device's was closed
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

/*
 * Two words take turns in it. Of two commands that take the same, such as the end of a PD and its allocation, only the number
 * differs; of two methods the first word.
 */
static struct {
	struct ib_uverbs_ioctl_hdr head;
	struct ib_uverbs_attr attrs[3];
} request;

static struct change {
	volatile __u64 *word;
	__u64 harmless, harmful;
} change;

static void *changing(void *unused)
{
	for (;;) {
		*change.word = change.harmless;
		*change.word = change.harmful;
	}
	return unused;
}

static __u64 first_word(__u16 object, __u16 method)
{
	struct ib_uverbs_ioctl_hdr head = { .length = sizeof request, .object_id = object, .method_id = method, .num_attrs = 3 };
	__u64 word;

	memcpy(&word, &head, sizeof word);
	return word;
}

static struct change of_command(void)
{
	return (struct change){ (__u64 *)&request.attrs[0].data, IB_USER_VERBS_CMD_DEALLOC_PD, IB_USER_VERBS_CMD_ALLOC_PD };
}

static struct change of_method(void)
{
	enum { no_object = 30 };

	return (struct change){ (__u64 *)&request.head, first_word(no_object, 0),
				first_word(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE) };
}

static void by_racing(struct change by)
{
	struct ib_uverbs_alloc_pd in = { 0 };
	struct ib_uverbs_alloc_pd_resp out;
	__u64 head = first_word(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	pthread_t other;

	memcpy(&request.head, &head, sizeof head);
	request.head.driver_id = RDMA_DRIVER_RXE;
	request.attrs[0].data = IB_USER_VERBS_CMD_ALLOC_PD;
	change = by;
	pthread_create(&other, NULL, changing, NULL);
	for (int i = 0; i < most_tries && made < wanted; i++) {
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

static void by_child(void)
{
	int ends[2], told[2] = { 0 };

	if (pipe(ends))
		exit(2);
	if (fork() == 0) {
		make(wanted, by_ioctl);
		told[0] = made;
		told[1] = last_error;
		_exit(write(ends[1], told, sizeof told) != sizeof told);
	}
	if (read(ends[0], told, sizeof told) != sizeof told)
		exit(2);
	wait(NULL);
	made = told[0];
	last_error = told[1];
}

static int by_many(int file, unsigned command, void *in, size_t in_bytes, void *out, size_t out_bytes)
{
	struct invocation call = invocation(command, in, in_bytes, out, out_bytes);

	return with_many_attributes(file, &call, 0);
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

static void by_racers(void)
{
	for (int i = 0; i < wanted; i++)
		if (fork() == 0) {
			wanted = most_tries;
			by_racing(of_command());
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
}

static void by_fresh(int children)
{
	for (int i = 0; i < children; i++) {
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
			make(wanted, by_unread);
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
	if (fd >= 0 && !get_context_patiently(fd, by_ioctl))
		made++;
	else
		last_error = errno;
}

/* Each file takes a number of its own. */
static void allow_many_files(void)
{
	struct rlimit files = { 100000, 100000 };

	setrlimit(RLIMIT_NOFILE, &files);
}

static void by_opening(void)
{
	allow_many_files();
	made = 1;
	for (int i = 1; i < wanted; i++)
		open_one("/dev/infiniband/uverbs0");
}

/* Files of events are no devices' files, though they belong to the same module. */
static void with_events(void)
{
	allow_many_files();
	for (int i = 0; i < wanted; i++) {
		struct ib_uverbs_create_comp_channel in = { 0 };
		struct ib_uverbs_create_comp_channel_resp out;

		if (by_write(fd, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, &in, sizeof in, &out, sizeof out)) {
			last_error = errno;
			return;
		}
		get_context(out.fd, by_ioctl);
	}
	make(wanted, by_ioctl);
}

static void on_devices(void)
{
	for (int i = 0; i < wanted; i++) {
		char path[64];

		snprintf(path, sizeof path, "/dev/infiniband/uverbs%d", i);
		open_one(path);
	}
}

static int context_of(const char *path)
{
	int file = open(path, O_RDWR | O_CLOEXEC);

	return file < 0 || get_context_patiently(file, by_ioctl) ? -1 : file;
}

/* What the process uses of a device counts together, whatever it has closed in between. */
static void reopened(void)
{
	int first = context_of("/dev/infiniband/uverbs1");

	close(fd);
	fd = first;
	make(wanted, by_ioctl);
	fd = context_of("/dev/infiniband/uverbs1");
	make(wanted, by_ioctl);
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
	if (!strcmp(how, "pausing")) {
		pause();
		return 0;
	}
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
		by_racing(of_command());
	} else if (!strcmp(how, "disguise")) {
		by_racing(of_method());
	} else if (!strcmp(how, "racers")) {
		by_racers();
	} else if (!strcmp(how, "child")) {
		by_child();
	} else if (!strcmp(how, "victims")) {
		by_victims();
	} else if (!strcmp(how, "again")) {
		by_fresh(1);
	} else if (!strcmp(how, "many")) {
		make(wanted, by_many);
	} else if (!strcmp(how, "locked")) {
		struct flock whole = { .l_type = F_WRLCK };

		if (fcntl(fd, F_SETLK, &whole))
			return 2;
		make(wanted, by_ioctl);
	} else if (!strcmp(how, "fresh")) {
		by_fresh(wanted);
	} else if (!strcmp(how, "flight")) {
		in_flight();
	} else if (!strcmp(how, "opens")) {
		by_opening();
	} else if (!strcmp(how, "events")) {
		with_events();
	} else if (!strcmp(how, "become")) {
		make(wanted, by_ioctl);
		fcntl(fd, F_SETFD, 0);
		execl("./other", "other", "pausing", "1", NULL);
		return 2;
	} else if (!strcmp(how, "devices")) {
		on_devices();
	} else if (!strcmp(how, "reopened")) {
		reopened();
	} else if (!strcmp(how, "missing")) {
		make(wanted, by_unread);
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
