/*
 * Opens a device, makes a PD and goes into the background, as daemon(3) does: the process that opened the device
 * ends. The one that is left makes a PD more for each line of input, and ends with it.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!context || !ibv_alloc_pd(context) || fork() != 0)
		return 0;
	puts("waiting");
	for (int c = getchar(); c != EOF; c = getchar())
		puts(ibv_alloc_pd(context) ? "waiting" : "no PD");
	puts("ended by itself");
	return 0;
}
