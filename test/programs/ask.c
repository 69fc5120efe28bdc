/*
 * ask REQUEST [MEMBER]: sends a request to rdmaquotad and prints its answer, or the number that the answer's member of that name
 * has. Waits as long as the answer takes. In C, since Python takes as long to start in the guest as a look of the sidecar.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int control = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	if (control < 0 || connect(control, (struct sockaddr *)&address, sizeof(address)) != 0) {
		perror(path);
		exit(1);
	}
	return control;
}

int main(int argc, char **argv)
{
	char *line = NULL, member[64];
	size_t room = 0;
	FILE *answer;
	int control;

	if (argc < 2)
		return 2;
	control = connect_to("/run/rdmaquota/control.sock");
	dprintf(control, "{\"version\":1,\"request\":\"%s\"}\n", argv[1]);
	answer = fdopen(control, "r");
	if (!answer || getline(&line, &room, answer) < 0) {
		fputs("ask: no answer\n", stderr);
		return 1;
	}
	if (argc == 2) {
		fputs(line, stdout);
		return 0;
	}
	snprintf(member, sizeof(member), "\"%s\":", argv[2]);
	line = strstr(line, member);
	if (!line) {
		fprintf(stderr, "ask: the answer has no %s\n", argv[2]);
		return 1;
	}
	printf("%lld\n", strtoll(line + strlen(member), NULL, 10));
	return 0;
}
