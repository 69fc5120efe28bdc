/*
 * Reads an empty map of BPF again and again, all of it in one system call. The kernel skips BPF programs for kprobes on the
 * CPU of a thread that is preempted in that. Runs when nobody else wants to, as root, until it is killed.
 */
#include <bpf/bpf.h>
#include <sched.h>
#include <stdio.h>

int main(void)
{
	static unsigned keys[64], values[64];
	const struct sched_param none = { 0 };
	int map = bpf_map_create(BPF_MAP_TYPE_HASH, "read", sizeof *keys, sizeof *values, 65536, 0);

	if (map < 0 || sched_setscheduler(0, SCHED_IDLE, &none)) {
		perror("map_reader");
		return 1;
	}
	for (;;) {
		unsigned place, count = 64;

		bpf_map_lookup_batch(map, 0, &place, keys, values, &count, 0);
	}
}
