/* A statically linked program, which waits to be looked at. */
#include <stdio.h>

int main(void)
{
	puts("ready");
	fflush(stdout);
	getchar();
	return 0;
}
