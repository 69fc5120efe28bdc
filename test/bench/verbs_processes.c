/*
 * verbs_processes COUNT MILLISECONDS: so many processes open the first device and make and destroy PDs, the cheapest
 * object that the kernel has, all at once. Prints how many pairs they do per second, and the share of the slowest, 1
 * being fair. A verbs program that knows nothing of quotas.
 */
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct control {
	atomic_uint ready;
	atomic_bool go, stop;
	unsigned long pairs[];
};

static unsigned long long now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

static int work(struct control *control, unsigned number)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	unsigned long pairs = 0;

	++control->ready;
	while (!control->go)
		usleep(1000);
	for (; context && !control->stop; ++pairs) {
		struct ibv_pd *pd = ibv_alloc_pd(context);

		if (!pd || ibv_dealloc_pd(pd))
			return 1;
	}
	control->pairs[number] = pairs;
	return 0;
}

int main(int argc, char **argv)
{
	unsigned count = argc > 2 ? atoi(argv[1]) : 0;
	unsigned long total = 0, least = -1UL;
	struct control *control = mmap(NULL, sizeof(*control) + count * sizeof(control->pairs[0]), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (count == 0 || control == MAP_FAILED)
		return 2;
	for (unsigned i = 0; i < count; ++i) {
		pid_t child = fork();

		if (child == 0)
			_exit(work(control, i));
		if (child < 0)
			return 1;
	}
	while (control->ready < count)
		usleep(1000);
	unsigned long long start = now_ns();
	control->go = 1;
	usleep(atoi(argv[2]) * 1000);
	control->stop = 1;
	double seconds = (now_ns() - start) / 1e9;

	while (wait(NULL) > 0)
		;
	for (unsigned i = 0; i < count; ++i) {
		total += control->pairs[i];
		least = control->pairs[i] < least ? control->pairs[i] : least;
	}
	if (total == 0)
		return 1;
	printf("processes.%u %.0f\nfairness.%u %.3f\n", count, total / seconds, count, (double)least * count / total);
	return 0;
}
