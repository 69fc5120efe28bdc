/* The kernel's own interface of verbs, for programs without a verbs library. */
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
#include <sys/mman.h>
#include <unistd.h>

static __u32 driver = RDMA_DRIVER_RXE;

/* A request for write(2), and its length. */
struct letter {
	size_t bytes;
	char text[80];
};

static struct letter letter(unsigned command, void *in, size_t in_bytes, void *out, size_t out_bytes)
{
	struct ib_uverbs_cmd_hdr head = {
		.command = command,
		.in_words = (sizeof head + in_bytes) / 4,
		.out_words = out_bytes / 4,
	};
	struct letter it = { .bytes = sizeof head + in_bytes };

	*(__u64 *)in = (__u64)out; /* each command begins with where the answer goes */
	memcpy(it.text, &head, sizeof head);
	memcpy(it.text + sizeof head, in, in_bytes);
	return it;
}

static inline int by_write(int fd, unsigned command, void *in, size_t in_bytes, void *out, size_t out_bytes)
{
	struct letter it = letter(command, in, in_bytes, out, out_bytes);

	return write(fd, it.text, it.bytes) < 0 ? -1 : 0;
}

/* A write command as an ioctl's request. */
struct invocation {
	struct ib_uverbs_ioctl_hdr head;
	struct ib_uverbs_attr attrs[3];
};

static struct invocation invocation(unsigned command, const void *in, size_t in_bytes, void *out, size_t out_bytes)
{
	struct invocation call = {
		.head = {
			.length = sizeof call,
			.object_id = UVERBS_OBJECT_DEVICE,
			.method_id = UVERBS_METHOD_INVOKE_WRITE,
			.num_attrs = 3,
			.driver_id = driver,
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
	return call;
}

static int by_ioctl(int fd, unsigned command, void *in, size_t in_bytes, void *out, size_t out_bytes)
{
	struct invocation call = invocation(command, in, in_bytes, out, out_bytes);

	return ioctl(fd, RDMA_VERBS_IOCTL, &call);
}

/* By a request of this one's attributes, with many others behind the first `front` of them. */
static inline int with_many_attributes(int fd, const struct invocation *of, unsigned front)
{
	enum { others = 20, own = sizeof of->attrs / sizeof *of->attrs };
	struct {
		struct ib_uverbs_ioctl_hdr head;
		struct ib_uverbs_attr attrs[others + own];
	} call = { .head = of->head };

	call.head.length = sizeof call;
	call.head.num_attrs = others + own;
	memcpy(call.attrs, of->attrs, front * sizeof *of->attrs);
	for (unsigned i = 0; i < others; i++) /* nobody knows these, and nobody must */
		call.attrs[front + i].attr_id = 0x3f0 + i;
	memcpy(call.attrs + front + others, of->attrs + front, (own - front) * sizeof *of->attrs);
	return ioctl(fd, RDMA_VERBS_IOCTL, &call);
}

/* A request in a page that is not there until somebody reads it: the page of a file that is mapped just now. */
static inline void *absent(const void *request, size_t bytes, int where)
{
	int file = memfd_create("request", 0);

	if (file < 0 || write(file, request, bytes) != (ssize_t)bytes || ftruncate(file, 4096))
		exit(2);
	void *there = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | where, file, 0);
	if (there == MAP_FAILED)
		exit(2);
	close(file);
	return there;
}

/* By ioctl of a page that is not there, which the guard cannot read. */
static inline int ioctl_unread(int fd, const void *call, size_t bytes)
{
	void *there = absent(call, bytes, 0);
	int failed = ioctl(fd, RDMA_VERBS_IOCTL, there);

	munmap(there, 4096);
	return failed;
}

static inline int by_unread(int fd, unsigned command, void *in, size_t in_bytes, void *out, size_t out_bytes)
{
	struct invocation call = invocation(command, in, in_bytes, out, out_bytes);

	return ioctl_unread(fd, &call, sizeof call);
}

/* The same, as 32-bit programs make requests by ioctl. */
#ifdef __x86_64__
static inline int by_old_call(int fd, unsigned command, void *in, size_t in_bytes, void *out, size_t out_bytes)
{
	struct invocation call = invocation(command, in, in_bytes, out, out_bytes);
	void *there = absent(&call, sizeof call, MAP_32BIT);
	long result;

	__asm__ volatile("int $0x80" /* ioctl is 54 there */
			 : "=a"(result)
			 : "0"(54L), "b"((long)fd), "c"(RDMA_VERBS_IOCTL), "d"(there)
			 : "memory", "r8", "r9", "r10", "r11");
	munmap(there, 4096);
	return result < 0 ? -1 : 0;
}
#else
#define by_old_call by_ioctl
#endif

typedef int way(int, unsigned, void *, size_t, void *, size_t);

static inline int alloc_pd(int fd, way *call, __u32 *handle)
{
	struct ib_uverbs_alloc_pd in = { 0 };
	struct ib_uverbs_alloc_pd_resp out;
	int failed = call(fd, IB_USER_VERBS_CMD_ALLOC_PD, &in, sizeof in, &out, sizeof out);

	*handle = out.pd_handle;
	return failed;
}

static inline struct ib_uverbs_attr attribute(unsigned id, unsigned bytes, __u64 value)
{
	return (struct ib_uverbs_attr){ .attr_id = id, .len = bytes, .flags = UVERBS_ATTR_F_MANDATORY, .data = value };
}

/* A request for an object's own method, with up to eight attributes. */
struct method_call {
	struct ib_uverbs_ioctl_hdr head;
	struct ib_uverbs_attr attrs[8];
};

static inline struct method_call method_call(unsigned object, unsigned method, const struct ib_uverbs_attr *attrs, unsigned count)
{
	struct method_call call = {
		.head = {
			.length = sizeof call.head + count * sizeof *attrs,
			.object_id = object,
			.method_id = method,
			.num_attrs = count,
			.driver_id = driver,
		},
	};

	memcpy(call.attrs, attrs, count * sizeof *attrs);
	return call;
}

/* An ioctl takes a descriptor of another process. */
static inline int by_method(int fd, unsigned object, unsigned method, const struct ib_uverbs_attr *attrs, unsigned count)
{
	struct method_call call = method_call(object, method, attrs, count);

	return ioctl(fd, RDMA_VERBS_IOCTL, &call);
}

/* The methods that destroy have the handle in their first attribute. */
static inline int destroy(int fd, unsigned object, unsigned method, __u32 handle)
{
	const struct ib_uverbs_attr attr = attribute(0, 0, handle);

	return by_method(fd, object, method, &attr, 1);
}

/* By a method of its own: newer kernels know no write command for it as an ioctl. */
static inline int get_context_by_ioctl(int fd, int unread)
{
	__u32 vectors;
	__u64 supported;
	const struct ib_uverbs_attr attrs[] = {
		attribute(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, sizeof vectors, (__u64)&vectors),
		attribute(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, sizeof supported, (__u64)&supported),
	};
	struct method_call call = method_call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT, attrs, 2);

	return unread ? ioctl_unread(fd, &call, sizeof call) : ioctl(fd, RDMA_VERBS_IOCTL, &call);
}

static inline int get_context(int fd, way *call)
{
	struct ib_uverbs_get_context in = { 0 };
	struct ib_uverbs_get_context_resp out;

	if (call == by_ioctl || call == by_unread)
		return get_context_by_ioctl(fd, call == by_unread);
	return call(fd, IB_USER_VERBS_CMD_GET_CONTEXT, &in, sizeof in, &out, sizeof out);
}

/* Tries again on EAGAIN, which the guard returns until it has resolved the caller, unless AT_ONCE is in the environment. */
static inline int get_context_patiently(int fd, way *call)
{
	int status;

	while ((status = get_context(fd, call)) && errno == EAGAIN && !getenv("AT_ONCE"))
		usleep(5000);
	return status;
}

/* The first device's file, or that which UVERBS in the environment names, with a context got in this way; -1 when there is none. */
static inline int open_device(way *call)
{
	const char *path = getenv("UVERBS");
	int fd = open(path ? path : "/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);

	if (fd >= 0 && get_context_patiently(fd, call)) {
		close(fd);
		return -1;
	}
	return fd;
}

static inline int open_context(void) { return open_device(by_ioctl); }
