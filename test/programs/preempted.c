/*
 * Threads of one CPU that preempt each other in the middle of requests: three that the scheduler lets run when nobody else
 * wants to, and one that wakes up again and again.
 *
 *   preempted pds SECONDS     they make and destroy PDs by one file
 *   preempted files SECONDS   they open contexts and close them
 *   preempted killed SECONDS  as `files`, in children that a signal ends in the middle of it
 *
 * Prints the most that they had at once, as "most: N", then "waiting", and reads a line, when they hold nothing any more.
 */
#include "raw_uverbs.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

enum { threads = 4, most_held = 64 };

static int fd, seconds, makes_pds;
static atomic_int have, most, ended;

static void made(int count)
{
	int now = atomic_fetch_add(&have, count) + count;

	for (int before = most; now > before && !atomic_compare_exchange_weak(&most, &before, now);)
		;
}

static int begin(__u32 *it)
{
	if (makes_pds)
		return alloc_pd(fd, by_ioctl, it);
	*it = open_device(by_ioctl);
	return *it == (__u32)-1;
}

static void end(__u32 it)
{
	struct ib_uverbs_dealloc_pd in = { .pd_handle = it };

	atomic_fetch_sub(&have, 1);
	if (!makes_pds)
		close(it);
	else if (by_ioctl(fd, IB_USER_VERBS_CMD_DEALLOC_PD, &in, sizeof in, 0, 0))
		perror("a PD is not destroyed");
}

static void *maker(void *number)
{
	const struct sched_param none = { 0 };
	__u32 held[most_held];
	unsigned seed = (unsigned)(long)number;

	if (number && sched_setscheduler(0, SCHED_IDLE, &none))
		perror("SCHED_IDLE");
	while (!ended) {
		int count = 0, wanted = 1 + rand_r(&seed) % most_held;
		struct timespec moment = { .tv_nsec = 20000 + rand_r(&seed) % 300000 };

		if (!number)
			nanosleep(&moment, 0);
		for (; count < wanted && !ended && !begin(&held[count]); count++)
			made(1);
		while (count > 0)
			end(held[--count]);
	}
	return 0;
}

static void all_at_once(void)
{
	pthread_t there[threads];

	for (long i = 0; i < threads; i++)
		pthread_create(&there[i], 0, maker, (void *)i);
	sleep(seconds);
	ended = 1;
	for (int i = 0; i < threads; i++)
		pthread_join(there[i], 0);
}

static void in_children(void)
{
	for (time_t until = time(0) + seconds; time(0) < until;) {
		pid_t pid = fork();

		if (pid == 0) {
			const struct itimerval soon = { .it_value.tv_usec = 200000 };

			setitimer(ITIMER_REAL, &soon, 0); /* its signal ends the child */
			all_at_once();
			_exit(0);
		}
		waitpid(pid, 0, 0);
	}
}

int main(int argc, char **argv)
{
	cpu_set_t one;

	seconds = argc == 3 ? atoi(argv[2]) : 0;
	makes_pds = seconds && !strcmp(argv[1], "pds");
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (!seconds || sched_setaffinity(0, sizeof one, &one))
		return 2;
	if (makes_pds && (fd = open_device(by_ioctl)) < 0)
		return 1;
	if (!strcmp(argv[1], "killed"))
		in_children();
	else
		all_at_once();
	printf("most: %d\nwaiting\n", most);
	fflush(stdout);
	getchar();
	return 0;
}
