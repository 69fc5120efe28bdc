/*
 * Loads the security module of refuser.bpf.c.
 *
 *   refuser OBJECT
 *
 * Prints "waiting", and ends with its input.
 */
#include <bpf/libbpf.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct bpf_object *object = argc == 2 ? bpf_object__open(argv[1]) : NULL;
	struct bpf_program *program = object && !bpf_object__load(object) ? bpf_object__next_program(object, NULL) : NULL;

	if (!program || !bpf_program__attach(program)) {
		perror("refuser");
		return 1;
	}
	puts("waiting");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
