/*
 * librdmaquota-rdmavNN.so: what libibverbs loads as the driver "rdmaquota". It loads the provider, librdmaquota.so, which lies
 * beside it, and has it adopt the providers of the libibverbs that asked.
 *
 * A file of its own for each private ABI and each prefix: of one file the loader runs the constructor once, also when a second
 * libibverbs of the process asks for it by another name, and then that one's providers would not be adopted.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char provider[] = "librdmaquota.so";

__attribute__((constructor)) static void load(void)
{
	int error = errno;
	void (*adopt)(const void *stub) = NULL;
	void *handle = NULL;
	char *path = NULL;
	Dl_info own;

	if (dladdr(provider, &own)) {
		const char *name = strrchr(own.dli_fname, '/');
		size_t directory = name ? name + 1 - own.dli_fname : 0;

		path = malloc(directory + sizeof(provider));
		if (path) {
			memcpy(path, own.dli_fname, directory);
			memcpy(path + directory, provider, sizeof(provider));
			handle = dlopen(path, RTLD_NOW);
		}
	}
	if (handle)
		*(void **)&adopt = dlsym(handle, "rdmaquota_adopt");
	if (adopt)
		adopt(provider);
	free(path);
	errno = error;
}
