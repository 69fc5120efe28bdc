/* Descriptors that go from one process to another by a socket. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

struct parcel {
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec data;
	struct msghdr message;
};

static struct msghdr *message_in(struct parcel *it)
{
	it->data = (struct iovec){ &it->byte, 1 };
	it->message = (struct msghdr){
		.msg_iov = &it->data,
		.msg_iovlen = 1,
		.msg_control = it->control,
		.msg_controllen = sizeof it->control,
	};
	return &it->message;
}

static void pass_on(int socket, int file)
{
	struct parcel parcel = { 0 };
	struct msghdr *message = message_in(&parcel);
	struct cmsghdr *head = CMSG_FIRSTHDR(message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof file);
	memcpy(CMSG_DATA(head), &file, sizeof file);
	if (sendmsg(socket, message, 0) < 0)
		perror("sendmsg");
}

/* -1 when none came. */
static int take_over(int socket)
{
	struct parcel parcel = { 0 };
	struct msghdr *message = message_in(&parcel);
	int file = -1;

	if (recvmsg(socket, message, 0) > 0 && CMSG_FIRSTHDR(message))
		memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(message)), sizeof file);
	return file;
}
