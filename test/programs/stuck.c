/*
 * Threads that are stuck in the middle of a request: the kernel waits for a page, which never comes.
 *
 *   stuck THREADS           each makes a PD by one file; the page is for the kernel's answer
 *   stuck THREADS requests  the same; the page has the request
 */
#include "raw_uverbs.h"
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { stack_bytes = 1 << 14 };

static int fd;
static char *pages;

static void *maker(void *number)
{
	__u64 in = 0;

	by_ioctl(fd, IB_USER_VERBS_CMD_ALLOC_PD, &in, sizeof in, pages + 4096 * (long)number, sizeof(struct ib_uverbs_alloc_pd_resp));
	return 0;
}

static void *asker(void *number)
{
	ioctl(fd, RDMA_VERBS_IOCTL, pages + 4096 * (long)number);
	return 0;
}

/* Who writes there waits for whoever has the descriptor. 0, or -1. */
static int map_pages_that_never_come(long count)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register all = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int faults = syscall(SYS_userfaultfd, O_CLOEXEC);

	pages = mmap(0, 4096 * count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	all.range.start = (__u64)pages;
	all.range.len = 4096 * count;
	if (faults < 0 || pages == MAP_FAILED || ioctl(faults, UFFDIO_API, &api) || ioctl(faults, UFFDIO_REGISTER, &all))
		return -1;
	return 0;
}

int main(int argc, char **argv)
{
	long count = argc == 2 || argc == 3 ? atol(argv[1]) : 0;
	pthread_attr_t small;

	fd = open_device(by_ioctl);
	if (fd < 0 || count <= 0 || map_pages_that_never_come(count)) {
		perror("stuck");
		return 1;
	}
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, stack_bytes);
	for (long i = 0; i < count; i++) {
		pthread_t thread;
		int failed = pthread_create(&thread, &small, argc == 2 ? maker : asker, (void *)i);

		if (failed) {
			errno = failed;
			perror("a thread");
			return 1;
		}
	}
	pause();
	return 0;
}
