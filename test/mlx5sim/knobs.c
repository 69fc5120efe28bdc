// SPDX-License-Identifier: GPL-2.0
/* The knobs of mlx5sim.h, as files in debugfs. */
#include <linux/debugfs.h>
#include <linux/sched.h>

#include "mlx5sim.h"

struct knob {
	const char *name;
	u32 error;
	u32 delay_ms;
	atomic_t calls;
};

static struct knob knobs[sim_command_count] = {
#define X(command) { .name = #command },
	SIM_COMMANDS(X)
#undef X
};
static struct dentry *directory;

int sim_begin_pages(enum sim_command command, u64 pages)
{
	struct knob *knob = &knobs[command];
	u32 delay_ms = READ_ONCE(knob->delay_ms);

	atomic_inc(&knob->calls);
	if (delay_ms)
		schedule_timeout_killable(msecs_to_jiffies(delay_ms));
	sim_queue(command, pages);
	return -(int)READ_ONCE(knob->error);
}

int sim_begin(enum sim_command command)
{
	return sim_begin_pages(command, 0);
}

void sim_knobs_create(void)
{
	directory = debugfs_create_dir("mlx5sim", NULL);
	sim_queue_knobs(directory);
	for (int i = 0; i < sim_command_count; ++i) {
		struct dentry *command = debugfs_create_dir(knobs[i].name, directory);

		debugfs_create_u32("errno", 0600, command, &knobs[i].error);
		debugfs_create_u32("delay_ms", 0600, command, &knobs[i].delay_ms);
		debugfs_create_atomic_t("calls", 0600, command, &knobs[i].calls);
	}
}

void sim_knobs_remove(void)
{
	debugfs_remove_recursive(directory);
}
