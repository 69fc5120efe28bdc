/*
 * lock_keeper COUNT: opens the device and closes it COUNT times. Keeps a duplicate of each descriptor, with a lock of
 * the whole device file, so that the kernel keeps the contexts. Says how many it got.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int wanted = argc > 1 ? atoi(argv[1]) : 1;
	int got = 0;

	if (!list || !list[0])
		return 2;
	for (; got < wanted; ++got) {
		struct ibv_context *context = ibv_open_device(list[0]);
		struct flock whole = { .l_type = F_WRLCK };

		if (!context)
			break;
		int kept = dup(context->cmd_fd);
		if (kept < 0 || !ibv_alloc_pd(context) || fcntl(kept, F_SETLK, &whole))
			return 2;
		ibv_close_device(context);
	}
	printf("%d of %d, then %s\n", got, wanted, got < wanted ? strerrorname_np(errno) : "the end");
	return 0;
}
