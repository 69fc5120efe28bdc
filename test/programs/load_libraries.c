/* load_libraries LIBRARY...: loads them one after the other, as a program with plugins would. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; ++i)
		if (!dlopen(argv[i], RTLD_NOW)) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
	puts("all loaded");
	return 0;
}
