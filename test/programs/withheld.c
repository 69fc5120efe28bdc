/*
 * withheld HOW BYTES [child]: a program that withholds memory from its children, as libraries do that register memory: it opens
 * a device, makes a QP and an MR of BYTES bytes from malloc, and forks. The child ends at once; with `child`, it opens the device
 * and makes a PD first. Prints how it ended. HOW is
 *   fork_init   libibverbs does it, asked by ibv_fork_init(3)
 *   dontfork    the pages of the buffer are MADV_DONTFORK, as UCX and Open MPI do
 *   wipe        they are MADV_WIPEONFORK
 *   heap        all of the heap is MADV_DONTFORK
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ibv_context *open_first(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (list)
		ibv_free_device_list(list);
	return context;
}

static struct ibv_qp *create_qp(struct ibv_pd *pd)
{
	struct ibv_cq *cq = ibv_create_cq(pd->context, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr wanted = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
	};

	return cq ? ibv_create_qp(pd, &wanted) : NULL;
}

/* The [heap] of /proc/self/maps. */
static int withhold_heap(void)
{
	unsigned long from = 0, to = 0;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "[heap]") && sscanf(line, "%lx-%lx", &from, &to) == 2)
			break;
	if (maps)
		fclose(maps);
	return madvise((void *)from, to - from, MADV_DONTFORK);
}

static int withhold(const char *how, void *buffer, size_t bytes)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)buffer & ~(page - 1);
	const size_t length = (((uintptr_t)buffer + bytes + page - 1) & ~(page - 1)) - begin;

	if (!strcmp(how, "dontfork"))
		return madvise((void *)begin, length, MADV_DONTFORK);
	if (!strcmp(how, "wipe"))
		return madvise((void *)begin, length, MADV_WIPEONFORK);
	return strcmp(how, "heap") ? 0 : withhold_heap();
}

static int live_as_child(int uses)
{
	struct ibv_context *context = uses ? open_first() : NULL;

	return uses && (!context || !ibv_alloc_pd(context)) ? 3 : 0;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "fork_init";
	const size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 100;
	struct ibv_context *context;
	struct ibv_pd *pd;
	void *buffer;
	pid_t child;
	int status = 0;

	if (!strcmp(how, "fork_init") && (setenv("RDMAV_FORK_SAFE", "1", 1) || ibv_fork_init())) {
		perror("ibv_fork_init");
		return 2;
	}
	context = open_first();
	pd = context ? ibv_alloc_pd(context) : NULL;
	if (!pd || !create_qp(pd) || !(buffer = malloc(bytes)) || !ibv_reg_mr(pd, buffer, bytes, IBV_ACCESS_LOCAL_WRITE)) {
		perror("withheld");
		return 2;
	}
	if (withhold(how, buffer, bytes)) {
		perror("madvise");
		return 2;
	}
	child = fork();
	if (child == 0)
		_exit(live_as_child(argc > 3));
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 2;
	if (WIFSIGNALED(status))
		printf("child: killed by signal %d\n", WTERMSIG(status));
	else
		printf("child: ended with %d\n", WEXITSTATUS(status));
	return 0;
}
