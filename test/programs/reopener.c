/* reopener COUNT: opens and closes the first device so often, and prints how often it could. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	const int count = argc > 1 ? atoi(argv[1]) : 1;
	struct ibv_device **list = ibv_get_device_list(NULL);
	int opened = 0;

	for (int i = 0; list && list[0] && i < count; ++i) {
		struct ibv_context *context = ibv_open_device(list[0]);

		if (context)
			++opened;
		if (context)
			ibv_close_device(context);
	}
	printf("opened: %d of %d\n", opened, count);
	return 0;
}
