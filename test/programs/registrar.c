/*
 * registrar BYTES: registers memory of so many bytes and gives it back, again and again until its input ends. Prints "waiting"
 * once it has begun, and at the end how often it did and how often that was refused.
 */
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	size_t bytes = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	void *memory = calloc(1, bytes);
	struct pollfd input = { STDIN_FILENO, POLLIN, 0 };
	long made = 0, refused = 0;

	if (!bytes || !memory || !pd)
		return 2;
	puts("waiting");
	fflush(stdout);
	while (poll(&input, 1, 0) == 0) {
		struct ibv_mr *mr = ibv_reg_mr(pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE);

		if (mr && ibv_dereg_mr(mr) == 0)
			made++;
		else
			refused++;
	}
	printf("%ld made, %ld refused\n", made, refused);
	free(memory);
	ibv_dealloc_pd(pd);
	return ibv_close_device(context) ? 1 : 0;
}
