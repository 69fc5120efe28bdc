/*
 * open_device [--memory | --qp]: lists the devices, opens the first, closes it, and prints how many ns
 * each step took, and how much of the CPU all of it. A verbs program that knows nothing of quotas.
 *
 *   --memory   before closing: resident and proportional KiB of this process, and resident KiB of a
 *              mapped file whose name ends in /ledger
 *   --qp       quietly: opens, makes a PD, a CQ and a QP, and ends without destroying anything
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static unsigned long long clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

static unsigned long long now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

static unsigned long field(const char *line, const char *name)
{
	unsigned long value = 0;

	if (!strncmp(line, name, strlen(name)))
		sscanf(line + strlen(name), "%lu", &value);
	return value;
}

static void print_memory(void)
{
	unsigned long rss = 0, pss = 0, ledger = 0;
	int in_ledger = 0;
	char line[1024];
	FILE *file = fopen("/proc/self/smaps", "re");

	while (file && fgets(line, sizeof(line), file)) {
		unsigned long from, to;
		size_t length = strcspn(line, "\n");

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			in_ledger = length > 7 && !strncmp(line + length - 7, "/ledger", 7);
		rss += field(line, "Rss:");
		pss += field(line, "Pss:");
		if (in_ledger)
			ledger += field(line, "Rss:");
	}
	if (file)
		fclose(file);
	printf("memory.rss %lu\nmemory.pss %lu\nmemory.ledger %lu\n", rss, pss, ledger);
}

static int make_qp(struct ibv_context *context)
{
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = pd ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	return cq && ibv_create_qp(pd, &attr) ? 0 : 3;
}

int main(int argc, char **argv)
{
	const char *option = argc > 1 ? argv[1] : "";
	unsigned long long cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), start = now_ns();
	struct ibv_device **list = ibv_get_device_list(NULL);
	unsigned long long listed = now_ns();
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	unsigned long long opened = now_ns();

	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	if (!context)
		return 2;
	if (!strcmp(option, "--qp"))
		return make_qp(context);
	if (!strcmp(option, "--memory"))
		print_memory();
	unsigned long long closing_cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), closing = now_ns();
	ibv_close_device(context);
	unsigned long long closed = now_ns();
	cpu += clock_ns(CLOCK_PROCESS_CPUTIME_ID) - closing_cpu;

	ibv_free_device_list(list);
	printf("open.list %llu\nopen.open %llu\nopen.close %llu\nopen.all %llu\nopen.cpu %llu\n",
	       listed - start, opened - listed, closed - closing,
	       listed - start + opened - listed + closed - closing, cpu);
	return 0;
}
