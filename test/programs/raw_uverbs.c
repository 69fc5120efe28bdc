/*
 * A program that uses no verbs library: it opens the first device's file, rxe's, gets a context and allocates PDs by
 * the kernel's own interface.
 *
 *   raw_uverbs write|ioctl|unread|opened COUNT [CHILDREN]
 *
 * unread: by ioctl of a page that is not in memory; opened: by ioctl, with a context got by write. Each of the children, one after the other, makes a PD more and
 * destroys it, by the same descriptor; another one keeps that for a second after the program's own end.
 *
 * Prints "pd: MADE of COUNT" and, when it stopped short, the error's name; then "waiting", and reads a line. The
 * exit status is 0 when all were made, 1 when not, 2 when there is no device.
 */
#include "raw_uverbs.h"
#include <sys/wait.h>

static way *way_of(const char *name)
{
	if (!strcmp(name, "write"))
		return by_write;
	return strcmp(name, "unread") ? by_ioctl : by_unread;
}

static int is_opened_by_write(const char *name) { return !strcmp(name, "write") || !strcmp(name, "opened"); }

static void child(int fd)
{
	__u32 handle;
	pid_t pid = fork();

	if (pid == 0)
		_exit(alloc_pd(fd, by_ioctl, &handle) || destroy(fd, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, handle));
	int status = -1;
	if (waitpid(pid, &status, 0) != pid || status)
		puts("a child failed");
}

int main(int argc, char **argv)
{
	int wanted = argc > 2 ? atoi(argv[2]) : 1, children = argc > 3 ? atoi(argv[3]) : 0, made = 0;
	__u32 handle;
	int fd = argc > 1 ? open_device(is_opened_by_write(argv[1]) ? by_write : by_ioctl) : -1;

	if (argc < 3 || fd < 0) {
		perror("raw_uverbs");
		return 2;
	}
	while (made < wanted && !alloc_pd(fd, way_of(argv[1]), &handle))
		++made;
	printf("pd: %d of %d%s%s\n", made, wanted, made < wanted ? " " : "", made < wanted ? strerrorname_np(errno) : "");
	for (int i = 0; i < children; ++i)
		child(fd);
	puts("waiting");
	fflush(stdout);
	getchar();
	if (children && !fork())
		sleep(1);
	return made < wanted;
}
