/* lock_spinner FILE MICROSECONDS: locks all of FILE and unlocks it again, so long each, until it is killed. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int set_lock(int fd, short type)
{
	struct flock whole = {.l_type = type, .l_whence = SEEK_SET};

	return fcntl(fd, F_OFD_SETLKW, &whole);
}

int main(int argc, char **argv)
{
	int fd = argc == 3 ? open(argv[1], O_RDWR) : -1;

	if (fd < 0) {
		perror("lock_spinner");
		return 1;
	}
	puts("waiting");
	fflush(stdout);
	while (set_lock(fd, F_WRLCK) == 0) {
		usleep((useconds_t)atoi(argv[2]));
		set_lock(fd, F_UNLCK);
	}
	return 1;
}
