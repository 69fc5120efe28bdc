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

/* A method of the device's, with its attributes. */
static long method(long fd, __u16 id, const struct ib_uverbs_attr *attrs, __u16 count)
{
	struct {
		struct ib_uverbs_ioctl_hdr head;
		struct ib_uverbs_attr attrs[3];
	} call = { .head = { .object_id = UVERBS_OBJECT_DEVICE, .method_id = id, .num_attrs = count, .driver_id = RDMA_DRIVER_RXE } };

	for (__u16 i = 0; i < count; ++i)
		call.attrs[i] = attrs[i];
	call.head.length = sizeof call.head + count * sizeof *attrs;
	return call3(sys_ioctl, fd, RDMA_VERBS_IOCTL, (long)&call);
}

static struct ib_uverbs_attr attribute(__u16 id, __u16 bytes, __u64 data)
{
	struct ib_uverbs_attr it = { .attr_id = id, .len = bytes, .flags = UVERBS_ATTR_F_MANDATORY, .data = data };

	return it;
}

/* By a method of its own: newer kernels know no write command for it as an ioctl. */
static long get_context(long fd)
{
	__u32 vectors;
	__u64 supported;
	const struct ib_uverbs_attr attrs[] = {
		attribute(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, sizeof vectors, (unsigned long)&vectors),
		attribute(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, sizeof supported, (unsigned long)&supported),
	};

	return method(fd, UVERBS_METHOD_GET_CONTEXT, attrs, 2);
}

/* What the kernel is to read fits into a word, and stands in its place. */
static long alloc_pd(long fd)
{
	struct ib_uverbs_alloc_pd_resp out;
	const struct ib_uverbs_attr attrs[] = {
		attribute(UVERBS_ATTR_WRITE_CMD, sizeof(__u64), IB_USER_VERBS_CMD_ALLOC_PD),
		attribute(UVERBS_ATTR_CORE_IN, sizeof(struct ib_uverbs_alloc_pd), 0),
		attribute(UVERBS_ATTR_CORE_OUT, sizeof out, (unsigned long)&out),
	};

	return method(fd, UVERBS_METHOD_INVOKE_WRITE, attrs, 3);
}

void _start(void)
{
	long fd = call3(sys_open, (long)"/dev/infiniband/uverbs0", 2, 0), failed = 0;
	char digit = '0';

	if (fd < 0 || get_context(fd)) {
		say("no device\n", 10);
		call3(sys_exit, 2, 0, 0);
	}
	while (digit < '0' + wanted && !(failed = alloc_pd(fd)))
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
