/*
 * A thread that is in another cgroup than its process's first one opens the first device, and tries again as long as it is not known.
 *
 *   strange_thread FILE
 *
 * FILE: cgroup.threads of that cgroup. Prints "opened", or the error's name.
 */
#include "raw_uverbs.h"
#include <pthread.h>

static void *opens(void *file)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "0", 1) < 0) {
		perror(file);
		return 0;
	}
	close(fd);
	fd = open_context();
	puts(fd < 0 ? strerrorname_np(errno) : "opened");
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 2 || pthread_create(&thread, 0, opens, argv[1]))
		return 2;
	pthread_join(thread, 0);
	return 0;
}
