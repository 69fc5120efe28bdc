/*
 * A 32-bit program, whose ioctl is another way into the kernel: on a 64-bit kernel it is compat_ioctl. It opens the first
 * device, tries to make ten PDs, and prints "pd: MADE of 10", with " EDQUOT" when it stopped at that. Without any
 * library, since machines seldom have 32-bit ones.
 */
#include <linux/errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl.h>

enum { wanted = 10, sys_exit = 1, sys_write = 4, sys_open = 5, sys_ioctl = 54 };

static long call3(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "0"(number), "b"(a), "c"(b), "d"(c) : "memory");
	return result;
}

static void say(const char *text, long length) { call3(sys_write, 1, (long)text, length); }

static long command(long fd, __u64 number, void *in, __u16 in_bytes, void *out, __u16 out_bytes)
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
			{ .attr_id = UVERBS_ATTR_WRITE_CMD, .len = sizeof(__u64), .flags = UVERBS_ATTR_F_MANDATORY, .data = number },
			{ .attr_id = UVERBS_ATTR_CORE_IN, .len = in_bytes, .flags = UVERBS_ATTR_F_MANDATORY },
			{ .attr_id = UVERBS_ATTR_CORE_OUT, .len = out_bytes, .flags = UVERBS_ATTR_F_MANDATORY, .data = (unsigned long)out },
		},
	};

	/* What fits into a word stands in its place. */
	call.attrs[1].data = in_bytes <= sizeof(__u64) ? *(__u64 *)in : (unsigned long)in;
	return call3(sys_ioctl, fd, RDMA_VERBS_IOCTL, (long)&call);
}

void _start(void)
{
	struct ib_uverbs_get_context context = { 0 };
	struct ib_uverbs_get_context_resp answer = { 0 };
	struct ib_uverbs_alloc_pd in = { 0 };
	struct ib_uverbs_alloc_pd_resp out = { 0 };
	long fd = call3(sys_open, (long)"/dev/infiniband/uverbs0", 2, 0), failed = 0;
	char digit = '0';

	if (fd < 0 || command(fd, IB_USER_VERBS_CMD_GET_CONTEXT, &context, sizeof context, &answer, sizeof answer)) {
		say("no device\n", 10);
		call3(sys_exit, 2, 0, 0);
	}
	while (digit < '0' + wanted && !(failed = command(fd, IB_USER_VERBS_CMD_ALLOC_PD, &in, sizeof in, &out, sizeof out)))
		++digit;
	say("pd: ", 4);
	if (digit == '0' + wanted)
		say("10", 2);
	else
		say(&digit, 1);
	say(" of 10", 6);
	if (failed == -EDQUOT)
		say(" EDQUOT", 7);
	say("\n", 1);
	call3(sys_exit, 0, 0, 0);
}
