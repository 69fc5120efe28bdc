/*
 * cancelled HOW: opens a device and allocates PDs until it is denied, in a thread that is cancelled meanwhile, and
 * says how the thread ended. Then allocates and frees one more PD, and closes the device.
 *
 *   pending       the request is there before the denial
 *   asynchronous  it comes in the middle of the denial, and the thread can be cancelled at any instruction
 *   kernel        it takes effect in the real provider's call to the kernel, of the first PD
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *how;
static struct ibv_context *context;
static __thread int in_thread;
static int made, lived_on;

/* What the libraries call, in place of the C library's. The line of a denial is written after a poll. */
int poll(struct pollfd *descriptors, nfds_t count, int timeout)
{
	if (in_thread && !strcmp(how, "asynchronous"))
		pthread_cancel(pthread_self());
	return (int)syscall(SYS_poll, descriptors, count, timeout);
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	void *argument;

	va_start(list, request);
	argument = va_arg(list, void *);
	va_end(list);
	if (in_thread && !strcmp(how, "kernel"))
		pthread_testcancel();
	return (int)syscall(SYS_ioctl, fd, request, argument);
}

static void *allocate(void *unused)
{
	(void)unused;
	in_thread = 1;
	if (!strcmp(how, "asynchronous"))
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	else
		pthread_cancel(pthread_self());
	while (ibv_alloc_pd(context))
		++made;
	printf("denied: %s\n", strerrorname_np(errno));
	pthread_testcancel();
	lived_on = 1;
	return NULL;
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_pd *pd;
	pthread_t thread;

	setvbuf(stdout, NULL, _IOLBF, 0);
	how = argc > 1 ? argv[1] : "";
	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	pd = context ? ibv_alloc_pd(context) : NULL;
	if (!pd || pthread_create(&thread, NULL, allocate, NULL) || pthread_join(thread, NULL))
		return 2;
	printf("%d more, thread %s\n", made, lived_on ? "returned" : "cancelled");
	if (ibv_dealloc_pd(pd) || !ibv_alloc_pd(context) || ibv_close_device(context))
		return 1;
	puts("closed");
	return 0;
}
