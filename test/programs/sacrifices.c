/*
 * Ways to have more PDs than a quota allows, by letting children be killed for it while the descriptors that they made them by
 * live on here.
 *
 *   sacrifices vector COUNT   a child makes COUNT by one writev
 *   sacrifices ring COUNT     COUNT children, each of which makes one by io_uring with this process's credentials
 *   sacrifices opened COUNT   COUNT children that have opened the device before; one after the other makes what it may, and one more
 *   sacrifices kinds COUNT    as `opened`, but between two of them a child makes a CQ too many, which goes away with its file
 *   sacrifices contexts COUNT  COUNT children, each of which opens a context by a request that the guard cannot read
 *   sacrifices pages COUNT    COUNT files, by each of which a request is made that the guard cannot read
 *   sacrifices old COUNT      the same by the call of 32-bit programs
 *   sacrifices files COUNT    COUNT files, opened one after the other, by each of which this process makes what it may, and a
 *                             child one more by the call of 32-bit programs
 *   sacrifices users COUNT    COUNT users of a user namespace that belongs to user 65533, one after the other, each until it is
 *                             refused; prints how many made anything: "users: N". As root only
 *   sacrifices pairs COUNT    COUNT times two threads open a context by the same file at once, and a third by another; prints
 *                             how often two had one: "twice: N"
 *
 * Prints how many children were killed, as "killed: N", then "waiting", and reads a line.
 */
#include "descriptors.h"
#include "raw_uverbs.h"
#include <linux/io_uring.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

static int wanted, killed;

static int create_cq(int fd)
{
	struct ib_uverbs_create_cq in = { .cqe = 1, .comp_channel = -1 };
	struct ib_uverbs_create_cq_resp out;

	return by_unread(fd, IB_USER_VERBS_CMD_CREATE_CQ, &in, sizeof in, &out, sizeof out);
}

struct request {
	struct ib_uverbs_cmd_hdr head;
	struct ib_uverbs_alloc_pd in;
} __attribute__((packed));
static struct request requests[1024];
static struct ib_uverbs_alloc_pd_resp answers[1024];

static void write_request(int i)
{
	requests[i].head.command = IB_USER_VERBS_CMD_ALLOC_PD;
	requests[i].head.in_words = sizeof requests[i] / 4;
	requests[i].head.out_words = sizeof answers[i] / 4;
	requests[i].in.response = (__u64)&answers[i];
}

static void await(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) == pid && WIFSIGNALED(status))
		killed++;
}

/* --- the ways */

static int link_ends[2];

/* A child that has opened the device, and its file; `go` on lets it make too much. */
struct child {
	pid_t pid;
	int fd, go;
};

static struct child begin_child(int makes_cqs)
{
	struct child it;
	int ends[2];

	if (pipe(ends))
		exit(2);
	it.go = ends[1];
	it.pid = fork();
	if (it.pid == 0) {
		__u32 handle;
		int fd = open_device(by_ioctl), failed = 0;
		char byte;

		close(ends[1]);
		pass_on(link_ends[1], fd < 0 ? ends[0] : fd);
		if (read(ends[0], &byte, 1) < 0 || fd < 0)
			_exit(1);
		while (!failed)
			failed = makes_cqs ? create_cq(fd) : alloc_pd(fd, by_unread, &handle);
		_exit(0);
	}
	close(ends[0]);
	it.fd = take_over(link_ends[0]);
	return it;
}

static void end_child(struct child it)
{
	if (write(it.go, "", 1) != 1)
		exit(2);
	close(it.go);
	await(it.pid);
}

static void by_vector(void)
{
	struct iovec vector[1024];
	pid_t pid = fork();

	if (pid == 0) {
		int fd = open_device(by_ioctl);

		pass_on(link_ends[1], fd);
		for (int i = 0; i < wanted; i++) {
			write_request(i);
			vector[i] = (struct iovec){ &requests[i], sizeof requests[i] };
		}
		_exit(writev(fd, vector, wanted) < 0);
	}
	await(pid);
	take_over(link_ends[0]);
}

static void by_ring(void)
{
	struct io_uring_params ring = { 0 };
	int entry = syscall(SYS_io_uring_setup, 8, &ring), fd = open_device(by_ioctl);
	int credentials = syscall(SYS_io_uring_register, entry, IORING_REGISTER_PERSONALITY, 0, 0);
	size_t bytes = ring.cq_off.cqes + ring.cq_entries * sizeof(struct io_uring_cqe) + ring.sq_off.array + ring.sq_entries * 4;
	char *queue = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, entry, IORING_OFF_SQ_RING);
	struct io_uring_sqe *requested =
		mmap(0, ring.sq_entries * sizeof *requested, PROT_READ | PROT_WRITE, MAP_SHARED, entry, IORING_OFF_SQES);

	if (entry < 0 || credentials < 0 || fd < 0 || queue == MAP_FAILED || requested == MAP_FAILED)
		exit(2);
	write_request(0);
	for (int i = 0; i < wanted; i++) {
		unsigned *tail = (unsigned *)(queue + ring.sq_off.tail), place = *tail & (ring.sq_entries - 1);

		requested[place] = (struct io_uring_sqe){
			.opcode = IORING_OP_WRITE,
			.fd = fd,
			.off = -1,
			.addr = (__u64)&requests[0],
			.len = sizeof requests[0],
			.personality = credentials,
		};
		((unsigned *)(queue + ring.sq_off.array))[place] = place;
		__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
		/* The next child waits for its own request's end. */
		*(unsigned *)(queue + ring.cq_off.head) = *(volatile unsigned *)(queue + ring.cq_off.tail);
		pid_t pid = fork();
		if (pid == 0)
			_exit(syscall(SYS_io_uring_enter, entry, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) != 1);
		await(pid);
	}
}

/* Contexts, by files that the children open and this process keeps. */
static void by_contexts(void)
{
	for (int i = 0; i < wanted; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			int fd = open("/dev/infiniband/uverbs0", O_RDWR);

			pass_on(link_ends[1], fd);
			_exit(get_context(fd, by_unread) != 0);
		}
		take_over(link_ends[0]);
		await(pid);
	}
}

static void by_opened(int between)
{
	struct child *pds = calloc(wanted, sizeof *pds), *cqs = calloc(wanted, sizeof *cqs);

	for (int i = 0; i < wanted; i++) {
		pds[i] = begin_child(0);
		if (between)
			cqs[i] = begin_child(1);
	}
	for (int i = 0; i < wanted; i++) {
		end_child(pds[i]);
		if (!between)
			continue;
		close(cqs[i].fd);
		end_child(cqs[i]);
		close(open_device(by_ioctl));
	}
}

static void from_pages(way *call)
{
	int *files = calloc(wanted, sizeof *files);
	__u32 handle;

	for (int i = 0; i < wanted; i++)
		files[i] = open_device(by_ioctl);
	for (int i = 0; i < wanted; i++)
		alloc_pd(files[i], call, &handle);
}

static void by_files(void)
{
	for (int i = 0; i < wanted; i++) {
		int fd = open_device(by_ioctl);
		__u32 handle;

		if (fd < 0)
			return;
		while (!alloc_pd(fd, by_ioctl, &handle))
			;
		pid_t pid = fork();
		if (pid == 0)
			_exit(alloc_pd(fd, by_old_call, &handle) != 0);
		await(pid);
	}
}

/* In the namespace: one user after the other, whose descriptors go to the process outside. */
static void be_users(void)
{
	int some = 0;

	for (int i = 1; i <= wanted; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			__u32 handle;
			int fd, had = 0;

			if (setresgid(i, i, i) || setresuid(i, i, i))
				_exit(2);
			fd = open_device(by_ioctl);
			if (fd < 0)
				_exit(0);
			pass_on(link_ends[1], fd);
			while (had < 20000 && !alloc_pd(fd, by_ioctl, &handle))
				had++;
			_exit(had > 0);
		}
		if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) > 1)
			_exit(255);
		some += WEXITSTATUS(status);
	}
	_exit(some);
}

static void map_ids(pid_t pid, const char *which)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/%s", pid, which);
	FILE *map = fopen(path, "w");

	if (!map || fputs("0 100000 60000\n", map) < 0 || fclose(map))
		exit(2);
}

static void by_users(void)
{
	int ready[2], go[2], status;
	char byte = 0;

	if (pipe(ready) || pipe(go))
		exit(2);
	pid_t pid = fork();
	if (pid == 0) {
		if (setresgid(65533, 65533, 65533) || setresuid(65533, 65533, 65533) || unshare(CLONE_NEWUSER) ||
		    write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
			_exit(255);
		be_users();
	}
	if (read(ready[0], &byte, 1) != 1)
		exit(2);
	map_ids(pid, "uid_map");
	map_ids(pid, "gid_map");
	if (write(go[1], &byte, 1) != 1 || waitpid(pid, &status, 0) != pid)
		exit(2);
	printf("users: %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static pthread_barrier_t together;
static int one_file, another_file, has_context[3];

static void *opener(void *number)
{
	long which = (long)number;

	for (int i = 0; i < wanted; i++) {
		pthread_barrier_wait(&together);
		has_context[which] = !get_context(which < 2 ? one_file : another_file, by_ioctl);
		pthread_barrier_wait(&together);
	}
	return 0;
}

static void in_pairs(void)
{
	pthread_t threads[3];
	int twice = 0;

	pthread_barrier_init(&together, 0, 4);
	for (long which = 0; which < 3; which++)
		pthread_create(&threads[which], 0, opener, (void *)which);
	for (int i = 0; i < wanted; i++) {
		one_file = open("/dev/infiniband/uverbs0", O_RDWR);
		another_file = open("/dev/infiniband/uverbs0", O_RDWR);
		pthread_barrier_wait(&together);
		pthread_barrier_wait(&together);
		twice += (has_context[0] || has_context[1]) && has_context[2];
		close(one_file);
		close(another_file);
	}
	printf("twice: %d\n", twice);
}

int main(int argc, char **argv)
{
	const char *how = argc == 3 ? argv[1] : "";

	wanted = argc == 3 ? atoi(argv[2]) : 0;
	if (wanted < 1 || socketpair(AF_UNIX, SOCK_STREAM, 0, link_ends))
		return 2;
	if (!strcmp(how, "vector") && wanted <= 1024)
		by_vector();
	else if (!strcmp(how, "ring"))
		by_ring();
	else if (!strcmp(how, "opened") || !strcmp(how, "kinds"))
		by_opened(!strcmp(how, "kinds"));
	else if (!strcmp(how, "contexts"))
		by_contexts();
	else if (!strcmp(how, "pages"))
		from_pages(by_unread);
	else if (!strcmp(how, "old"))
		from_pages(by_old_call);
	else if (!strcmp(how, "files"))
		by_files();
	else if (!strcmp(how, "users"))
		by_users();
	else if (!strcmp(how, "pairs"))
		in_pairs();
	else
		return 2;
	printf("killed: %d\nwaiting\n", killed);
	fflush(stdout);
	getchar();
	return 0;
}
