/*
 * Programs that look alike: eight at a time, each pid 1 of a pid namespace of its own, started in the same tick of the clock.
 *
 *   twins ROUNDS COMMAND...
 *
 * A round whose programs were not started in one tick is done again. Prints what they print, and at the end "rounds: N, failed: M",
 * M programs of which did not end with status 0. Runs as root.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { twins = 8, most_rounds = 10000 };

/* Field 22 of /proc/PID/stat. */
static unsigned long long start_of(pid_t pid)
{
	char path[64], line[1024] = "";
	unsigned long long start = 0;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	FILE *stat = fopen(path, "r");
	if (!stat || !fgets(line, sizeof line, stat) || !strrchr(line, ')'))
		exit(2);
	fclose(stat);
	char *at = strrchr(line, ')') + 1;
	for (int field = 3; field <= 22; field++)
		start = strtoull(strsep(&at, " ") ? at : "", 0, 10);
	return start;
}

/* Waits until the pipe's other end is closed, if that is to be gone on at all. */
static pid_t begin(int go[2], char **command)
{
	char byte;

	pid_t pid = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);

	if (pid < 0)
		exit(2);
	if (pid)
		return pid;
	close(go[1]);
	if (read(go[0], &byte, 1) == 1)
		_exit(0);
	close(go[0]);
	execv(command[0], command);
	_exit(2);
}

/* Until one begins, since boot. */
static void await_tick(void)
{
	const long tick = 1000000000 / sysconf(_SC_CLK_TCK);
	struct timespec now;

	do
		clock_gettime(CLOCK_BOOTTIME, &now);
	while (now.tv_nsec % tick > tick / 20);
}

/* How many failed; -1: not in one tick. */
static int round_of(char **command)
{
	pid_t all[twins];
	int go[2], failed = 0, same = 1;

	if (pipe(go))
		exit(2);
	await_tick();
	for (int i = 0; i < twins; i++)
		all[i] = begin(go, command);
	for (int i = 1; i < twins; i++)
		same &= start_of(all[i]) == start_of(all[0]);
	for (int i = 0; i < twins && !same; i++)
		if (write(go[1], "", 1) != 1)
			exit(2);
	close(go[1]);
	close(go[0]);
	for (int i = 0; i < twins; i++) {
		int status;

		failed += waitpid(all[i], &status, 0) != all[i] || status;
	}
	return same ? failed : -1;
}

int main(int argc, char **argv)
{
	int wanted = argc > 2 ? atoi(argv[1]) : 0, done = 0, failed = 0, tried = 0;

	const struct sched_param first = { 1 };

	if (wanted < 1 || sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first))
		return 2;
	for (; done < wanted && tried < most_rounds; tried++) {
		int now = round_of(argv + 2);

		if (now < 0)
			continue;
		done++;
		failed += now;
	}
	printf("of %d rounds\nrounds: %d, failed: %d\n", tried, done, failed);
	return failed || done < wanted;
}
