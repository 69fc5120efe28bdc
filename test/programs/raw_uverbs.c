/*
 * A program that uses no verbs library: it opens the first device's file, rxe's, gets a context and allocates PDs by
 * the kernel's own interface.
 *
 *   raw_uverbs write|ioctl COUNT
 *
 * Prints "pd: MADE of COUNT" and, when it stopped short, the error's name; then "waiting", and reads a line. The
 * exit status is 0 when all were made, 1 when not, 2 when there is no device.
 */
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int by_write(int fd, unsigned command, void *in, size_t in_bytes, void *out, size_t out_bytes)
{
	char buffer[64];
	struct ib_uverbs_cmd_hdr head = {
		.command = command,
		.in_words = (sizeof head + in_bytes) / 4,
		.out_words = out_bytes / 4,
	};

	*(__u64 *)in = (__u64)out; /* each command begins with where the answer goes */
	memcpy(buffer, &head, sizeof head);
	memcpy(buffer + sizeof head, in, in_bytes);
	return write(fd, buffer, sizeof head + in_bytes) < 0 ? -1 : 0;
}

static int by_ioctl(int fd, unsigned command, void *in, size_t in_bytes, void *out, size_t out_bytes)
{
	struct {
		struct ib_uverbs_ioctl_hdr head;
		struct ib_uverbs_attr attrs[3];
	} call = {
		.head = {
			.length = sizeof call,
			.object_id = UVERBS_OBJECT_DEVICE,
			.method_id = UVERBS_METHOD_INVOKE_WRITE,
			.num_attrs = 3,
			.driver_id = RDMA_DRIVER_RXE,
		},
		.attrs = {
			{ .attr_id = UVERBS_ATTR_WRITE_CMD, .len = sizeof(__u64), .flags = UVERBS_ATTR_F_MANDATORY, .data = command },
			{ .attr_id = UVERBS_ATTR_CORE_IN, .len = in_bytes, .flags = UVERBS_ATTR_F_MANDATORY, .data = (__u64)in },
			{ .attr_id = UVERBS_ATTR_CORE_OUT, .len = out_bytes, .flags = UVERBS_ATTR_F_MANDATORY, .data = (__u64)out },
		},
	};

	/* What fits into a word stands in its place. */
	if (in_bytes <= sizeof(__u64))
		memcpy(&call.attrs[1].data, in, in_bytes);
	return ioctl(fd, RDMA_VERBS_IOCTL, &call);
}

int main(int argc, char **argv)
{
	struct ib_uverbs_get_context context = { 0 };
	struct ib_uverbs_get_context_resp answer;
	int wanted = argc > 2 ? atoi(argv[2]) : 1, made = 0;
	int fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);

	if (argc < 3 || fd < 0 ||
	    by_write(fd, IB_USER_VERBS_CMD_GET_CONTEXT, &context, sizeof context, &answer, sizeof answer)) {
		perror("raw_uverbs");
		return 2;
	}
	for (; made < wanted; ++made) {
		struct ib_uverbs_alloc_pd in = { 0 };
		struct ib_uverbs_alloc_pd_resp out;
		int (*call)(int, unsigned, void *, size_t, void *, size_t) = strcmp(argv[1], "ioctl") ? by_write : by_ioctl;

		if (call(fd, IB_USER_VERBS_CMD_ALLOC_PD, &in, sizeof in, &out, sizeof out))
			break;
	}
	printf("pd: %d of %d%s%s\n", made, wanted, made < wanted ? " " : "", made < wanted ? strerrorname_np(errno) : "");
	puts("waiting");
	fflush(stdout);
	getchar();
	return made < wanted;
}
