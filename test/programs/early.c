/*
 * early STEP...: a program that is linked to no RDMA library and loads them in the order it is told, as programs with
 * plugins do. It knows nothing of quotas.
 *
 *   open=LIBRARY            dlopen it
 *   close                   dlclose what was opened last
 *   symbol=NAME[@VERSION]   look it up in what was opened last (dlsym, dlvsym); print the file that it lies in
 *   verbs=LIBRARY           the libibverbs whose functions are called from here on, instead of the loader's libibverbs.so.1
 *   apart=LIBRARY           likewise, in a namespace of its own (dlmopen)
 *   device=NAME             the device for what follows, instead of the first
 *   qps=N                   on the device, create N QPs, print how many and why no more
 *   wait                    print "waiting" and read a line of standard input
 *
 * The exit status is 0 when every step could be taken (a QP that is refused is an answer), else 1.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *opened[16];
static int open_count;
static void *verbs;
static const char *device;

static void fail(const char *what)
{
	const char *error = dlerror();

	fprintf(stderr, "%s: %s\n", what, error ? error : strerror(errno));
	exit(1);
}

static void open_library(const char *name)
{
	void *handle = open_count < 16 ? dlopen(name, RTLD_NOW) : NULL;

	if (!handle)
		fail(name);
	opened[open_count++] = handle;
}

static void choose_verbs(const char *name, Lmid_t space)
{
	verbs = dlmopen(space, name, RTLD_NOW);
	if (!verbs)
		fail(name);
}

static void find_symbol(char *name)
{
	char *version = strchr(name, '@');
	void *handle = open_count > 0 ? opened[open_count - 1] : NULL;
	void *symbol;
	Dl_info info;
	char *file;

	if (version)
		*version++ = '\0';
	symbol = version ? dlvsym(handle, name, version) : dlsym(handle, name);
	if (!symbol || !dladdr(symbol, &info))
		fail(name);
	file = realpath(info.dli_fname, NULL);
	printf("%s: %s\n", name, file ? file : info.dli_fname);
	free(file);
}

/* call: a function of libibverbs, loaded no earlier than now */
static void *call(const char *name)
{
	void *function;

	if (!verbs)
		verbs = dlopen("libibverbs.so.1", RTLD_NOW);
	function = verbs ? dlsym(verbs, name) : NULL;
	if (!function)
		fail(name);
	return function;
}
#define VERB(name) ((__typeof__(&name))call(#name))

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ((struct ibv_device **(*)(int *))call("ibv_get_device_list"))(NULL);
	struct ibv_context *context;

	while (device && list && *list && strcmp((*list)->name, device) != 0)
		++list;
	context = list && *list ? VERB(ibv_open_device)(*list) : NULL;
	if (!context)
		fail("ibv_open_device");
	return context;
}

static void create_qps(int wanted)
{
	struct ibv_context *context = open_device();
	struct ibv_pd *pd = VERB(ibv_alloc_pd)(context);
	struct ibv_cq *cq = ((struct ibv_cq *(*)(struct ibv_context *, int, void *, struct ibv_comp_channel *, int))call(
		"ibv_create_cq"))(context, 64, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	int made = 0;

	if (!pd || !cq)
		fail("a PD and a CQ");
	while (made < wanted && VERB(ibv_create_qp)(pd, &attr))
		++made;
	printf("%d of %d QPs", made, wanted);
	printf(made < wanted ? ", then %s\n" : "\n", strerrorname_np(errno));
}

static void wait_for_line(void)
{
	puts("waiting");
	fflush(stdout);
	getchar();
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; ++i) {
		char *value = strchr(argv[i], '=');

		if (value)
			*value++ = '\0';
		if (value && strcmp(argv[i], "open") == 0)
			open_library(value);
		else if (value && strcmp(argv[i], "verbs") == 0)
			choose_verbs(value, LM_ID_BASE);
		else if (value && strcmp(argv[i], "apart") == 0)
			choose_verbs(value, LM_ID_NEWLM);
		else if (value && strcmp(argv[i], "device") == 0)
			device = value;
		else if (value && strcmp(argv[i], "symbol") == 0)
			find_symbol(value);
		else if (value && strcmp(argv[i], "qps") == 0)
			create_qps(atoi(value));
		else if (strcmp(argv[i], "close") == 0 && open_count > 0)
			dlclose(opened[--open_count]);
		else if (strcmp(argv[i], "wait") == 0)
			wait_for_line();
		else
			fail(argv[i]);
	}
	return 0;
}
